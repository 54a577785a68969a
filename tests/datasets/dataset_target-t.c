/*
 * dataset_target-t.c - datasets of encoder-decoders: sources and targets.
 *
 * The model has 97 tokens, 40 positions, padding id 1 and start token 2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/dataset.h"
#include "runtime/mem.h"
#include "runtime/container/safetensors.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/translator_file.h"
#include "tests/lib/models/variant.h"

#include <stdlib.h>

enum { ROWS = 2, SOURCE = 4, TARGET = 4 };

static ft_model *model;
static char path[128];
static ft_error err;

static const int32_t ids[ROWS * SOURCE] = { 5, 1, 7, 2, 9, 2, 1, 1 };
static const int32_t labels[ROWS * TARGET] = { 5, 6, 7, 2, 8, 2, -100, -100 };

static ft_named_tensor matrix(const char *name, int64_t rows, int64_t cols, const int32_t *data)
{
    return (ft_named_tensor){
        name,
        { .dtype = FT_I32, .ndim = 2, .dim = { rows, cols }, .data = (void *) (uintptr_t) data }
    };
}

static ft_status reads(ft_dataset *out, const ft_named_tensor *tensors, size_t count)
{
    if (ft_safetensors_write(path, tensors, count, true, &err) != FT_OK)
        bail_out("%s", err.text);
    return ft_dataset_read(out, path, model, &err);
}

static bool is(const int32_t *found, const int32_t *expected, size_t count)
{
    return found != NULL && memcmp(found, expected, count * sizeof *found) == 0;
}

static void test_sources(void)
{
    static const int32_t shown[ROWS * SOURCE] = { 1, 0, 1, 1, 1, 1, 0, 0 };
    const ft_named_tensor t = matrix("input_ids", ROWS, SOURCE, ids);
    ft_dataset data;
    ok(reads(&data, &t, 1) == FT_OK && is(data.mask, shown, ROWS * SOURCE),
       "padding of sources is recognized by its id");
    ok(data.target_ids == NULL && data.target_mask == NULL &&
           ft_dataset_max_context(&data) == SOURCE,
       "a dataset may have no targets");
    ft_dataset_fini(&data);
}

static void test_labels(void)
{
    static const int32_t shifted[ROWS * TARGET] = { 2, 5, 6, 7, 2, 8, 2, 1 };
    static const int32_t shown[ROWS * TARGET] = { 1, 1, 1, 1, 1, 1, 1, 0 };
    static const int32_t what_follows[ROWS * TARGET] = { 5, 6, 7, 2, 8, 2, -1, -1 };
    const ft_named_tensor t[] = { matrix("input_ids", ROWS, SOURCE, ids),
                                  matrix("labels", ROWS, TARGET, labels) };
    ft_dataset data;
    if (reads(&data, t, 2) != FT_OK)
        bail_out("%s", err.text);
    ok(is(data.target_ids, shifted, ROWS * TARGET) && is(data.target_mask, shown, ROWS * TARGET),
       "labels are shifted right after the start token");
    ok(is(data.target_labels, what_follows, ROWS * TARGET),
       "target labels follow the targets and exclude -100");
    ok(ft_dataset_source_tokens(&data) == 5 && ft_dataset_target_tokens(&data) == 7,
       "source and target tokens are counted separately");
    ok(ft_dataset_row_tokens(&data, 0) == 4 && ft_dataset_row_tokens(&data, 1) == 3,
       "a row counts as many tokens as the longer of source and target");
    ft_dataset second = ft_dataset_slice(&data, 1, 9);
    ok(second.rows == 1 && second.target_cols == TARGET && second.ids == data.ids + SOURCE &&
           second.target_ids == data.target_ids + TARGET &&
           second.target_mask == data.target_mask + TARGET &&
           second.target_labels == data.target_labels + TARGET,
       "a slice has the targets of its rows");
    ft_dataset_fini(&data);
}

static void test_decoder_ids(void)
{
    static const int32_t given[ROWS * 5] = { 1, 5, 6, 1, 1, 1, 7, 1, 8, 1 };
    static const int32_t shown[ROWS * 5] = { 1, 1, 1, 0, 0, 1, 1, 0, 1, 0 };
    static const int32_t mask[ROWS * 5] = { 1, 1, 1, 1, 0, 1, 0, 0, 0, 0 };
    static const int32_t follows[ROWS * 5] = { -1, 5, 6, -1, -1, -1, 7, -1, 8, -1 };
    const ft_named_tensor t[] = { matrix("input_ids", ROWS, SOURCE, ids),
                                  matrix("labels", ROWS, TARGET, labels),
                                  matrix("decoder_input_ids", ROWS, 5, given),
                                  matrix("decoder_attention_mask", ROWS, 5, mask) };
    ft_dataset data;
    if (reads(&data, t, 3) != FT_OK)
        bail_out("%s", err.text);
    ok(is(data.target_ids, given, ROWS * 5) && is(data.target_mask, shown, ROWS * 5),
       "decoder_input_ids take precedence over labels and may start with the padding id");
    ok(data.target_labels == NULL,
       "labels of a different shape are not used with decoder_input_ids");
    ok(ft_dataset_max_context(&data) == 5 && ft_dataset_max_length(&data) == 5,
       "the context holds the longest target");
    ft_dataset_fini(&data);
    if (reads(&data, t, 4) != FT_OK)
        bail_out("%s", err.text);
    ok(is(data.target_mask, mask, ROWS * 5), "decoder_attention_mask masks the targets");
    ft_dataset_fini(&data);
    const ft_named_tensor both[] = { t[0], t[2], matrix("labels", ROWS, 5, given) };
    if (reads(&data, both, 3) != FT_OK)
        bail_out("%s", err.text);
    ok(is(data.target_ids, given, ROWS * 5) && is(data.target_labels, follows, ROWS * 5),
       "labels of the shape of decoder_input_ids become target labels, except at padding");
    ft_dataset_fini(&data);
}

/* `bad` is refused beside valid sources. */
static void refused(ft_named_tensor bad, ft_status status, const char *text)
{
    const ft_named_tensor t[] = { matrix("input_ids", ROWS, SOURCE, ids), bad };
    ft_dataset data;
    char whole[256];
    ft_status found = reads(&data, t, 2);
    snprintf(whole, sizeof whole, "%s: %s", path, text);
    is_str(found == status ? err.text : ft_status_name(found), whole,
           "a dataset is refused with: %s", text);
    ok(data.ids == NULL && data.target_ids == NULL, "a refused dataset leaves nothing to free");
}

static void test_refused(void)
{
    static const int32_t wide[ROWS * 41] = { 2 }, high[ROWS * TARGET] = { 2, 97 };
    static const int32_t low[ROWS * TARGET] = { 5, -101 };
    refused(matrix("labels", 1, 8, labels), FT_ESHAPE,
            "labels: shape [1, 8], expected [2, positions]");
    refused(matrix("labels", ROWS, 41, wide), FT_ELIMIT,
            "labels: 41 positions, but the model has 40");
    refused(matrix("labels", ROWS, TARGET, low), FT_EFORMAT,
            "labels[0][1] is -101, expected -100 to 96");
    refused(matrix("decoder_input_ids", ROWS, TARGET, high), FT_EFORMAT,
            "decoder_input_ids[0][1] is 97, expected 0 to 96");
}

int main(void)
{
    json_t *variants = golden_json("translator-variants.json");
    const json_t *first = json_array_get(variants, 0);
    tiny t;
    translator_make(&t, first);
    model = variant_open(&t, first);
    snprintf(path, sizeof path, "%s/data.safetensors", t.folder);
    test_sources();
    test_labels();
    test_decoder_ids();
    test_refused();
    ft_model_close(model);
    tiny_remove(&t);
    json_decref(variants);
    return done_testing();
}
