/*
 * variant.h - random models whose inputs and expected logits are in tests/golden/.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_VARIANT_H
#define FT_TESTS_LIB_MODELS_VARIANT_H

#include "runtime/ft.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/models/llama_file.h"
#include "tests/tap/tap.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VARIANT_ROWS = 4, VARIANT_LONGEST = 70, VARIANT_WORDS = 97 };

/* Rows of token ids, padded on the right. */
typedef struct variant_rows {
    int rows, cols;
    int32_t ids[VARIANT_ROWS * VARIANT_LONGEST], mask[VARIANT_ROWS * VARIANT_LONGEST];
} variant_rows;

/* Rows first to first + count of a list; the padding after a row's end is never read. */
static inline variant_rows variant_read(const json_t *list, int first, int count)
{
    variant_rows p = { .rows = count };
    for (int i = 0; i < count; i++) {
        int length = (int) json_array_size(json_array_get(list, (size_t) (first + i)));
        p.cols = length > p.cols ? length : p.cols;
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < p.cols; k++) {
            const json_t *row = json_array_get(list, (size_t) (first + i));
            const json_t *id = json_array_get(row, (size_t) k);
            p.ids[i * p.cols + k] = (int32_t) json_integer_value(id);
            p.mask[i * p.cols + k] = id != NULL;
        }
    return p;
}

/* Set the ids and the mask of a session's texts. */
static inline void variant_set(ft_session *session, const char *ids_name, const char *mask_name,
                               variant_rows *rows)
{
    ft_error err;
    ft_tensor ids = { .dtype = FT_I32, .ndim = 2, .dim = { rows->rows, rows->cols } }, mask = ids;
    ids.data = rows->ids;
    mask.data = rows->mask;
    if (ft_session_set(session, ids_name, &ids, &err) != FT_OK ||
        ft_session_set(session, mask_name, &mask, &err) != FT_OK)
        bail_out("%s", err.text);
}

/* Runs, and reads the logits after the last token of each row. */
static inline void variant_run(ft_session *session, int rows,
                               float logits[VARIANT_ROWS * VARIANT_WORDS])
{
    ft_error err;
    ft_tensor out = { .data = logits };
    memset(logits, 0xff, VARIANT_ROWS * VARIANT_WORDS * sizeof *logits);
    if (ft_session_run(session, &err) != FT_OK ||
        ft_session_get(session, "logits", &out, &err) != FT_OK)
        bail_out("%s", err.text);
    if (out.ndim != 2 || out.dim[0] != rows || out.dim[1] != VARIANT_WORDS)
        bail_out("logits have another shape");
}

/* The largest error of a row's logits. */
static inline double variant_difference(const json_t *expected, const float *found)
{
    double worst = json_array_size(expected) == VARIANT_WORDS ? 0.0 : (double) NAN;
    for (int i = 0; i < VARIANT_WORDS; i++) {
        double value = json_number_value(json_array_get(expected, (size_t) i));
        double d = fabs((double) found[i] - value);
        worst = d <= worst ? worst : d;
    }
    return worst;
}

/* Converts and opens the model in *t; the test removes its folder. */
static inline ft_model *variant_open_with(const tiny *t, const json_t *variant,
                                          const ft_convert_options *options)
{
    char path[128];
    ft_model *model;
    ft_error err;
    llama_write(t, variant);
    snprintf(path, sizeof path, "%s/model.ft", t->folder);
    ft_conversion *conversion = converted_open(t, options);
    if (conversion == NULL || converted_write(conversion, path) != FT_OK)
        bail_out("%s", converted_problem(0));
    ft_conversion_close(conversion);
    if (ft_model_open(&model, path, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    return model;
}

static inline ft_model *variant_open(const tiny *t, const json_t *variant)
{
    return variant_open_with(t, variant, &(ft_convert_options){ 0 });
}

/* Runs rows of a decoder. */
static inline void llama_run(const ft_model *model, const json_t *variant, int first, int count,
                             float logits[VARIANT_ROWS * VARIANT_WORDS])
{
    ft_session *session;
    ft_error err;
    variant_rows rows = variant_read(json_object_get(variant, "rows"), first, count);
    const ft_session_options options = { .threads = 2,
                                         .context = rows.cols,
                                         .cache_tokens = 64 * VARIANT_ROWS * 2 };
    if (ft_session_open(&session, model, &options, &err) != FT_OK)
        bail_out("%s", err.text);
    variant_set(session, "input_ids", "attention_mask", &rows);
    variant_run(session, count, logits);
    ft_session_close(session);
}

/* Computes the logits of rows first .. first + count - 1 of a variant. */
typedef void variant_runs(const ft_model *model, const json_t *variant, int first, int count,
                          float logits[VARIANT_ROWS * VARIANT_WORDS]);

/* Two checks: all rows have the variant's logits, and the same bits alone and in a batch. */
static inline void variant_compare(const ft_model *model, const json_t *variant, variant_runs *run,
                                   double tolerance)
{
    const char *name = json_string_value(json_object_get(variant, "name"));
    const json_t *expected = json_object_get(variant, "logits");
    int rows = (int) json_array_size(expected), same = 0;
    float together[VARIANT_ROWS * VARIANT_WORDS], alone[VARIANT_ROWS * VARIANT_WORDS];
    double worst = 0.0;
    run(model, variant, 0, rows, together);
    for (int i = 0; i < rows; i++) {
        const float *found = together + i * VARIANT_WORDS;
        double d = variant_difference(json_array_get(expected, (size_t) i), found);
        worst = d <= worst ? worst : d;
        run(model, variant, i, 1, alone);
        same += memcmp(alone, found, VARIANT_WORDS * sizeof *alone) == 0;
    }
    near(worst, 0.0, tolerance,
         "%s: the logits equal those of transformers, with a difference of %.1e", name, worst);
    is_int(same, rows, "%s: a row alone gives the same bits as in a batch", name);
}

#endif
