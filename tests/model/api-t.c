/*
 * api-t.c - the public API: refused calls, their messages, and the state that they leave.
 *
 * The model is a tiny classifier: 20 tokens, 10 positions, 2 types, 3 labels, hidden 8.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"
#include "runtime/mem.h"
#include "tests/lib/models/calibrated.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ft_error err;

/* Checks that a call was refused with this status and message. */
static void refused(ft_status found, ft_status expected, const char *text)
{
    ok(found == expected && strcmp(err.text, text) == 0, "the call is refused with the message: %s",
       text);
    if (found != expected)
        diag("found %s, expected %s", ft_status_name(found), ft_status_name(expected));
    if (strcmp(err.text, text) != 0)
        diag("found \"%s\"", found == FT_OK ? "no error" : err.text);
    memset(&err, 0, sizeof err);
}

static ft_status set(ft_session *session, const char *name, int64_t rows, int64_t cols,
                     const int32_t *data)
{
    ft_tensor tensor = { .dtype = FT_I32, .ndim = 2, .dim = { rows, cols } };
    tensor.data = (void *) (uintptr_t) data;
    return ft_session_set(session, name, &tensor, &err);
}

/* Sets the inputs and runs; one of the calls is expected to fail. */
static ft_status try(ft_session *session, const model_input *input)
{
    ft_status status = set(session, "input_ids", input->rows, input->cols, input->ids);
    if (status == FT_OK && input->mask != NULL)
        status = set(session, "attention_mask", input->rows, input->cols, input->mask);
    if (status == FT_OK && input->types != NULL)
        status = set(session, "token_type_ids", input->rows, input->cols, input->types);
    return status == FT_OK ? ft_session_run(session, &err) : status;
}

/* The text after "PATH: ". */
static const char *after_path(const char *text, const char *path)
{
    size_t length = strlen(path);
    return strncmp(text, path, length) == 0 ? text + length : text;
}

/* ---- Models ------------------------------------------------------------------------------- */

static void test_open(const calibrated *files)
{
    ft_model *model;
    is_int(ft_model_open(&model, "/nowhere/model.ft", NULL, &err), FT_EIO,
           "ft_model_open() returns FT_EIO for a missing file");
    ok(model == NULL, "ft_model_open() sets the model to NULL when it fails");
    has(err.text, "/nowhere/model.ft", "the error for a missing file names the path");
    is_int(ft_model_open(&model, files->real, &(ft_model_options){ .fake = true }, &err), FT_EARG,
           "ft_model_open() refuses fake quantization of a float artifact");
    is_str(after_path(err.text, files->real),
           ": has state float, but --fake needs an int8 artifact",
           "the error states the artifact state found and expected");
    refused(ft_model_open(&model, files->real, &(ft_model_options){ .device = "gpu" }, &err),
            FT_EARG, "device gpu: unknown, expected \"cpu\" or \"cuda:N\"");
    refused(ft_model_open(&model, files->real, &(ft_model_options){ .device = "cpu:1" }, &err),
            FT_EDEVICE, "device cpu:1: there is one cpu device");
    static const char *const words[] = { "cpus", "cudas", "cuda:", "cuda:x", "cuda:-1", "" };
    for (size_t i = 0; i < FT_COUNT(words); i++)
        is_int(ft_model_open(&model, files->real, &(ft_model_options){ .device = words[i] }, &err),
               FT_EARG, "ft_model_open() refuses the device \"%s\"", words[i]);
    is_int(ft_model_open(&model, files->real, &(ft_model_options){ .device = "cuda:99" }, &err),
           FT_EDEVICE, "ft_model_open() returns FT_EDEVICE for the absent device \"cuda:99\"");
    is_int(ft_model_open(&model, files->real, &(ft_model_options){ .device = "cpu" }, NULL), FT_OK,
           "ft_model_open() accepts the device \"cpu\" and a NULL error");
    ft_model_close(model);
    ft_model_close(NULL);
}

static void test_info(const ft_model *real, const ft_model *quantized)
{
    ft_model_info info = ft_model_get_info(real);
    is_str(info.family, "bert", "ft_model_get_info() reports the family");
    is_str(info.precision, "float", "ft_model_get_info() reports the precision of a float model");
    is_str(ft_model_get_info(quantized).precision, "int8",
           "ft_model_get_info() reports the precision of an int8 model");
    ok(info.layers == 2 && info.hidden == 8 && info.heads == 2 && info.vocabulary == 20 &&
           info.max_positions == 10 && info.labels == 3 && !info.embedding,
       "ft_model_get_info() reports the sizes of the model");
    is_int((long long) info.weight_bytes, 1435 * 4,
           "ft_model_get_info() reports the bytes of all weights");
    is_str(ft_model_label(real, 1), "good",
           "ft_model_label() returns the label name of the checkpoint");
    ok(ft_model_label(real, 3) == NULL && ft_model_label(real, -1) == NULL,
       "ft_model_label() returns NULL for an index without a label");
}

static void test_open_session(const ft_model *model, const calibrated *files)
{
    static const char *const unknown[] = { "layer.0.ffn.act", "layer.7.ffn.act", NULL };
    static const char *const swallowed[] = { "layer.0.ffn.up", NULL };
    const ft_session_options negative[] = {
        { .threads = -1 },
        { .max_tokens = -1 },
        { .max_sequences = -1 },
    };
    ft_session *session;
    for (size_t i = 0; i < FT_COUNT(negative); i++)
        refused(ft_session_open(&session, model, &negative[i], &err), FT_EARG,
                "threads, tokens and sequences cannot be negative");
    ok(session == NULL, "ft_session_open() sets the session to NULL when it fails");
    refused(ft_session_open(&session, model,
                            &(ft_session_options){ .max_tokens = (int64_t) 1 << 31 }, &err),
            FT_ELIMIT, "a forward pass has at most 2147483647 tokens and sequences");
    refused(ft_session_open(&session, model,
                            &(ft_session_options){ .max_sequences = (int64_t) 1 << 31 }, &err),
            FT_ELIMIT, "a forward pass has at most 2147483647 tokens and sequences");
    refused(ft_session_open(&session, model, &(ft_session_options){ .threads = 1025 }, &err),
            FT_ELIMIT, "1025 threads, but a session has at most 1024");
    is_int(ft_session_open(&session, model, &(ft_session_options){ .keep = unknown }, &err),
           FT_EARG, "ft_session_open() refuses to keep an unknown value");
    is_str(after_path(err.text, files->real), ": no value \"layer.7.ffn.act\" in the plan",
           "the error names the unknown value");
    is_int(ft_session_open(&session, model, &(ft_session_options){ .keep = swallowed }, &err),
           FT_EARG, "ft_session_open() refuses to keep a value inside a fused operation");
    is_str(after_path(err.text, files->real),
           ": value \"layer.0.ffn.up\" is not stored, since it is inside a fused operation; use "
           "no_fuse",
           "the error names the fused value and suggests no_fuse");
    ft_session_close(NULL);
}

/* ---- Inputs ------------------------------------------------------------------------------- */

static void test_set(ft_session *session)
{
    const int32_t ids[12] = { 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 };
    float real[4] = { 0 };
    ft_tensor tensor = { .dtype = FT_F32, .ndim = 2, .dim = { 1, 4 }, .data = real };
    refused(set(session, "attention_mask", 1, 4, ids), FT_EARG,
            "attention_mask: set input_ids first");
    refused(ft_session_run(session, &err), FT_EARG, "input_ids is not set");
    refused(set(session, "positions", 1, 4, ids), FT_EARG,
            "positions: the model has no such input");
    refused(ft_session_set(session, "input_ids", &tensor, &err), FT_EARG,
            "input_ids: dtype F32, expected I32 or I64");
    tensor = (ft_tensor){ .dtype = FT_I32, .ndim = 1, .dim = { 4 }, .data = real };
    refused(ft_session_set(session, "input_ids", &tensor, &err), FT_ESHAPE,
            "input_ids: shape [4], expected [sequences, positions]");
    refused(set(session, "input_ids", 0, 4, ids), FT_ESHAPE,
            "input_ids: shape [0, 4], expected [sequences, positions]");
    refused(set(session, "input_ids", -1, 4, ids), FT_ESHAPE,
            "input_ids: shape [-1, 4], expected [sequences, positions]");
    refused(set(session, "input_ids", 4, 3, ids), FT_ELIMIT,
            "input_ids: 4 sequences, but the session allows 3");
    refused(set(session, "input_ids", 1, 11, ids), FT_ELIMIT,
            "input_ids: sequences of 11 positions, but the model has 10");
    is_int(set(session, "input_ids", 2, 3, ids), FT_OK,
           "ft_session_set() accepts valid ids after it has refused others");
    refused(set(session, "attention_mask", 3, 2, ids), FT_ESHAPE,
            "attention_mask: shape [3, 2], expected that of input_ids [2, 3]");
    refused(set(session, "token_type_ids", 2, 2, ids), FT_ESHAPE,
            "token_type_ids: shape [2, 2], expected that of input_ids [2, 3]");
    is_int(ft_session_run(session, &err), FT_OK,
           "refused inputs leave the current inputs unchanged");
}

static void test_run(ft_session *session)
{
    const int32_t high[6] = { 2, 3, 4, 5, 20, 7 }, low[6] = { 2, 3, -1, 5, 6, 7 };
    const int32_t fine[6] = { 2, 3, 4, 5, 6, 7 }, types[6] = { 0, 0, 0, 1, 2, 0 };
    const int32_t empty[6] = { 1, 1, 1, 0, 0, 0 }, late[6] = { 1, 1, 1, 0, 1, 1 };
    const int32_t first[6] = { 1, 1, 1, 1, 0, 0 };
    const int32_t many[9] = { 2, 2, 2, 2, 2, 2, 2, 2, 2 };
    refused(try(session, &(model_input){ 2, 3, high, NULL, NULL }), FT_EARG,
            "input_ids[1][1]: 20 is outside 0 to 19");
    refused(try(session, &(model_input){ 2, 3, low, NULL, NULL }), FT_EARG,
            "input_ids[0][2]: -1 is outside 0 to 19");
    refused(try(session, &(model_input){ 2, 3, fine, NULL, types }), FT_EARG,
            "token_type_ids[1][1]: 2 is outside 0 to 1");
    refused(try(session, &(model_input){ 2, 3, fine, empty, NULL }), FT_EARG,
            "attention_mask: sequence 1 has no token");
    refused(try(session, &(model_input){ 2, 3, fine, late, NULL }), FT_EARG,
            "attention_mask: sequence 1 masks its first token, which the model pools");
    refused(try(session, &(model_input){ 3, 3, many, NULL, NULL }), FT_ELIMIT,
            "input_ids: more than the 8 tokens that the session allows");
    is_int(try(session, &(model_input){ 2, 3, high, first, NULL }), FT_OK,
           "ids at masked positions may be out of range");
    is_int(try(session, &(model_input){ 2, 3, fine, NULL, NULL }), FT_OK,
           "setting new ids discards the previous mask and token types");
    size_t count;
    free(calibrated_get(session, "last_hidden_state", &count));
    is_int((long long) count, 2 * 3 * 8, "a session remains usable after it has refused inputs");
}

static void test_i64(const ft_model *model)
{
    enum { ROWS = 2, COLS = 3 };
    const int32_t ids[ROWS * COLS] = { 2, 3, 4, 5, 6, 7 };
    char wide[ROWS * COLS * sizeof(int64_t) + 1]; /* not aligned, as in a mapped file */
    ft_tensor tensor = { .dtype = FT_I64, .ndim = 2, .dim = { ROWS, COLS }, .data = wide + 1 };
    for (size_t i = 0; i < ROWS * COLS; i++)
        memcpy(wide + 1 + i * sizeof(int64_t), &(int64_t){ ids[i] }, sizeof(int64_t));
    size_t n, m;
    float *expected =
        calibrated_result(model, &(model_input){ ROWS, COLS, ids, NULL, NULL }, "logits", &n);
    ft_session *session = calibrated_session(model, &(ft_session_options){ .threads = 1 });
    if (ft_session_set(session, "input_ids", &tensor, &err) != FT_OK ||
        ft_session_run(session, &err) != FT_OK)
        bail_out("%s", err.text);
    float *found = calibrated_get(session, "logits", &m);
    ok(n == m && memcmp(found, expected, n * sizeof *found) == 0,
       "I64 ids give the logits of I32 ids");
    free(expected);
    free(found);
    ft_session_close(session);
}

static void test_numbers(ft_session *session)
{
    int64_t wide[4] = { 2, 3, (int64_t) 1 << 32, 5 };
    const int32_t ids[4] = { 2, 3, 4, 5 }, mask[4] = { 1, 1, 2, 1 };
    ft_tensor tensor = { .dtype = FT_I64, .ndim = 2, .dim = { 2, 2 }, .data = wide };
    is_int(ft_session_set(session, "input_ids", &tensor, &err), FT_OK,
           "ft_session_set() accepts any id because its position may be masked");
    refused(ft_session_run(session, &err), FT_EARG,
            "input_ids[1][0]: 4294967296 is outside 0 to 19");
    refused(try(session, &(model_input){ 2, 2, ids, mask, NULL }), FT_EARG,
            "attention_mask[1][0]: 2, expected 0 or 1");
    is_int(ft_session_run(session, &err), FT_OK, "a refused mask is not applied");
}

/* ---- Outputs ------------------------------------------------------------------------------ */

static void test_get(const ft_model *model)
{
    static const char *const keep[] = { "layer.0.ffn.act", NULL };
    const int32_t ids[6] = { 2, 3, 4, 5, 6, 7 }, mask[6] = { 1, 1, 1, 1, 0, 0 };
    ft_session *session = calibrated_session(model, &(ft_session_options){ .keep = keep });
    ft_tensor out = { .data = NULL };
    refused(ft_session_get(session, "logits", &out, &err), FT_EARG,
            "logits: call ft_session_run() after setting the inputs");
    calibrated_run(session, &(model_input){ 2, 3, ids, mask, NULL });
    refused(ft_session_get(session, "embedding", &out, &err), FT_EARG,
            "embedding: neither an output of the model nor a value named in options.keep");
    refused(ft_session_get(session, "layer.1.ffn.act", &out, &err), FT_EARG,
            "layer.1.ffn.act: neither an output of the model nor a value named in options.keep");
    is_int(ft_session_get(session, "logits", &out, &err), FT_OK,
           "ft_session_get() without a data pointer returns only the shape");
    ok(out.dtype == FT_F32 && out.ndim == 2 && out.dim[0] == 2 && out.dim[1] == 3,
       "logits have the dtype F32 and the shape [sequences, labels]");
    is_int(ft_session_get(session, "last_hidden_state", &out, &err), FT_OK,
           "ft_session_get() returns the shape of last_hidden_state");
    ok(out.ndim == 3 && out.dim[0] == 2 && out.dim[1] == 3 && out.dim[2] == 8,
       "last_hidden_state has the shape [sequences, positions, hidden]");
    is_int(ft_session_get(session, "layer.0.ffn.act", &out, &err), FT_OK,
           "ft_session_get() returns the shape of a kept value");
    ok(out.ndim == 2 && out.dim[0] == 4 && out.dim[1] == 12,
       "kept values have the shape [tokens, columns]");
    if (set(session, "input_ids", 2, 3, ids) != FT_OK)
        bail_out("%s", err.text);
    refused(ft_session_get(session, "logits", &out, &err), FT_EARG,
            "logits: call ft_session_run() after setting the inputs");
    ft_session_close(session);
}

static void test_kept_input(const ft_model *model)
{
    static const char *const keep[] = { "input_ids", NULL };
    const int32_t ids[6] = { 2, 3, 4, 5, 6, 19 }, mask[6] = { 1, 1, 0, 1, 1, 1 };
    const float expected[5] = { 2, 3, 5, 6, 19 };
    size_t count;
    ft_session *session = calibrated_session(model, &(ft_session_options){ .keep = keep });
    calibrated_run(session, &(model_input){ 2, 3, ids, mask, NULL });
    float *found = calibrated_get(session, "input_ids", &count);
    ok(count == 5 && memcmp(found, expected, sizeof expected) == 0,
       "a kept input contains the ids of the packed tokens");
    free(found);
    ft_session_close(session);
}

/* Counts the kept values that differ between the two plans. */
static int compare_kept(const ft_model *fused, const ft_model *unfused, const char *const *keep)
{
    const int32_t ids[6] = { 2, 3, 4, 5, 6, 7 }, mask[6] = { 1, 1, 1, 1, 0, 0 };
    const model_input input = { 2, 3, ids, mask, NULL };
    ft_session *a = calibrated_session(fused, &(ft_session_options){ .keep = keep });
    ft_session *b = calibrated_session(unfused, &(ft_session_options){ .keep = keep });
    calibrated_run(a, &input);
    calibrated_run(b, &input);
    int differ = 0;
    for (size_t i = 0; keep[i] != NULL; i++) {
        size_t n, m;
        float *x = calibrated_get(a, keep[i], &n), *y = calibrated_get(b, keep[i], &m);
        bool same = n == m && memcmp(x, y, n * sizeof *x) == 0;
        if (!same && differ++ == 0)
            diag("%s differs", keep[i]);
        free(x);
        free(y);
    }
    ft_session_close(a);
    ft_session_close(b);
    return differ;
}

static void test_kept(const char *path, const char *what)
{
    static const char *const keep[] = {
        "embed.norm",           "layer.0.attn.q",
        "layer.0.attn.context", "layer.0.attn.out",
        "layer.0.attn.norm",    "layer.0.ffn.act",
        "layer.0.ffn.down",     "layer.1.attn.k",
        "layer.1.ffn.norm",     NULL,
    };
    ft_model *fused = calibrated_open(path, NULL);
    ft_model *unfused = calibrated_open(path, &(ft_model_options){ .no_fuse = true });
    is_int(compare_kept(fused, unfused, keep), 0,
           "%s: kept values of the fused plan equal those of the unfused plan", what);
    ft_model_close(fused);
    ft_model_close(unfused);
}

int main(void)
{
    tiny t;
    calibrated files;
    tiny_make_classifier(&t);
    tiny_configure(&t, "{\"id2label\": {\"0\": \"bad\", \"1\": \"good\", \"2\": \"odd\"}}");
    calibrated_make(&files, &t);
    ft_model *real = calibrated_open(files.real, NULL),
             *quantized = calibrated_open(files.quantized, NULL);
    ft_session *session = calibrated_session(
        real, &(ft_session_options){ .threads = 1, .max_tokens = 8, .max_sequences = 3 });
    test_open(&files);
    test_info(real, quantized);
    test_open_session(real, &files);
    test_set(session);
    test_run(session);
    test_i64(real);
    test_numbers(session);
    test_get(real);
    test_kept_input(real);
    test_kept(files.real, "float");
    test_kept(files.quantized, "int8");
    ft_session_close(session);
    ft_model_close(real);
    ft_model_close(quantized);
    tiny_remove(&t);
    return done_testing();
}
