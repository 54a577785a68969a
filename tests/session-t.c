/*
 * session-t.c - sessions: packing, limits, refused inputs, outputs and kept values, threads.
 *
 * The model is a small random BERT; most checks use it as int8, whose results do not depend on who
 * shares a run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/model.h"
#include "runtime/plan.h"
#include "tests/lib/bert_file.h"
#include "tests/lib/folder.h"
#include "tests/lib/oneop.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <pthread.h>
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
    bert_file_write(&weights, &(bert_file){ .int8 = mode == FT_MODE_INT8 }, path);
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

/* Sequences of 2, 5 and 3 tokens; what is masked would be refused as an id. */
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

/* An output, whose shape goes to *shape; free with free(). */
static float *get(const ft_session *session, const char *name, ft_tensor *shape)
{
    ft_error err;
    *shape = (ft_tensor){ .data = NULL };
    must(ft_session_get(session, name, shape, &err), &err);
    shape->data = must_have(ft_tensor_count(shape), sizeof(float));
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
           "nothing can be read before a run");
    run(session);
    free(get(session, "logits", &t));
    ok(t.dtype == FT_F32 && t.ndim == 2 && t.dim[0] == ROWS && t.dim[1] == LABELS,
       "logits are [N, C]");
    float *embedding = get(session, "embedding", &t);
    double length = 0.0;
    for (int i = 0; i < HIDDEN; i++)
        length += (double) embedding[i] * (double) embedding[i];
    ok(t.ndim == 2 && t.dim[0] == ROWS && t.dim[1] == HIDDEN && fabs(length - 1.0) < 1e-5,
       "embeddings are [N, H], of length 1");
    free(embedding);

    float *hidden = get(session, "last_hidden_state", &t);
    ok(t.ndim == 3 && t.dim[0] == ROWS && t.dim[1] == COLS && t.dim[2] == HIDDEN,
       "hidden states are [N, S, H]");
    int wrong = 0;
    for (int i = 0; i < ROWS * COLS * HIDDEN; i++)
        wrong += (hidden[i] == 0.0f) != (mask[i / HIDDEN] == 0);
    is_int(wrong, 0, "zeros at masked positions, and nowhere else");
    free(hidden);
    set(session, "attention_mask", matrix(FT_I32, ROWS, COLS, mask));
    is_int(ft_session_get(session, "logits", &t, &err), FT_EARG,
           "after another input there is nothing to read");
    is_int(ft_session_get(session, "loss", &t, &err), FT_EARG, "an unknown output is refused");
    has(err.text, "loss: neither an output of the model nor a kept value", "by name");
    ft_session_close(session);
}

/* Each sequence alone, without padding, must give what it gives among others. */
static void test_packing(const ft_model *model)
{
    ft_session *session = open_session(model, NULL);
    ft_tensor t;
    set_all(session);
    run(session);
    float *together = get(session, "last_hidden_state", &t), *logits = get(session, "logits", &t);
    int differ = 0;
    for (int row = 0; row < ROWS; row++) {
        int64_t length = 0;
        while (length < COLS && mask[row * COLS + length] != 0)
            length++;
        set(session, "input_ids", matrix(FT_I64, 1, length, ids + row * COLS));
        set(session, "token_type_ids", matrix(FT_I32, 1, length, types + row * COLS));
        run(session);
        float *alone = get(session, "last_hidden_state", &t);
        differ += memcmp(alone, together + row * COLS * HIDDEN,
                         (size_t) length * HIDDEN * sizeof *alone) != 0;
        free(alone);
        alone = get(session, "logits", &t);
        for (int i = 0; i < LABELS; i++) /* the classifier is float: the library may round anew */
            differ += fabsf(alone[i] - logits[row * LABELS + i]) > 1e-5f;
        free(alone);
    }
    is_int(differ, 0, "a sequence alone and among padded others has the same result");
    free(together);
    free(logits);
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
       "setting input_ids forgets the others: no mask, types of 0");
    free(given);
    free(defaults);
    ft_session_close(session);
}

/* ---- Refused inputs ----------------------------------------------------------------------- */

static void refused(ft_session *session, const char *name, ft_tensor tensor, ft_status status,
                    const char *text)
{
    ft_error err = { 0 };
    ft_status found = ft_session_set(session, name, &tensor, &err);
    has(found == status ? err.text : "another status", text, "refused: %s", text);
}

static void run_refused(ft_session *session, const char *text)
{
    ft_error err = { 0 };
    ft_status found = ft_session_run(session, &err);
    has(found == FT_EARG || found == FT_ELIMIT ? err.text : "no error", text, "refused: %s", text);
}

static void test_shapes_refused(const ft_model *model)
{
    ft_session *session = open_session(model, &(ft_session_options){ .max_sequences = 4 });
    refused(session, "attention_mask", matrix(FT_I32, 2, 2, mask), FT_EARG,
            "attention_mask: set input_ids first");
    run_refused(session, "input_ids is not set");
    refused(session, "pixels", matrix(FT_I32, 2, 2, mask), FT_EARG,
            "pixels: the model has no such input");
    refused(session, "input_ids", matrix(FT_F32, 2, 2, mask), FT_EARG,
            "input_ids: dtype F32, expected I32 or I64");
    refused(session, "input_ids", (ft_tensor){ .dtype = FT_I32, .ndim = 1, .dim = { 3 } },
            FT_ESHAPE, "input_ids: shape [3], expected [sequences, positions]");
    refused(session, "input_ids", matrix(FT_I32, 2, 0, mask), FT_ESHAPE,
            "input_ids: shape [2, 0], expected [sequences, positions]");
    refused(session, "input_ids", matrix(FT_I32, -2, -2, mask), FT_ESHAPE,
            "input_ids: shape [-2, -2], expected [sequences, positions]");
    refused(session, "input_ids", matrix(FT_I32, 5, 1, mask), FT_ELIMIT,
            "input_ids: 5 sequences, but the session allows 4");
    refused(session, "input_ids", matrix(FT_I32, 1, 301, mask), FT_ELIMIT,
            "input_ids: sequences of 301 positions, but the model has 300");
    set(session, "input_ids", matrix(FT_I64, ROWS, COLS, ids));
    refused(session, "attention_mask", matrix(FT_I32, COLS, ROWS, mask), FT_ESHAPE,
            "attention_mask: shape [5, 3], expected that of input_ids [3, 5]");
    ft_session_close(session);
}

static void test_values_refused(const ft_model *model)
{
    static const int32_t none[ROWS * COLS] = { 1, 1 };
    static const int32_t gap[ROWS * COLS] = { 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1 };
    static const int64_t wide[] = { INT64_C(1) << 40, INT64_MIN };
    static const int32_t typed[] = { 1, 2 };
    ft_session *session = open_session(model, &(ft_session_options){ .max_tokens = 9 });
    set(session, "input_ids", matrix(FT_I64, ROWS, COLS, ids));
    run_refused(session, "input_ids: more than the 9 tokens that the session allows");
    set(session, "attention_mask", matrix(FT_I32, ROWS, COLS, none));
    run_refused(session, "attention_mask: sequence 1 has no token");
    set(session, "attention_mask", matrix(FT_I32, ROWS, COLS, gap));
    run_refused(session, "sequence 0 masks its first token, which the model reads");
    set(session, "input_ids", matrix(FT_I64, 1, 4, ids));
    run_refused(session, "input_ids[0][2]: 99 is outside 0 to 49");
    set(session, "input_ids", matrix(FT_I64, 2, 1, wide));
    run_refused(session, "input_ids[0][0]: 1099511627776 is outside 0 to 49");
    set(session, "input_ids", matrix(FT_I64, 1, 2, ids));
    set(session, "token_type_ids", matrix(FT_I32, 1, 2, typed));
    run_refused(session, "token_type_ids[0][1]: 2 is outside 0 to 1");
    ft_session_close(session);
}

static void open_refused(const ft_model *model, const ft_session_options *options, ft_status status,
                         const char *text)
{
    ft_session *session = (ft_session *) folder;
    ft_error err = { 0 };
    ft_status found = ft_session_open(&session, model, options, &err);
    has(found == status && session == NULL ? err.text : "another status", text, "refused: %s",
        text);
    if (found == FT_OK)
        ft_session_close(session);
}

static void test_options_refused(const ft_model *model)
{
    open_refused(model, &(ft_session_options){ .threads = -1 }, FT_EARG,
                 "threads, tokens and sequences cannot be negative");
    open_refused(model, &(ft_session_options){ .threads = 1025 }, FT_ELIMIT,
                 "1025 threads, but a session has at most 1024");
    open_refused(model, &(ft_session_options){ .max_tokens = INT64_MAX }, FT_ELIMIT,
                 "a run has at most 2147483647 tokens and sequences");
    open_refused(model, &(ft_session_options){ .keep = (const char *[]){ "layer.9", NULL } },
                 FT_EARG, "no value \"layer.9\" in the plan");
    open_refused(model,
                 &(ft_session_options){ .keep = (const char *[]){ "layer.0.attn.probs", NULL } },
                 FT_EARG, "\"layer.0.attn.probs\" exists only inside a fused operation");
    open_refused(model, &(ft_session_options){ .keep = (const char *[]){ "layer.0.ffn.up", NULL } },
                 FT_EARG, "\"layer.0.ffn.up\" exists only inside a fused operation");
    ft_session_close(NULL);
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
       "an input that is kept gives its numbers, packed");
    free(found);

    found = get(session, "layer.0.ffn.act", &t);
    float scale = model->plan.value[ft_plan_find(&model->plan, "layer.0.ffn.act")].scale;
    int wrong = 0, zeros = 0;
    for (size_t i = 0; i < ft_tensor_count(&t); i++) {
        double code = (double) found[i] / (double) scale;
        wrong += fabs(code - rint(code)) > 1e-4 || fabs(code) > 127.001;
        zeros += found[i] == 0.0f;
    }
    ok(t.dim[1] == 20 && wrong == 0 && zeros < 180, "kept codes come as real numbers");
    free(found);

    found = get(session, "layer.1.ffn.norm", &t);
    float *hidden = get(session, "last_hidden_state", &u);
    ok(t.dim[0] == 10 && memcmp(found, hidden, 2 * HIDDEN * sizeof *found) == 0 &&
           memcmp(found + 2 * HIDDEN, hidden + COLS * HIDDEN, COLS * HIDDEN * sizeof *found) == 0,
       "a kept value has the rows of an output without its padding");
    free(found);
    free(hidden);
    ft_session_close(session);
}

/* Everything that an unfused plan makes can be kept at once. */
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
        missing += ft_tensor_count(&t) == 0;
    }
    ok(missing == 0 && count > 40, "unfused, every value can be kept");
    ft_session_close(session);
    ft_model_close(model);
    free(keep);
}

/* ---- Positions ---------------------------------------------------------------------------- */

static void positions(const ft_session *session, const char *expected, const char *sentence)
{
    ft_tensor t;
    char text[128] = "";
    float *found = get(session, "positions", &t);
    for (int64_t i = 0; i < t.dim[0]; i++)
        snprintf(text + strlen(text), 8, "%d ", (int) found[i]);
    is_str(text, expected, "%s", sentence);
    free(found);
}

static void test_positions(const ft_config *config)
{
    /* The third token is padding by its number; the masks of two others say so too. */
    static const int32_t some[] = { 5, 6, 1, 7, 8, 9, 1, 1 };
    static const int32_t holes[] = { 1, 0, 1, 1, 1, 1, 0, 0 };
    static const char *const keep[] = { "positions", NULL };
    ft_config roberta = *config;
    for (int offset = 0; offset <= 2; offset += 2) {
        roberta.position_offset = offset;
        roberta.padding_id = offset - 1;
        ft_model *model = open_model(&roberta, FT_MODE_INT8, NULL);
        ft_session *session = open_session(model, &(ft_session_options){ .keep = keep });
        set(session, "input_ids", matrix(FT_I32, 2, 4, some));
        run(session);
        positions(session, offset == 0 ? "0 1 2 3 0 1 2 3 " : "2 3 1 4 2 3 1 1 ",
                  offset == 0 ? "BERT counts columns"
                              : "RoBERTa counts the tokens that are not padding");
        set(session, "attention_mask", matrix(FT_I32, 2, 4, holes));
        run(session);
        positions(session, offset == 0 ? "0 2 3 0 1 " : "2 1 4 2 3 ",
                  "and a masked token keeps its place in the count");
        if (offset == 2)
            is_int(ft_model_get_info(model).max_positions, 298, "two positions are not for tokens");
        ft_session_close(session);
        ft_model_close(model);
    }
}

/* ---- Threads ------------------------------------------------------------------------------ */

typedef struct worker {
    pthread_t thread;
    const ft_model *model;
    const float *expected;
    int wrong;
} worker;

static void *work(void *user)
{
    worker *w = user;
    ft_tensor t;
    ft_session *session = open_session(w->model, &(ft_session_options){ .threads = 1 });
    for (int i = 0; i < 20; i++) {
        set_all(session);
        run(session);
        float *found = get(session, "last_hidden_state", &t);
        w->wrong += memcmp(found, w->expected, ft_tensor_bytes(&t)) != 0;
        free(found);
    }
    ft_session_close(session);
    return NULL;
}

static void test_threads(const ft_model *model)
{
    worker workers[4];
    ft_tensor t;
    int wrong = 0;
    ft_session *session = open_session(model, &(ft_session_options){ .threads = 2 });
    set_all(session);
    run(session);
    float *expected = get(session, "last_hidden_state", &t);
    for (size_t i = 0; i < FT_COUNT(workers); i++) {
        workers[i] = (worker){ .model = model, .expected = expected };
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bail_out("no thread");
    }
    for (size_t i = 0; i < FT_COUNT(workers); i++) {
        pthread_join(workers[i].thread, NULL);
        wrong += workers[i].wrong;
    }
    is_int(wrong, 0, "sessions of one model run at the same time, and give what one alone gives");
    free(expected);
    ft_session_close(session);
}

int main(void)
{
    ft_config config = test_bert_config(HIDDEN, 2, 20);
    folder_make(folder);
    ft_model *model = open_model(&config, FT_MODE_INT8, NULL);
    test_shapes(model);
    test_packing(model);
    test_defaults(model);
    test_shapes_refused(model);
    test_values_refused(model);
    test_options_refused(model);
    test_keep(model);
    test_threads(model);
    ft_model_close(model);
    test_keep_all(&config);
    test_positions(&config);
    folder_remove(folder);
    return done_testing();
}
