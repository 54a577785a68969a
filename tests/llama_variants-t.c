/*
 * llama_variants-t.c - every kind of Llama, Mistral and Qwen2 gives the logits of transformers.
 *
 * The models and rows are those of tests/golden/llama-variants.json: heads of keys in several
 * ratios, stated sizes of heads, biases, tied heads, every scaling of positions with rows that are
 * longer than it begins at, and windows that are shorter than the rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"
#include "runtime/mem.h"
#include "tests/lib/converted.h"
#include "tests/lib/golden.h"
#include "tests/lib/llama_file.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, WORDS = 97, LONGEST = 70 };

/*
 * Both sides compute in float and add in another order.  Logits have a spread of 1 to 5 over two or
 * three layers; 2e-6 to 9e-6 was seen, and a scaling or window that is not heeded makes more than
 * 1.
 */
static const double tolerance = 1e-3;

/* Rows of a variant, padded on the right. */
typedef struct {
    int rows, cols;
    int32_t ids[ROWS * LONGEST], mask[ROWS * LONGEST];
} prompt;

static const json_t *row_of(const json_t *variant, int row)
{
    return json_array_get(json_object_get(variant, "rows"), (size_t) row);
}

/* Rows first to first + count; what stands behind a row's end is never read. */
static prompt read_rows(const json_t *variant, int first, int count)
{
    prompt p = { .rows = count };
    for (int i = 0; i < count; i++) {
        int length = (int) json_array_size(row_of(variant, first + i));
        p.cols = length > p.cols ? length : p.cols;
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < p.cols; k++) {
            const json_t *id = json_array_get(row_of(variant, first + i), (size_t) k);
            p.ids[i * p.cols + k] = (int32_t) json_integer_value(id);
            p.mask[i * p.cols + k] = id != NULL;
        }
    return p;
}

static void run(const ft_model *model, const prompt *p, float logits[ROWS * WORDS])
{
    ft_session *session;
    ft_error err;
    ft_tensor ids = { .dtype = FT_I32, .ndim = 2, .dim = { p->rows, p->cols } }, mask = ids;
    ids.data = (void *) (uintptr_t) p->ids;
    mask.data = (void *) (uintptr_t) p->mask;
    ft_tensor out = { .data = logits };
    const ft_session_options options = { .threads = 2,
                                         .context = p->cols,
                                         .cache_tokens = 64 * ROWS * 2 };
    memset(logits, 0xff, ROWS * WORDS * sizeof *logits);
    if (ft_session_open(&session, model, &options, &err) != FT_OK ||
        ft_session_set(session, "input_ids", &ids, &err) != FT_OK ||
        ft_session_set(session, "attention_mask", &mask, &err) != FT_OK ||
        ft_session_run(session, &err) != FT_OK ||
        ft_session_get(session, "logits", &out, &err) != FT_OK)
        bail_out("%s", err.text);
    if (out.ndim != 2 || out.dim[0] != p->rows || out.dim[1] != WORDS)
        bail_out("logits have another shape");
    ft_session_close(session);
}

static double difference(const json_t *expected, const float *found)
{
    double worst = json_array_size(expected) == WORDS ? 0.0 : (double) NAN;
    for (int i = 0; i < WORDS; i++) {
        double d =
            fabs((double) found[i] - json_number_value(json_array_get(expected, (size_t) i)));
        worst = d <= worst ? worst : d;
    }
    return worst;
}

static void compare(const ft_model *model, const json_t *variant)
{
    const char *name = json_string_value(json_object_get(variant, "name"));
    const json_t *expected = json_object_get(variant, "logits");
    int rows = (int) json_array_size(expected), same = 0;
    float together[ROWS * WORDS], alone[ROWS * WORDS];
    double worst = 0.0;
    prompt all = read_rows(variant, 0, rows);
    run(model, &all, together);
    for (int i = 0; i < rows; i++) {
        double d = difference(json_array_get(expected, (size_t) i), together + i * WORDS);
        worst = d <= worst ? worst : d;
        prompt one = read_rows(variant, i, 1);
        run(model, &one, alone);
        same += memcmp(alone, together + i * WORDS, WORDS * sizeof *alone) == 0;
    }
    near(worst, 0.0, tolerance, "%s: the logits of transformers, %.1e away", name, worst);
    is_int(same, rows, "%s: a row alone gets the bits that it gets among others", name);
}

static void test_variant(const json_t *variant)
{
    tiny t;
    char path[128];
    ft_model *model;
    ft_error err;
    llama_make(&t, variant);
    llama_write(&t, variant);
    snprintf(path, sizeof path, "%s/model.ft", t.folder);
    ft_conversion *conversion = converted_open(&t, &(ft_convert_options){ 0 });
    if (conversion == NULL || converted_write(conversion, path) != FT_OK)
        bail_out("%s", converted_problem(0));
    ft_conversion_close(conversion);
    if (ft_model_open(&model, path, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    compare(model, variant);
    ft_model_close(model);
    tiny_remove(&t);
}

int main(void)
{
    json_t *variants = golden_json("llama-variants.json"), *variant;
    size_t i;
    json_array_foreach(variants, i, variant) test_variant(variant);
    json_decref(variants);
    return done_testing();
}
