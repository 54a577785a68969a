/*
 * activation_checkpoint-t.c - forward passes in segments, against whole ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/plan_cut.h"
#include "runtime/mem.h"
#include "runtime/model/activation_checkpoint.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/models/llama_file.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

enum { TOKENS = 9, SAMPLES = 3 };

static ft_error err;

static void must(ft_status status)
{
    if (status != FT_OK)
        bail_out("%s", err.text);
}

/* ---- Models -------------------------------------------------------------------------------- */

static ft_model *open_model(tiny *t, ft_mode mode)
{
    char path[128];
    ft_model *model;
    ft_artifact_close(converted(t, &(ft_convert_options){ 0 }));
    snprintf(path, sizeof path, "%s/model.ft", t->folder);
    must(ft_model_open_with_config(&model, path, NULL,
                                   &(ft_quant_config){ .mode = mode, .dynamic = true }, &err));
    return model;
}

static ft_session *open_session(const ft_model *model)
{
    ft_session *session;
    must(ft_session_open(
        &session, model,
        &(ft_session_options){ .threads = 1, .max_tokens = TOKENS, .max_sequences = 1 }, &err));
    return session;
}

/* Sample i has TOKENS - i tokens. */
static void set_inputs(ft_session *session, size_t sample)
{
    int32_t ids[TOKENS];
    for (size_t i = 0; i < TOKENS; i++)
        ids[i] = (int32_t) ((i * 7 + sample * 5) % 17 + 3);
    must(ft_session_set(
        session, "input_ids",
        &(ft_tensor){
            .data = ids, .dtype = FT_I32, .ndim = 2, .dim = { 1, (int64_t) (TOKENS - sample) } },
        &err));
}

/* ---- Results ------------------------------------------------------------------------------- */

/* The last value with a row per token that a forward pass stores. */
static int last_value(const ft_plan *plan)
{
    for (int op = plan->nop - 1; op >= 0; op--) {
        int value = plan->op[op].out;
        if (value >= 0 && plan->value[value].rows == FT_TOKENS && ft_plan_stores(plan, value))
            return value;
    }
    bail_out("no value of tokens");
    return -1;
}

static float *read_value(const ft_session *session, int value)
{
    size_t rows = session->batch.tokens, cols = (size_t) session->plan.value[value].cols;
    float *x = ft_calloc(rows * cols, sizeof *x);
    must(ft_session_read_f32(session, value, x, rows, &err));
    return x;
}

static float *run_whole(const ft_model *model, size_t sample, int value)
{
    ft_session *session = open_session(model);
    set_inputs(session, sample);
    must(ft_session_run(session, &err));
    float *x = read_value(session, value);
    ft_session_close(session);
    return x;
}

/* Whether the value of the last segment equals that of whole passes, for all samples. */
static bool runs_equal(const ft_model *model, ft_session *session,
                       ft_activation_checkpoint *checkpoint, int cut, int value)
{
    bool equal = true;
    int end = ft_plan_producer(&model->plan, value) + 1;
    for (size_t i = 0; i < SAMPLES; i++) {
        set_inputs(session, i);
        must(ft_session_run_segment(session, checkpoint, &(ft_segment){ i, cut, end }, &err));
        float *found = read_value(session, value), *expected = run_whole(model, i, value);
        size_t count = session->batch.tokens * (size_t) model->plan.value[value].cols;
        equal = equal && memcmp(found, expected, count * sizeof *found) == 0;
        free(found);
        free(expected);
    }
    ft_activation_checkpoint_advance(checkpoint, cut);
    return equal;
}

/* ---- Tests --------------------------------------------------------------------------------- */

/* Stops at every operation at which a pass can, from there to the end in a session of its own. */
static void test_every_cut(const char *what, tiny *t, ft_mode mode)
{
    ft_model *model = open_model(t, mode);
    bool *live = ft_calloc((size_t) model->plan.nvalue, sizeof *live);
    int value = last_value(&model->plan), different = 0, cuts = 0;
    ft_activation_checkpoint checkpoint;
    must(ft_activation_checkpoint_init(&checkpoint, model->backend, SAMPLES, &err));
    for (int op = 1, last = 0; op <= ft_plan_producer(&model->plan, value); op++) {
        int cut = ft_plan_cut(&model->plan, op, live);
        if (cut <= last)
            continue;
        ft_session *session = open_session(model); /* nothing is left in its memory */
        different += !runs_equal(model, session, &checkpoint, cut, value);
        ft_session_close(session);
        last = cut;
        cuts++;
    }
    ok(cuts >= 4, "%s: a pass can stop at several operations", what);
    is_int(different, 0, "%s: passes that resume compute the same bytes as whole ones", what);
    ft_activation_checkpoint_fini(&checkpoint);
    free(live);
    ft_model_close(model);
}

static void test_cut_of_layers(tiny *t)
{
    ft_model *model = open_model(t, FT_MODE_OBSERVE);
    ft_resume_point cut;
    int down = ft_plan_producer(&model->plan, ft_plan_find(&model->plan, "layer.0.ffn.norm"));
    must(ft_resume_point_find(&cut, &model->plan, down, &err));
    ok(cut.op > 0 && cut.op <= down, "a cut is at most at the operation that is asked for");
    is_int((long long) cut.token_bytes, 2 * (long long) ft_round_up(8 * sizeof(float), 64),
           "before the norm behind a layer, its result and the residual of 8 columns are live");
    must(ft_resume_point_find(&cut, &model->plan, 0, &err));
    is_int(cut.op, 0, "the first operation is the only cut at itself");
    ft_model_close(model);
}

static void test_reset(tiny *t)
{
    ft_model *model = open_model(t, FT_MODE_OBSERVE);
    bool *live = ft_calloc((size_t) model->plan.nvalue, sizeof *live);
    int value = last_value(&model->plan);
    ft_activation_checkpoint checkpoint;
    ft_session *session = open_session(model);
    must(ft_activation_checkpoint_init(&checkpoint, model->backend, SAMPLES, &err));
    int cut = ft_plan_cut(&model->plan, ft_plan_producer(&model->plan, value), live);
    (void) runs_equal(model, session, &checkpoint, cut, value);
    ft_activation_checkpoint_reset(&checkpoint);
    ok(checkpoint.op == 0 && checkpoint.state[0] == NULL,
       "ft_activation_checkpoint_reset() frees the saved values");
    ok(runs_equal(model, session, &checkpoint, 0, value),
       "after that, passes begin at the first operation");
    ft_activation_checkpoint_fini(&checkpoint);
    ft_session_close(session);
    free(live);
    ft_model_close(model);
}

int main(void)
{
    tiny bert, llama;
    json_t *variants = golden_json("llama-variants.json");
    tiny_make_classifier(&bert);
    llama_make(&llama, llama_variant(variants, "grouped"));
    test_every_cut("bert in float", &bert, FT_MODE_FLOAT);
    test_every_cut("bert in int8 with scales per token", &bert, FT_MODE_INT8);
    test_every_cut("llama in float", &llama, FT_MODE_FLOAT);
    test_every_cut("llama in int8 with scales per token", &llama, FT_MODE_INT8);
    test_cut_of_layers(&bert);
    test_reset(&llama);
    json_decref(variants);
    tiny_remove(&bert);
    tiny_remove(&llama);
    return done_testing();
}
