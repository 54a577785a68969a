/*
 * session-t.c - sessions: outputs and kept values.
 *
 * Packing, threads and refused inputs have tests of their own: packing-t.c, threads-t.c, api-t.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "runtime/graph/plan.h"
#include "tests/lib/models/bert_file.h"
#include "tests/lib/folder.h"
#include "tests/lib/ops/oneop.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 12, LABELS = 3, ROWS = 3, COLS = 5 };

static char folder[FOLDER_PATH];

static void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

static ft_model *open_model(const ft_config *config, ft_mode mode, const ft_model_options *options)
{
    char path[FOLDER_PATH + 16];
    test_bert weights;
    ft_model *model;
    ft_error err;
    snprintf(path, sizeof path, "%s/model.ft", folder);
    test_bert_make(&weights, config, mode, 1);
    bert_file_write(&weights, "float", path);
    test_bert_free(&weights);
    must(ft_model_open(&model, path, options, &err), &err);
    return model;
}

static ft_session *open_session(const ft_model *model, const ft_session_options *options)
{
    ft_session *session;
    ft_error err;
    must(ft_session_open(&session, model, options, &err), &err);
    return session;
}

/* ---- Inputs ------------------------------------------------------------------------------- */

static ft_tensor matrix(ft_dtype dtype, int64_t rows, int64_t cols, const void *data)
{
    return (ft_tensor){
        .dtype = dtype, .ndim = 2, .dim = { rows, cols }, .data = (void *) (uintptr_t) data
    };
}

/* Sequences of 2, 5 and 3 tokens; the ids at masked positions are invalid. */
static const int64_t ids[ROWS * COLS] = { 7, 8, 99, -1, 0, 3, 2, 1, 3, 4, 9, 49, 0, 1 << 30, -7 };
static const int32_t mask[ROWS * COLS] = { 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0 };
static const int32_t types[ROWS * COLS] = { 0, 1, 7, 7, 7, 0, 0, 1, 1, 1, 0, 0, 0, -1, -1 };

static void set(ft_session *session, const char *name, ft_tensor tensor)
{
    ft_error err;
    must(ft_session_set(session, name, &tensor, &err), &err);
}

static void set_all(ft_session *session)
{
    set(session, "input_ids", matrix(FT_I64, ROWS, COLS, ids));
    set(session, "attention_mask", matrix(FT_I32, ROWS, COLS, mask));
    set(session, "token_type_ids", matrix(FT_I32, ROWS, COLS, types));
}

static void run(ft_session *session)
{
    ft_error err;
    must(ft_session_run(session, &err), &err);
}

/* Returns an output and its shape in *shape; free it with free(). */
static float *get(const ft_session *session, const char *name, ft_tensor *shape)
{
    ft_error err;
    *shape = (ft_tensor){ .data = NULL };
    must(ft_session_get(session, name, shape, &err), &err);
    shape->data = must_have(ft_tensor_numel(shape), sizeof(float));
    must(ft_session_get(session, name, shape, &err), &err);
    return shape->data;
}

/* ---- Results ------------------------------------------------------------------------------ */

static void test_shapes(const ft_model *model)
{
    ft_session *session = open_session(model, NULL);
    ft_tensor t;
    ft_error err;
    set_all(session);
    is_int(ft_session_get(session, "logits", &t, &err), FT_EARG,
           "ft_session_get() refuses to read outputs before a forward pass");
    run(session);
    free(get(session, "logits", &t));
    ok(t.dtype == FT_F32 && t.ndim == 2 && t.dim[0] == ROWS && t.dim[1] == LABELS,
       "logits have the shape [N, C]");
    float *embedding = get(session, "embedding", &t);
    double length = 0.0;
    for (int i = 0; i < HIDDEN; i++)
        length += (double) embedding[i] * (double) embedding[i];
    ok(t.ndim == 2 && t.dim[0] == ROWS && t.dim[1] == HIDDEN && fabs(length - 1.0) < 1e-5,
       "embeddings have the shape [N, H] and the length 1");
    free(embedding);

    float *hidden = get(session, "last_hidden_state", &t);
    ok(t.ndim == 3 && t.dim[0] == ROWS && t.dim[1] == COLS && t.dim[2] == HIDDEN,
       "hidden states have the shape [N, S, H]");
    int wrong = 0;
    for (int i = 0; i < ROWS * COLS * HIDDEN; i++)
        wrong += (hidden[i] == 0.0f) != (mask[i / HIDDEN] == 0);
    is_int(wrong, 0, "hidden states are zero at masked positions and nonzero elsewhere");
    free(hidden);
    set(session, "attention_mask", matrix(FT_I32, ROWS, COLS, mask));
    is_int(ft_session_get(session, "logits", &t, &err), FT_EARG,
           "ft_session_get() refuses to read outputs after an input has changed");
    is_int(ft_session_get(session, "loss", &t, &err), FT_EARG,
           "ft_session_get() refuses an unknown output");
    has(err.text, "loss: neither an output of the model nor a value named in options.keep",
        "the error names the unknown output");
    ft_session_close(session);
}

static void test_defaults(const ft_model *model)
{
    static const int32_t small[] = { 1, 2, 3, 4 }, ones[] = { 1, 1, 1, 1 }, zeros[4] = { 0 };
    ft_session *session = open_session(model, NULL);
    ft_tensor t;
    set(session, "input_ids", matrix(FT_I32, 2, 2, small));
    set(session, "attention_mask", matrix(FT_I32, 2, 2, ones));
    set(session, "token_type_ids", matrix(FT_I32, 2, 2, zeros));
    run(session);
    float *given = get(session, "last_hidden_state", &t);
    set(session, "token_type_ids", matrix(FT_I32, 2, 2, ones));
    set(session, "input_ids", matrix(FT_I32, 2, 2, small));
    run(session);
    float *defaults = get(session, "last_hidden_state", &t);
    ok(memcmp(given, defaults, 4 * HIDDEN * sizeof *given) == 0,
       "setting input_ids resets the mask and the token types to their defaults");
    free(given);
    free(defaults);
    ft_session_close(session);
}

/* ---- Kept values -------------------------------------------------------------------------- */

static void test_keep(const ft_model *model)
{
    static const char *const keep[] = { "input_ids", "layer.0.ffn.act", "layer.1.ffn.norm", NULL };
    ft_session *session = open_session(model, &(ft_session_options){ .keep = keep });
    ft_tensor t, u;
    set_all(session);
    run(session);
    float *found = get(session, "input_ids", &t);
    ok(t.dim[0] == 10 && t.dim[1] == 1 && found[0] == 7.0f && found[1] == 8.0f &&
           found[2] == 3.0f && found[9] == 0.0f,
       "a kept input contains the packed ids");
    free(found);

    found = get(session, "layer.0.ffn.act", &t);
    float scale = model->plan.value[ft_plan_find(&model->plan, "layer.0.ffn.act")].scale;
    int wrong = 0, zeros = 0;
    for (size_t i = 0; i < ft_tensor_numel(&t); i++) {
        double code = (double) found[i] / (double) scale;
        wrong += fabs(code - rint(code)) > 1e-4 || fabs(code) > 127.001;
        zeros += found[i] == 0.0f;
    }
    ok(t.dim[1] == 20 && wrong == 0 && zeros < 180, "kept int8 values are returned dequantized");
    free(found);

    found = get(session, "layer.1.ffn.norm", &t);
    float *hidden = get(session, "last_hidden_state", &u);
    ok(t.dim[0] == 10 && memcmp(found, hidden, 2 * HIDDEN * sizeof *found) == 0 &&
           memcmp(found + 2 * HIDDEN, hidden + COLS * HIDDEN, COLS * HIDDEN * sizeof *found) == 0,
       "a kept value has the rows of the output without its padding");
    free(found);
    free(hidden);
    ft_session_close(session);
}

/* All values of an unfused plan can be kept at once. */
static void test_keep_all(const ft_config *config)
{
    ft_model *model = open_model(config, FT_MODE_INT8, &(ft_model_options){ .no_fuse = true });
    const char **keep = must_have((size_t) model->plan.nvalue + 1, sizeof *keep);
    int count = 0, missing = 0;
    ft_tensor t;
    for (int i = 0; i < model->plan.nvalue; i++)
        if (!model->plan.value[i].inner)
            keep[count++] = model->plan.value[i].name;
    ft_session *session = open_session(model, &(ft_session_options){ .keep = keep });
    set_all(session);
    run(session);
    for (int i = 0; i < count; i++) {
        free(get(session, keep[i], &t));
        missing += ft_tensor_numel(&t) == 0;
    }
    ok(missing == 0 && count > 40, "every value of an unfused plan can be kept");
    ft_session_close(session);
    ft_model_close(model);
    free(keep);
}

int main(void)
{
    ft_config config = test_bert_config(HIDDEN, 2, 20);
    folder_make(folder);
    ft_model *model = open_model(&config, FT_MODE_INT8, NULL);
    test_shapes(model);
    test_defaults(model);
    test_keep(model);
    ft_model_close(model);
    test_keep_all(&config);
    folder_remove(folder);
    return done_testing();
}
