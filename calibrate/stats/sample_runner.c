/*
 * sample_runner.c - forward passes of one model over samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/stats/sample_runner.h"

#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- Opening ------------------------------------------------------------------------------ */

static ft_status open_sessions(ft_sample_runner *r, ft_error *err)
{
    const ft_sample_runner_options *o = &r->options;
    const char **keep = ft_calloc(o->count + 1, sizeof *keep); /* ends with NULL */
    if (keep == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu names", o->count);
    for (size_t i = 0; i < o->count; i++)
        keep[i] = o->name[i];
    ft_session_options options = { .threads = 1,
                                   .max_tokens = (int64_t) o->longest,
                                   .max_sequences = 1,
                                   .all_logits = true,
                                   .keep = keep };
    ft_status status = FT_OK;
    for (size_t i = 0; i < o->sessions && status == FT_OK; i++)
        status = ft_session_open(&r->session[i], o->model, &options, err);
    free(keep);
    return status;
}

static bool is_encoder_decoder(const ft_sample_runner *r)
{
    return r->session[0]->texts > 1;
}

/* Operations behind the last value that is read do not run: nobody reads their results. */
static void find_end(ft_sample_runner *r)
{
    const ft_plan *plan = &r->session[0]->plan;
    for (size_t i = 0; i < r->options.count; i++) {
        int producer = ft_plan_producer(plan, r->value[i]);
        r->end = producer + 1 > r->end ? producer + 1 : r->end;
    }
}

/* Samples cannot resume behind a value that is read now. */
static void rewind_checkpoint(ft_sample_runner *r)
{
    const ft_plan *plan = &r->session[0]->plan;
    for (size_t i = 0; i < r->options.count; i++)
        if (ft_plan_producer(plan, r->value[i]) < r->options.checkpoint->op)
            ft_activation_checkpoint_reset(r->options.checkpoint);
}

/*
 * The matrices that read the last value may change until the next pass, those before it no more: so
 * the cut is not behind that value.
 */
static ft_status choose_cut(ft_sample_runner *r, ft_error *err)
{
    const ft_sample_runner_options *o = &r->options;
    bool is_on_cpu = strcmp(o->model->backend->name, "cpu") == 0;
    ft_resume_point cut;
    FT_TRY(ft_resume_point_find(&cut, &r->session[0]->plan, r->end - 1, err));
    size_t bytes = cut.token_bytes * ft_dataset_tokens(o->data);
    if (!is_on_cpu || o->memory == 0 || bytes <= o->memory / 4)
        r->cut = cut.op;
    return FT_OK;
}

ft_status ft_sample_runner_open(ft_sample_runner *r, const ft_sample_runner_options *options,
                                ft_error *err)
{
    *r = (ft_sample_runner){ .options = *options };
    r->session = ft_calloc(options->sessions, sizeof(ft_session *));
    r->value = ft_calloc(options->count, sizeof *r->value);
    if (r->session == NULL || r->value == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu sessions", options->sessions);
    for (size_t i = 0; i < options->count; i++)
        r->value[i] = ft_plan_find(&options->model->plan, options->name[i]);
    FT_TRY(open_sessions(r, err));
    find_end(r);
    if (is_encoder_decoder(r))
        r->options.checkpoint = NULL;
    if (r->options.checkpoint == NULL)
        return FT_OK;
    rewind_checkpoint(r);
    return choose_cut(r, err);
}

void ft_sample_runner_close(ft_sample_runner *r)
{
    for (size_t i = 0; i < r->options.sessions && r->session != NULL; i++)
        ft_session_close(r->session[i]);
    free(r->session);
    free(r->value);
    *r = (ft_sample_runner){ .cut = 0 };
}

/* ---- Running ------------------------------------------------------------------------------ */

static ft_status run_to_end(const ft_sample_runner *r, ft_session *session, ft_error *err)
{
    if (is_encoder_decoder(r))
        return ft_session_run(session, err);
    FT_TRY(ft_session_prepare_batch(session, err));
    return r->options.model->backend->run_range(session->exec, &session->batch, 0, r->end, err);
}

ft_status ft_sample_runner_run(const ft_sample_runner *r, size_t session, size_t row, size_t sample,
                               ft_error *err)
{
    ft_session *s = r->session[session];
    FT_TRY(ft_dataset_set_inputs(r->options.data, row, 1, s, err));
    if (r->options.checkpoint == NULL)
        return run_to_end(r, s, err);
    return ft_session_run_segment(s, r->options.checkpoint,
                                  &(ft_segment){ .sample = sample, .cut = r->cut, .end = r->end },
                                  err);
}

void ft_sample_runner_advance(const ft_sample_runner *r)
{
    if (r->options.checkpoint != NULL)
        ft_activation_checkpoint_advance(r->options.checkpoint, r->cut);
}

/* ---- Reading ------------------------------------------------------------------------------ */

size_t ft_sample_runner_rows(const ft_sample_runner *r, size_t i, size_t session)
{
    const ft_session *s = r->session[session];
    int value = r->value[i];
    bool is_encoder = s->texts > 1 && ft_session_has_encoder_rows(s, value);
    return ft_batch_rows(is_encoder ? &s->encoder_batch : &s->batch, s->plan.value[value].rows);
}

ft_status ft_sample_runner_read(const ft_sample_runner *r, size_t i, size_t session, float *x,
                                size_t *rows, ft_error *err)
{
    *rows = ft_sample_runner_rows(r, i, session);
    return ft_session_read_f32(r->session[session], r->value[i], x, *rows, err);
}
