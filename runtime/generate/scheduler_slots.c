/*
 * scheduler_slots.c - a slot and KV cache pages for each running sequence.
 *
 * A sequence gets a slot when its prompt is about to be computed, and not earlier.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/generate/scheduler_private.h"

#include "runtime/generate/requests.h"
#include "runtime/mem.h"

#include <string.h>

/* ---- Release ------------------------------------------------------------------------------ */

static void release_pages(ft_scheduler *s, const ft_sequence *q)
{
    ft_chunk_batch *chunks = s->session->chunks;
    if (s->options.keeps_pages)
        return;
    ft_page_table_release(&chunks->pages, q->slot);
    if (s->session->limits.cross_kv > 0)
        ft_page_table_release(&chunks->sources, q->slot);
}

void ft_scheduler_end(ft_scheduler *s, ft_sequence *q, ft_finish_reason reason,
                      const ft_error *failure)
{
    q->reason = reason;
    ft_scheduler_share_prefix(s, q);
    release_pages(s, q);
    s->slot[q->slot].sequence = NULL;
    s->num_free++;
    s->options.on_end(s->options.user, q, failure);
}

/* ---- Admission ---------------------------------------------------------------------------- */

/* All pages that the sequence may need; false if too few are free. */
static bool reserve_pages(ft_scheduler *s, const ft_request *r, size_t slot)
{
    ft_chunk_batch *chunks = s->session->chunks;
    bool fits =
        ft_page_table_reserve(&chunks->pages, slot, ft_request_max_cached(r, s->session->context));
    if (fits && r->source_tokens > 0)
        fits = ft_page_table_reserve(&chunks->sources, slot, r->source_tokens);
    if (!fits && !s->options.keeps_pages)
        ft_page_table_release(&chunks->pages, slot);
    return fits;
}

/* Penalties and n-grams count tokens in the passes that read them. */
static bool reads_all_tokens(const ft_request *r)
{
    return (r->repetition_penalty != 0.0f && r->repetition_penalty != 1.0f) ||
           r->presence_penalty != 0.0f || r->frequency_penalty != 0.0f || r->no_repeat_ngram != 0;
}

/* The row of the slot begins with the pages that its prompt has in common with others. */
static void reuse_prefix(ft_scheduler *s, const ft_request *r, size_t slot)
{
    s->slot[slot].prefix = (ft_prefix){ .blocks = 0 };
    if (s->prefixes != NULL && !reads_all_tokens(r))
        s->slot[slot].prefix =
            ft_prefix_cache_share(s->prefixes, slot, r->prompt, r->prompt_tokens);
}

void ft_scheduler_share_prefix(ft_scheduler *s, const ft_sequence *q)
{
    if (s->prefixes == NULL)
        return;
    size_t known = q->request.prompt_tokens + q->n_generated;
    ft_prefix_cache_add(s->prefixes, &s->slot[q->slot].prefix, q->slot, ft_scheduler_tokens(s, q),
                        ft_min_size(known, q->prefilled));
}

static void begin_tokens(ft_scheduler *s, ft_sequence *q)
{
    if (s->prefixes == NULL)
        return;
    q->prefilled = s->slot[q->slot].prefix.blocks * FT_PAGE_TOKENS;
    s->stats.reused_tokens += q->prefilled;
    memcpy(ft_scheduler_tokens(s, q), q->request.prompt,
           q->request.prompt_tokens * sizeof *q->request.prompt);
}

static size_t free_slot(const ft_scheduler *s)
{
    size_t slot = 0;
    while (s->slot[slot].sequence != NULL)
        slot++;
    return slot;
}

static bool start(ft_scheduler *s, ft_sequence *q)
{
    size_t slot = free_slot(s);
    reuse_prefix(s, &q->request, slot);
    if (!reserve_pages(s, &q->request, slot))
        return false;
    ft_sequence_list_remove(&s->waiting, q);
    ft_sequence_list_append(&s->prefilling, q);
    q->waits = false;
    q->encoded = q->request.source_tokens == 0;
    q->slot = slot;
    q->max_new_tokens = ft_request_max_new_tokens(&q->request, s->session->context);
    s->slot[slot].sequence = q;
    s->slot[slot].times_used++;
    s->num_free--;
    begin_tokens(s, q);
    if (s->options.on_start != NULL)
        s->options.on_start(s->options.user, q);
    if (s->decoded != NULL)
        ft_stop_decoder_reset(&s->decoded[slot], q->request.stop_strings);
    return true;
}

static size_t prompt_tokens_left(const ft_scheduler *s)
{
    size_t tokens = 0;
    for (const ft_sequence *q = s->prefilling.first; q != NULL; q = q->next)
        tokens += q->request.prompt_tokens - q->prefilled;
    return tokens;
}

void ft_scheduler_admit(ft_scheduler *s)
{
    size_t tokens = prompt_tokens_left(s);
    while (s->waiting.first != NULL && s->num_free > 0 && tokens < s->options.chunk) {
        ft_sequence *q = s->waiting.first;
        if (!start(s, q))
            return;
        tokens += q->request.prompt_tokens - q->prefilled;
    }
}
