/*
 * activation_checkpoint.c - the live values of many forward passes at one operation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/activation_checkpoint.h"

#include "runtime/error.h"
#include "runtime/graph/plan_cut.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

ft_status ft_activation_checkpoint_init(ft_activation_checkpoint *c, const ft_backend *backend,
                                        size_t count, ft_error *err)
{
    *c = (ft_activation_checkpoint){ .backend = backend, .count = count };
    c->state = ft_calloc(count, sizeof *c->state);
    return c->state != NULL ? FT_OK
                            : ft_fail(err, FT_ENOMEM, "no memory for %zu checkpoints", count);
}

void ft_activation_checkpoint_reset(ft_activation_checkpoint *c)
{
    for (size_t i = 0; i < c->count && c->state != NULL; i++) {
        if (c->state[i] != NULL)
            c->backend->free_saved(c->state[i]);
        c->state[i] = NULL;
    }
    c->op = 0;
}

void ft_activation_checkpoint_fini(ft_activation_checkpoint *c)
{
    ft_activation_checkpoint_reset(c);
    free(c->state);
    *c = (ft_activation_checkpoint){ 0 };
}

void ft_activation_checkpoint_advance(ft_activation_checkpoint *c, int cut)
{
    if (cut > c->op)
        c->op = cut;
}

/* ---- Cuts ---------------------------------------------------------------------------------- */

static ft_status new_live(bool **live, const ft_plan *plan, ft_error *err)
{
    *live = ft_calloc((size_t) plan->nvalue, sizeof **live);
    return *live != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for %d values", plan->nvalue);
}

ft_status ft_resume_point_find(ft_resume_point *out, const ft_plan *plan, int latest, ft_error *err)
{
    bool *live;
    FT_TRY(new_live(&live, plan, err));
    *out = (ft_resume_point){ .op = ft_plan_cut(plan, latest, live) };
    (void) ft_plan_find_live(plan, out->op, live);
    for (int i = 0; i < plan->nvalue; i++)
        if (live[i])
            out->token_bytes += ft_saved_bytes(&plan->value[i], 1);
    free(live);
    return FT_OK;
}

static bool same_value(const ft_plan *a, int i, const ft_plan *b, int k)
{
    if (i < 0 || k < 0)
        return i < 0 && k < 0;
    const ft_value *x = &a->value[i], *y = &b->value[k];
    return strcmp(x->name, y->name) == 0 && x->cols == y->cols && x->rows == y->rows &&
           x->dtype == y->dtype && x->dynamic == y->dynamic;
}

static bool same_op(const ft_plan *a, const ft_plan *b, int op)
{
    const ft_op *x = &a->op[op], *y = &b->op[op];
    bool same = x->kind == y->kind && same_value(a, x->out, b, y->out) &&
                same_value(a, x->quantized, b, y->quantized) &&
                same_value(a, x->second, b, y->second);
    for (int i = 0; i < FT_MAX_IN && same; i++)
        same = same_value(a, x->in[i], b, y->in[i]);
    return same;
}

bool ft_plan_same_start(const ft_plan *a, const ft_plan *b, int op)
{
    bool same = op <= a->nop && op <= b->nop;
    for (int i = 0; i < op && same; i++)
        same = same_op(a, b, i);
    return same;
}

/* ---- Saving and restoring ------------------------------------------------------------------ */

static size_t rows_of(const ft_session *session, int value)
{
    return ft_batch_rows(&session->batch, session->plan.value[value].rows);
}

static size_t saved_bytes(const ft_session *session, int value)
{
    return ft_saved_bytes(&session->plan.value[value], rows_of(session, value));
}

/* Memory for the live values, instead of those that were saved before. */
static ft_status replace_state(void **state, ft_session *session, const bool *live, ft_error *err)
{
    const ft_backend *backend = session->model->backend;
    size_t bytes = 0;
    for (int i = 0; i < session->plan.nvalue; i++)
        bytes += live[i] ? saved_bytes(session, i) : 0;
    if (*state != NULL)
        backend->free_saved(*state);
    *state = NULL;
    return backend->alloc_saved(session->exec, state, bytes, err);
}

static ft_status save_live(void *state, const ft_session *session, const bool *live, ft_error *err)
{
    char *at = state;
    for (int i = 0; i < session->plan.nvalue; i++) {
        if (!live[i])
            continue;
        FT_TRY(session->model->backend->save(session->exec, i, at, rows_of(session, i), err));
        at += saved_bytes(session, i);
    }
    return FT_OK;
}

static ft_status save(void **state, ft_session *session, int op, ft_error *err)
{
    bool *live;
    FT_TRY(new_live(&live, &session->plan, err));
    (void) ft_plan_find_live(&session->plan, op, live);
    ft_status status = replace_state(state, session, live, err);
    if (status == FT_OK)
        status = save_live(*state, session, live, err);
    free(live);
    return status;
}

static ft_status restore_value(ft_session *session, int value, const void *from, ft_error *err)
{
    if (session->plan.value[value].inner)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: only a fused operation has it",
                       session->plan.value[value].name);
    return session->model->backend->restore(session->exec, value, from, rows_of(session, value),
                                            err);
}

static ft_status restore(ft_session *session, const void *state, int op, ft_error *err)
{
    bool *live;
    const char *at = state;
    FT_TRY(new_live(&live, &session->plan, err));
    (void) ft_plan_find_live(&session->plan, op, live);
    ft_status status = FT_OK;
    for (int i = 0; i < session->plan.nvalue && status == FT_OK; i++) {
        if (!live[i])
            continue;
        status = restore_value(session, i, at, err);
        at += saved_bytes(session, i);
    }
    free(live);
    return status;
}

ft_status ft_session_run_segment(ft_session *session, ft_activation_checkpoint *c,
                                 const ft_segment *segment, ft_error *err)
{
    const ft_backend *backend = session->model->backend;
    int first = c->op;
    session->ran = false;
    FT_TRY(ft_session_prepare_batch(session, err));
    if (first > 0)
        FT_TRY(restore(session, c->state[segment->sample], first, err));
    if (segment->cut > first) {
        FT_TRY(backend->run_range(session->exec, &session->batch, first, segment->cut, err));
        FT_TRY(save(&c->state[segment->sample], session, segment->cut, err));
        first = segment->cut;
    }
    FT_TRY(backend->run_range(session->exec, &session->batch, first, segment->end, err));
    session->ran = segment->end == session->plan.nop;
    return FT_OK;
}
