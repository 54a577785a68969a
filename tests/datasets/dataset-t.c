/*
 * dataset-t.c - datasets: reading, errors, and splitting into batches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/dataset.h"
#include "runtime/data/encoded_examples.h"
#include "runtime/mem.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/tiny_tokenizer.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static ft_model *model; /* 20 tokens, 10 positions, 2 types, 3 labels */
static char path[128];
static ft_error err;

/* ---- Reading ------------------------------------------------------------------------------ */

static ft_named_tensor named(const char *name, ft_dtype dtype, int64_t rows, int64_t cols,
                             const void *data)
{
    ft_named_tensor n = { .name = name, .tensor = { .dtype = dtype, .ndim = cols < 0 ? 1 : 2 } };
    n.tensor.dim[0] = rows;
    n.tensor.dim[1] = cols < 0 ? 0 : cols;
    n.tensor.data = (void *) (uintptr_t) data;
    return n;
}

static ft_status reads(ft_dataset *out, const ft_named_tensor *tensors, size_t count)
{
    memset(&err, 0, sizeof err);
    if (ft_safetensors_write(path, tensors, count, true, &err) != FT_OK)
        bail_out("%s", err.text);
    return ft_dataset_read(out, path, model, &err);
}

/* These tensors are refused with this error after the path, and leave nothing to free. */
static void refused(const ft_named_tensor *tensors, size_t count, ft_status status,
                    const char *text)
{
    ft_dataset data;
    char whole[256];
    ft_status found = reads(&data, tensors, count);
    snprintf(whole, sizeof whole, "%s: %s", path, text);
    ok(found == status && strcmp(err.text, whole) == 0 && data.ids == NULL && data.mask == NULL,
       "a dataset is refused with: %s", text);
    if (strcmp(err.text, whole) != 0)
        diag("found %s \"%s\"", ft_status_name(found), err.text);
}

static const int32_t ids[6] = { 2, 3, 4, 5, 6, 19 }, high[6] = { 2, 3, 4, 5, 20, 7 };
static const int32_t low[6] = { 2, -1, 4, 5, 6, 7 }, many[11] = { 1 };
static const int32_t mask[6] = { 1, 1, 0, 0, 1, 0 }, empty[6] = { 1, 0, 0, 0, 0, 0 };
static const int32_t types[6] = { 0, 1, 0, 0, 2, 0 }, labels[3] = { 0, 2, 3 };
static const int64_t wide[6] = { 2, 3, 4, (int64_t) 1 << 32, 6, 7 };
static const float real[6] = { 1, 1, 1, 1, 1, 1 };

static void test_refused_ids(void)
{
    ft_named_tensor t = named("ids", FT_I32, 2, 3, ids);
    refused(&t, 1, FT_EFORMAT, "no tensor \"input_ids\"");
    t = named("input_ids", FT_F32, 2, 3, real);
    refused(&t, 1, FT_EFORMAT, "input_ids: dtype F32, expected I32 or I64");
    t = named("input_ids", FT_I32, 6, -1, ids);
    refused(&t, 1, FT_ESHAPE, "input_ids: shape [6], expected [samples, positions]");
    t = named("input_ids", FT_I32, 0, 3, ids);
    refused(&t, 1, FT_ESHAPE, "input_ids: shape [0, 3]: there are no samples");
    t = named("input_ids", FT_I32, 1, 11, many);
    refused(&t, 1, FT_ELIMIT, "input_ids: 11 positions, but the model has 10");
    t = named("input_ids", FT_I32, 2, 3, high);
    refused(&t, 1, FT_EFORMAT, "input_ids[1][1] is 20, expected 0 to 19");
    t = named("input_ids", FT_I32, 2, 3, low);
    refused(&t, 1, FT_EFORMAT, "input_ids[0][1] is -1, expected 0 to 19");
    t = named("input_ids", FT_I64, 2, 3, wide);
    refused(&t, 1, FT_EFORMAT, "input_ids[1][0] is 4294967296, expected 0 to 19");
}

static void test_refused_rest(void)
{
    ft_named_tensor t[2] = { named("input_ids", FT_I32, 2, 3, ids) };
    t[1] = named("attention_mask", FT_I32, 3, 2, mask);
    refused(t, 2, FT_ESHAPE, "attention_mask: shape [3, 2], expected [2, 3]");
    t[1] = named("attention_mask", FT_F32, 2, 3, real);
    refused(t, 2, FT_EFORMAT, "attention_mask: dtype F32, expected I32 or I64");
    t[1] = named("attention_mask", FT_I32, 2, 3, ids);
    refused(t, 2, FT_EFORMAT, "attention_mask[0][0] is 2, expected 0 to 1");
    t[1] = named("attention_mask", FT_I32, 2, 3, empty);
    refused(t, 2, FT_EFORMAT, "attention_mask: row 1 is all padding");
    t[1] = named("token_type_ids", FT_I32, 2, 2, types);
    refused(t, 2, FT_ESHAPE, "token_type_ids: shape [2, 2], expected [2, 3]");
    t[1] = named("token_type_ids", FT_I32, 2, 3, types);
    refused(t, 2, FT_EFORMAT, "token_type_ids[1][1] is 2, expected 0 to 1");
    t[1] = named("labels", FT_I32, 3, -1, labels);
    refused(t, 2, FT_ESHAPE, "labels: shape [3], expected [2]");
    t[1] = named("labels", FT_I32, 2, -1, labels + 1);
    refused(t, 2, FT_EFORMAT, "labels[1] is 3, expected 0 to 2");
}

static void test_lengths(void)
{
    const int32_t good[2] = { 1, 3 }, none[2] = { 0, 3 }, long_one[2] = { 2, 4 };
    ft_named_tensor t[3] = { named("input_ids", FT_I32, 2, 3, ids),
                             named("lengths", FT_I32, 2, -1, good),
                             named("attention_mask", FT_I32, 2, 3, mask) };
    ft_dataset data;
    ok(reads(&data, t, 1) == FT_OK && !data.has_mask && ft_dataset_tokens(&data) == 6,
       "a dataset without a mask or lengths has no padding");
    ft_dataset_fini(&data);
    ok(reads(&data, t, 2) == FT_OK && data.has_mask && data.mask[0] == 1 && data.mask[1] == 0 &&
           data.mask[2] == 0 && ft_dataset_row_tokens(&data, 1) == 3,
       "lengths count the tokens at the start of each row");
    ft_dataset_fini(&data);
    ok(reads(&data, t, 3) == FT_OK && memcmp(data.mask, mask, sizeof mask) == 0,
       "the attention mask takes precedence over lengths");
    ft_dataset_fini(&data);
    t[1] = named("lengths", FT_I32, 2, -1, none);
    refused(t, 2, FT_EFORMAT, "lengths[0] is 0, expected 1 to 3");
    t[1] = named("lengths", FT_I32, 2, -1, long_one);
    refused(t, 2, FT_EFORMAT, "lengths[1] is 4, expected 1 to 3");
    t[1] = named("lengths", FT_I32, 1, -1, good);
    refused(t, 2, FT_ESHAPE, "lengths: shape [1], expected [2]");
}

static void test_cut(void)
{
    const int32_t row[22] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const int32_t lengths[2] = { 7, 2 };
    ft_named_tensor t[2] = { named("input_ids", FT_I32, 2, 11, row),
                             named("lengths", FT_I32, 2, -1, lengths) };
    ft_dataset data;
    if (ft_safetensors_write(path, t, 2, true, &err) != FT_OK)
        bail_out("%s", err.text);
    ok(ft_dataset_read_chunked(&data, path, model, 3, &err) == FT_OK && data.rows == 4 &&
           data.cols == 3,
       "rows longer than the model's positions are split into chunks");
    const int32_t expected[12] = { 1, 2, 3, 4, 5, 6, 7, 0, 0, 12, 13, 0 };
    const int32_t tokens[12] = { 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0 };
    ok(memcmp(data.ids, expected, sizeof expected) == 0 &&
           memcmp(data.mask, tokens, sizeof tokens) == 0,
       "each row is split into its own chunks, padded on the right");
    ft_dataset_fini(&data);
    ok(ft_dataset_read_chunked(&data, path, model, 100, &err) == FT_OK && data.rows == 2 &&
           data.cols == 11,
       "rows shorter than the chunk size are not extended");
    ft_dataset_fini(&data);
}

static void test_read(void)
{
    const int64_t wide_ids[6] = { 2, 3, 4, 5, 6, 19 };
    const ft_named_tensor all[] = {
        named("input_ids", FT_I64, 2, 3, wide_ids),   named("attention_mask", FT_I32, 2, 3, mask),
        named("token_type_ids", FT_I32, 2, 3, empty), named("labels", FT_I32, 2, -1, labels),
        named("other", FT_F32, 2, 3, real),
    };
    ft_dataset data;
    is_int(reads(&data, all, FT_COUNT(all)), FT_OK, "a dataset with all tensors is read");
    ok(data.rows == 2 && data.cols == 3 && memcmp(data.ids, ids, sizeof ids) == 0 &&
           memcmp(data.mask, mask, sizeof mask) == 0 &&
           memcmp(data.types, empty, sizeof empty) == 0 && data.labels[1] == 2,
       "all values of a dataset are read");
    ok(ft_dataset_row_tokens(&data, 0) == 2 && ft_dataset_row_tokens(&data, 1) == 1 &&
           ft_dataset_tokens(&data) == 3,
       "positions with mask 1 count as tokens");
    ft_dataset_fini(&data);
    is_int(reads(&data, all, 1), FT_OK, "a dataset of only input_ids is read");
    ok(ft_dataset_tokens(&data) == 6 && data.types == NULL && data.labels == NULL,
       "without a mask every position is a token");
    ft_dataset_fini(&data);
    is_int(ft_dataset_read(&data, "/nowhere/data.safetensors", model, &err), FT_EIO,
           "reading a missing file fails with FT_EIO");
}

/* ---- Batches ------------------------------------------------------------------------------- */

static void test_batches(void)
{
    int32_t some_ids[12] = { 0 }, some_mask[12] = { 1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0 };
    int32_t some_labels[4] = { 0, 1, 2, 0 };
    const ft_dataset data = { .rows = 4,
                              .cols = 3,
                              .ids = some_ids,
                              .mask = some_mask,
                              .labels = some_labels,
                              .has_mask = true };
    is_int((long long) ft_dataset_batch_rows(&data, 0, 3, 10), 2,
           "a batch ends before it exceeds the token limit");
    is_int((long long) ft_dataset_batch_rows(&data, 0, 6, 10), 3,
           "a batch may reach the token limit exactly");
    is_int((long long) ft_dataset_batch_rows(&data, 0, 100, 10), 4,
           "a batch ends at the end of the dataset");
    is_int((long long) ft_dataset_batch_rows(&data, 3, 100, 10), 1,
           "a batch may start within the dataset");
    is_int((long long) ft_dataset_batch_rows(&data, 0, 100, 2), 2, "a batch ends at the row limit");
    is_int((long long) ft_dataset_batch_rows(&data, 2, 1, 10), 1,
           "a row that exceeds the token limit is a batch of its own");

    ft_dataset part = ft_dataset_slice(&data, 1, 2);
    ok(part.rows == 2 && part.ids == some_ids + 3 && part.mask == some_mask + 3 &&
           part.labels == some_labels + 1 && part.types == NULL,
       "a slice is a view of its rows");
    is_int((long long) ft_dataset_slice(&data, 3, 9).rows, 1,
           "a slice ends at the end of the dataset");
}

static void test_bind(void)
{
    int32_t some_mask[6] = { 1, 1, 1, 1, 1, 0 }, some_types[6] = { 0, 1, 1, 0, 0, 0 };
    const ft_dataset data = { .rows = 2,
                              .cols = 3,
                              .ids = (int32_t *) (uintptr_t) ids,
                              .mask = some_mask,
                              .types = some_types,
                              .has_mask = true };
    const model_input second = { 1, 3, ids + 3, some_mask + 3, some_types + 3 };
    size_t n, m;
    ft_session *session = calibrated_session(model, &(ft_session_options){ .threads = 1 });
    if (ft_dataset_set_inputs(&data, 1, 1, session, &err) != FT_OK ||
        ft_session_run(session, &err) != FT_OK)
        bail_out("%s", err.text);
    float *found = calibrated_get(session, "logits", &n);
    float *expected = calibrated_result(model, &second, "logits", &m);
    ok(n == m && memcmp(found, expected, n * sizeof *found) == 0,
       "inputs set from a dataset give the same outputs as inputs set directly");
    free(found);
    free(expected);
    ft_session_close(session);
}

/* ---- Text --------------------------------------------------------------------------------- */

/* "a" is one token, enclosed in [CLS] and [SEP]: the last text has 12 tokens, and the model 10
 * positions. */
static char *const texts[] = { "unable", "", "a a a a a a a a", "a a a a a a a a a a" };

/* Encode the first `count` texts as a dataset. */
static ft_status encode(ft_dataset *out, const ft_tokenizer *tokenizer, size_t count, bool truncate)
{
    const ft_example_encoding_options options = { .truncate = truncate };
    ft_examples examples;
    ft_encoded_examples encoded = { 0 };
    *out = (ft_dataset){ 0 };
    ft_status status = ft_examples_copy(&examples, texts, count, false, &err);
    if (status == FT_OK)
        status = ft_examples_encode(&encoded, &examples, tokenizer, model, &options, &err);
    if (status == FT_OK)
        status = ft_dataset_from_encodings(out, &encoded, model, &err);
    ft_encoded_examples_fini(&encoded);
    ft_examples_fini(&examples);
    return status;
}

static void test_encode(const ft_tokenizer *tokenizer)
{
    const int32_t expected[2][4] = { { 2, 5, 6, 3 }, { 2, 3, 0, 0 } };
    const int32_t tokens[2][4] = { { 1, 1, 1, 1 }, { 1, 1, 0, 0 } };
    ft_dataset data;
    is_int(encode(&data, tokenizer, 2, false), FT_OK, "texts are encoded as a dataset");
    ok(data.rows == 2 && data.cols == 4 && memcmp(data.ids, expected, sizeof expected) == 0 &&
           memcmp(data.mask, tokens, sizeof tokens) == 0,
       "each text is a row, padded on the right to the longest");
    ft_dataset_fini(&data);
    is_int(encode(&data, tokenizer, 3, false), FT_OK, "a text may use all positions of the model");
    is_int((long long) data.cols, 10, "a text that uses all positions has a row of 10 tokens");
    ft_dataset_fini(&data);
}

static void test_truncate(const ft_tokenizer *tokenizer)
{
    const int32_t cut[10] = { 2, 14, 14, 14, 14, 14, 14, 14, 14, 3 };
    ft_dataset data;
    is_int(encode(&data, tokenizer, 4, false), FT_ELIMIT,
           "a text longer than the model's positions is refused");
    is_str(err.text, "the command line: line 4: 12 tokens, but the model has 10 positions",
           "the error names the number of the text");
    ok(data.ids == NULL && data.mask == NULL, "a refused text leaves no data");
    is_int(encode(&data, tokenizer, 4, true), FT_OK,
           "a text that is too long is truncated on request");
    ok(data.cols == 10 && memcmp(data.ids + 30, cut, sizeof cut) == 0 &&
           ft_dataset_row_tokens(&data, 3) == 10,
       "truncation keeps the closing special token");
    ft_dataset_fini(&data);
}

/* Windows of a long second text overlap, and each has the whole first text. */
static void test_windows(const ft_tokenizer *tokenizer)
{
    static char *const pair[] = { "unable\ta a a a a a a" };
    const ft_example_encoding_options options = { .windows = true, .stride = 2, .offsets = true };
    ft_examples examples;
    ft_encoded_examples encoded;
    if (ft_examples_copy(&examples, pair, 1, true, &err) != FT_OK ||
        ft_examples_encode(&encoded, &examples, tokenizer, model, &options, &err) != FT_OK)
        bail_out("%s", err.text);
    is_int((long long) encoded.count, 2, "a context of 7 tokens fills two windows of 5");
    const ft_encoding *first = encoded.row[0], *second = encoded.row[1];
    ok(first->count == 10 && second->count == 9 && first->ids[1] == 5 && second->ids[1] == 5,
       "each window has the question and at most as many tokens as the model has positions");
    ok(first->offsets[8].start == 8 && second->offsets[4].start == 6,
       "windows overlap by the stride, and offsets are those of the whole context");
    ft_encoded_examples_fini(&encoded);
    ft_examples_fini(&examples);
}

int main(void)
{
    tiny t;
    calibrated files;
    ft_tokenizer *tokenizer = tiny_open("", "");
    tiny_make_classifier(&t);
    calibrated_make(&files, &t);
    model = calibrated_open(files.real, NULL);
    snprintf(path, sizeof path, "%s/data.safetensors", t.folder);
    test_refused_ids();
    test_refused_rest();
    test_lengths();
    test_cut();
    test_read();
    test_batches();
    test_bind();
    test_encode(tokenizer);
    test_truncate(tokenizer);
    test_windows(tokenizer);
    ft_tokenizer_close(tokenizer);
    ft_model_close(model);
    tiny_remove(&t);
    return done_testing();
}
