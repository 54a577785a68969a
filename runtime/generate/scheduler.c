/*
 * scheduler.c - the sequences of a scheduler, and the order of its passes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/scheduler_private.h"

#include "runtime/error.h"
#include "runtime/generate/requests.h"
#include "runtime/mem.h"

#include <stdlib.h>

/* ---- Opening ------------------------------------------------------------------------------ */

/* A streaming detokenizer per slot, if there is a tokenizer. */
static ft_status open_decoded(ft_scheduler *s, ft_error *err)
{
    if (s->options.tokenizer == NULL)
        return FT_OK;
    s->decoded = ft_calloc(s->num_slots, sizeof *s->decoded);
    if (s->decoded == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to generate");
    for (size_t i = 0; i < s->num_slots; i++)
        FT_TRY(ft_stop_decoder_init(&s->decoded[i], s->options.tokenizer, err));
    return FT_OK;
}

static ft_status open_prefixes(ft_scheduler *s, ft_error *err)
{
    if (!s->options.shares_prefixes || !ft_prefix_cache_applies(s->session))
        return FT_OK;
    s->tokens = ft_calloc(s->num_slots, s->session->context * sizeof *s->tokens);
    if (s->tokens == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to generate");
    return ft_prefix_cache_new(&s->prefixes, &s->session->chunks->pages, err);
}

static ft_status allocate(ft_scheduler *s, ft_error *err)
{
    size_t selected = s->session->limits.selected;
    bool complete = true;
    s->slot = ft_calloc(s->num_slots, sizeof *s->slot);
    s->token = ft_calloc(selected, sizeof *s->token);
    s->logprob = ft_calloc(selected, sizeof *s->logprob);
    for (int i = 0; i < 2; i++) {
        ft_in_flight *f = &s->in_flight[i];
        f->slot = ft_calloc(selected, sizeof *f->slot);
        f->times_used = ft_calloc(selected, sizeof *f->times_used);
        complete = complete && f->slot != NULL && f->times_used != NULL;
    }
    if (!complete || s->slot == NULL || s->token == NULL || s->logprob == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to generate");
    return FT_OK;
}

ft_status ft_scheduler_open(ft_scheduler **out, ft_session *session,
                            const ft_scheduler_options *options, ft_error *err)
{
    const ft_model *model = session->model;
    *out = NULL;
    FT_TRY(ft_request_check_model(model, err));
    ft_scheduler *s = ft_calloc(1, sizeof *s);
    if (s == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to generate");
    size_t tokens = session->limits.tokens;
    s->session = session;
    s->options = *options;
    s->options.chunk = options->chunk > 0 ? ft_min_size(options->chunk, tokens) : tokens;
    s->num_slots = s->num_free = ft_min_size(session->limits.sequences, tokens);
    ft_status status = ft_sequence_rules_read(&s->rules, model, err);
    if (status == FT_OK)
        status = allocate(s, err);
    if (status == FT_OK)
        status = open_decoded(s, err);
    if (status == FT_OK)
        status = open_prefixes(s, err);
    if (status != FT_OK) {
        ft_scheduler_close(s);
        return status;
    }
    *out = s;
    return FT_OK;
}

void ft_scheduler_close(ft_scheduler *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; s->decoded != NULL && i < s->num_slots; i++)
        ft_stop_decoder_fini(&s->decoded[i]);
    free(s->decoded);
    for (int i = 0; i < 2; i++) {
        free(s->in_flight[i].slot);
        free(s->in_flight[i].times_used);
    }
    ft_prefix_cache_free(s->prefixes);
    free(s->tokens);
    free(s->slot);
    free(s->token);
    free(s->logprob);
    free(s);
}

/* ---- Sequences ---------------------------------------------------------------------------- */

ft_status ft_scheduler_check(const ft_scheduler *s, ft_sequence *sequence, ft_error *err)
{
    ft_sequence_set_default_prompt(sequence, &s->rules);
    return ft_request_check(s->session, &sequence->request, sequence->index, s->decoded != NULL,
                            err);
}

void ft_scheduler_add(ft_scheduler *s, ft_sequence *sequence)
{
    sequence->waits = true;
    ft_sequence_list_insert(&s->waiting, sequence);
}

void ft_scheduler_cancel(ft_scheduler *s, ft_sequence *q)
{
    if (q->waits) {
        ft_sequence_list_remove(&s->waiting, q);
        q->reason = FT_FINISH_CANCELLED;
        s->options.on_end(s->options.user, q, NULL);
        return;
    }
    if (q->n_launched == 0)
        ft_sequence_list_remove(&s->prefilling, q);
    ft_scheduler_end(s, q, FT_FINISH_CANCELLED, NULL);
}

bool ft_scheduler_is_idle(const ft_scheduler *s)
{
    return s->waiting.first == NULL && s->num_free == s->num_slots;
}

const ft_scheduler_stats *ft_scheduler_get_stats(const ft_scheduler *s)
{
    return &s->stats;
}

/* ---- Steps -------------------------------------------------------------------------------- */

/* Prefill is synchronous: tokens are reported before it is launched and before the next launch. */
static ft_status drain(ft_scheduler *s, ft_error *err)
{
    while (s->num_in_flight > 0)
        FT_TRY(ft_scheduler_retire(s, err));
    return FT_OK;
}

static ft_status prefill(ft_scheduler *s, ft_error *err)
{
    FT_TRY(drain(s, err));
    if (ft_scheduler_add_sources(s))
        return ft_scheduler_launch(s, err);
    s->prefilled_last = true;
    if (ft_scheduler_add_prompts(s))
        FT_TRY(ft_scheduler_launch(s, err));
    return drain(s, err);
}

/* While prompts wait, a step does not run ahead of the next prefill pass. */
static ft_status decode(ft_scheduler *s, ft_error *err)
{
    bool runs_ahead = s->session->model->backend->runs_async && s->prefilling.first == NULL;
    s->prefilled_last = false;
    while (s->num_in_flight < (runs_ahead ? 2 : 1) && ft_scheduler_add_steps(s))
        FT_TRY(ft_scheduler_launch(s, err));
    return s->num_in_flight > 0 ? ft_scheduler_retire(s, err) : FT_OK;
}

/* Whether a decode step has a row. */
static bool has_steps(const ft_scheduler *s)
{
    for (size_t i = 0; i < s->num_slots; i++)
        if (s->slot[i].sequence != NULL && s->slot[i].sequence->n_launched > 0)
            return true;
    return false;
}

ft_status ft_scheduler_step(ft_scheduler *s, ft_error *err)
{
    ft_scheduler_admit(s);
    bool decodes_first = s->options.alternates && s->prefilled_last && has_steps(s);
    return s->prefilling.first != NULL && !decodes_first ? prefill(s, err) : decode(s, err);
}
