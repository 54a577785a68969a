/*
 * scheduler_passes.c - build forward passes, launch them, report their tokens.
 *
 * On an asynchronous device the host launches the next decode step before it has read the tokens of
 * the current one, which are already on the device.  So a sequence that ends at a stop token, or is
 * cancelled, has run one extra step, whose token is discarded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/scheduler_private.h"

#include "runtime/base/clock.h"
#include "runtime/error.h"
#include "runtime/mem.h"

/* ---- Building ----------------------------------------------------------------------------- */

static void sample_after(ft_scheduler *s, ft_sequence *q, ft_prefill_chunk *chunk,
                         ft_sampling_params *sampling)
{
    ft_in_flight *f = &s->in_flight[s->num_in_flight];
    *sampling = ft_sequence_sampling(q, &s->rules);
    chunk->logits = FT_LOGITS_LAST;
    chunk->sampling = sampling;
    f->times_used[f->count] = s->slot[q->slot].times_used;
    f->slot[f->count++] = q->slot;
    q->n_launched++;
}

static void add_chunk(ft_scheduler *s, ft_sequence *q, const int32_t *ids, size_t count,
                      bool samples)
{
    ft_sampling_params sampling;
    ft_prefill_chunk chunk = { .slot = q->slot,
                               .source = q->slot,
                               .n_past = q->prefilled,
                               .n_tokens = q->request.prompt_tokens + q->n_launched,
                               .ids = ids,
                               .count = count };
    if (samples)
        sample_after(s, q, &chunk, &sampling);
    ft_chunk_batch_add(s->session->chunks, &chunk);
    q->prefilled += count;
    ft_scheduler_share_prefix(s, q);
}

bool ft_scheduler_add_sources(ft_scheduler *s)
{
    ft_chunk_batch *chunks = s->session->chunks;
    ft_chunk_batch_clear_for_encoder(chunks);
    for (ft_sequence *q = s->prefilling.first; q != NULL; q = q->next) {
        if (q->encoded ||
            chunks->batch.tokens + q->request.source_tokens > s->session->limits.tokens)
            continue;
        ft_chunk_batch_add_source(chunks, q->slot, q->request.source, q->request.source_tokens);
        q->encoded = true;
    }
    return chunks->batch.tokens > 0;
}

bool ft_scheduler_add_prompts(ft_scheduler *s)
{
    size_t tokens_left = s->options.chunk;
    ft_chunk_batch_clear(s->session->chunks);
    while (s->prefilling.first != NULL && tokens_left > 0) {
        ft_sequence *q = s->prefilling.first;
        size_t left = q->request.prompt_tokens - q->prefilled,
               count = ft_min_size(left, tokens_left);
        add_chunk(s, q, q->request.prompt + q->prefilled, count, count == left);
        tokens_left -= count;
        if (count == left)
            ft_sequence_list_remove(&s->prefilling, q);
    }
    return tokens_left < s->options.chunk;
}

bool ft_scheduler_add_steps(ft_scheduler *s)
{
    ft_chunk_batch *chunks = s->session->chunks;
    ft_chunk_batch_clear(chunks);
    chunks->batch.decode_step = true;
    for (size_t slot = 0; slot < s->num_slots; slot++) {
        ft_sequence *q = s->slot[slot].sequence;
        int32_t chosen = -1 - (int32_t) slot;
        if (q != NULL && q->n_launched > 0 && q->n_launched < q->max_new_tokens)
            add_chunk(s, q, &chosen, 1, true);
    }
    return chunks->batch.tokens > 0;
}

/* ---- Tokens ------------------------------------------------------------------------------- */

/* Decode the token to text; a stop string may end the sequence. */
static ft_status decode_text(ft_scheduler *s, const ft_sequence *q, ft_token *token, ft_error *err)
{
    bool stopped, last = token->reason != FT_FINISH_NONE;
    int32_t id = token->reason == FT_FINISH_STOP_ID ? -1 : token->id;
    if (s->decoded == NULL)
        return FT_OK;
    FT_TRY(ft_stop_decoder_push(&s->decoded[q->slot], id, last, &token->text, &token->text_bytes,
                                &stopped, err));
    if (stopped)
        token->reason = FT_FINISH_STOP_STRING;
    return FT_OK;
}

static void report_token(ft_scheduler *s, ft_sequence *q, int32_t id, float logprob)
{
    ft_error failure = { .code = FT_OK };
    ft_token token = ft_sequence_token(q, &s->rules, id, logprob);
    if (token.reason == FT_FINISH_FAILED)
        (void) ft_fail(&failure, FT_ENONFINITE,
                       "prompt %zu: the logits of new token %zu are not finite", q->index,
                       q->n_generated);
    if (decode_text(s, q, &token, failure.code == FT_OK ? &failure : NULL) != FT_OK) {
        token.reason = FT_FINISH_FAILED;
        token.id = -1;
    }
    if (s->tokens != NULL)
        ft_scheduler_tokens(s, q)[q->request.prompt_tokens + q->n_generated] = token.id;
    bool continues = q->on_token(q->user, &token);
    q->n_generated++;
    if (token.reason != FT_FINISH_NONE || !continues)
        ft_scheduler_end(s, q, token.reason != FT_FINISH_NONE ? token.reason : FT_FINISH_CANCELLED,
                         failure.code != FT_OK ? &failure : NULL);
}

/* ---- Running ------------------------------------------------------------------------------ */

/* Prefill chunks may still run on the device: the last chunk of a prompt includes their time. */
static double *phase_seconds(ft_scheduler *s, bool decode_step)
{
    return decode_step ? &s->stats.passes.decode_seconds : &s->stats.passes.prefill_seconds;
}

ft_status ft_scheduler_launch(ft_scheduler *s, ft_error *err)
{
    const ft_batch *batch = &s->session->chunks->batch;
    double before = ft_monotonic_seconds();
    s->in_flight[s->num_in_flight].decode_step = batch->decode_step;
    FT_TRY(ft_session_run_chunks(s->session, err));
    s->num_in_flight += batch->selected > 0;
    if (!batch->decode_step)
        s->stats.passes.prompt_tokens += batch->tokens;
    *phase_seconds(s, batch->decode_step) += ft_monotonic_seconds() - before;
    return FT_OK;
}

ft_status ft_scheduler_retire(ft_scheduler *s, ft_error *err)
{
    const ft_session *session = s->session;
    ft_in_flight first = s->in_flight[0];
    double before = ft_monotonic_seconds();
    FT_TRY(session->model->backend->chosen(session->exec, --s->num_in_flight, s->token, s->logprob,
                                           first.count, err));
    for (size_t i = 0; i < first.count; i++) {
        const ft_slot *slot = &s->slot[first.slot[i]];
        if (slot->sequence == NULL || slot->times_used != first.times_used[i])
            continue;
        report_token(s, slot->sequence, s->token[i], s->logprob[i]);
        s->stats.passes.decode_tokens += first.decode_step;
    }
    s->in_flight[0] = s->in_flight[1];
    first.count = 0;
    s->in_flight[1] = first;
    *phase_seconds(s, first.decode_step) += ft_monotonic_seconds() - before;
    return FT_OK;
}
