/*
 * prefill_chunks.c - pack the chunks of sequences into the batch of one forward pass.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/prefill_chunks.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool allocate(ft_chunk_batch *p)
{
    size_t tokens = p->limits.tokens, sequences = p->limits.sequences,
           max_pages = p->pages.max_pages;
    size_t entries = sequences * max_pages; /* checked for overflow by ft_page_table_init() */
    p->ids = ft_calloc(tokens, sizeof *p->ids);
    p->seq_id = ft_calloc(tokens, sizeof *p->seq_id);
    p->start = ft_calloc(sequences + 1, sizeof *p->start);
    p->n_past = ft_calloc(sequences, sizeof *p->n_past);
    p->n_tokens = ft_calloc(sequences, sizeof *p->n_tokens);
    p->slot = ft_calloc(sequences, sizeof *p->slot);
    p->page_table = ft_calloc(entries, sizeof *p->page_table);
    p->selected_rows = ft_calloc(p->limits.selected, sizeof *p->selected_rows);
    p->sampling = ft_calloc(p->limits.selected, sizeof *p->sampling);
    if (p->limits.cross_kv > 0) {
        p->source_tokens = ft_calloc(sequences, sizeof *p->source_tokens);
        p->cross_kv = ft_calloc(sequences, sizeof *p->cross_kv);
        p->cross_kv_page_table =
            ft_calloc(sequences * p->sources.max_pages, sizeof *p->cross_kv_page_table);
        if (p->source_tokens == NULL || p->cross_kv == NULL || p->cross_kv_page_table == NULL)
            return false;
    }
    return p->ids != NULL && p->seq_id != NULL && p->start != NULL && p->n_past != NULL &&
           p->n_tokens != NULL && p->slot != NULL && p->page_table != NULL &&
           p->selected_rows != NULL && p->sampling != NULL;
}

ft_status ft_chunk_batch_open(ft_chunk_batch **out, const ft_limits *limits, ft_error *err)
{
    *out = NULL;
    ft_chunk_batch *p = ft_calloc(1, sizeof *p);
    if (p == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a session");
    p->limits = *limits;
    ft_status status = ft_page_table_init(&p->pages, limits->pages, limits->sequences,
                                          limits->context / FT_PAGE_TOKENS, err);
    if (status == FT_OK && limits->cross_kv > 0)
        status = ft_page_table_init(&p->sources, limits->cross_kv_pages, limits->sequences,
                                    limits->cross_kv / FT_PAGE_TOKENS, err);
    if (status == FT_OK && !allocate(p))
        status = ft_fail(err, FT_ENOMEM, "no memory for a batch of %zu tokens", limits->tokens);
    if (status != FT_OK) {
        ft_chunk_batch_close(p);
        return status;
    }
    ft_chunk_batch_clear(p);
    *out = p;
    return FT_OK;
}

void ft_chunk_batch_close(ft_chunk_batch *p)
{
    if (p == NULL)
        return;
    ft_page_table_fini(&p->pages);
    ft_page_table_fini(&p->sources);
    free(p->kept.id);
    free(p->source_tokens);
    free(p->cross_kv);
    free(p->cross_kv_page_table);
    free(p->ids);
    free(p->seq_id);
    free(p->start);
    free(p->n_past);
    free(p->n_tokens);
    free(p->slot);
    free(p->page_table);
    free(p->selected_rows);
    free(p->sampling);
    free(p);
}

void ft_chunk_batch_clear(ft_chunk_batch *p)
{
    p->start[0] = 0;
    p->batch = (ft_batch){
        .start = p->start,
        .input[FT_BATCH_IDS] = p->ids,
        .seq_id = p->seq_id,
        .n_past = p->n_past,
        .n_tokens = p->n_tokens,
        .slot = p->slot,
        .pages = p->page_table,
        .max_pages = p->pages.max_pages,
        .selected_rows = p->selected_rows,
        .cross_kv = p->cross_kv,
        .cross_kv_pages = p->cross_kv_page_table,
        .max_cross_kv_pages = p->sources.max_pages,
    };
}

void ft_chunk_batch_clear_for_encoder(ft_chunk_batch *p)
{
    ft_chunk_batch_clear(p);
    p->batch.source = true;
}

static void select_row(ft_chunk_batch *p, size_t row, const ft_sampling_params *sampling)
{
    assert(p->batch.selected < p->limits.selected);
    if (sampling != NULL) {
        p->sampling[p->batch.selected] = *sampling;
        p->batch.sampling = p->sampling;
    }
    p->selected_rows[p->batch.selected++] = (int32_t) row;
}

/* Add a sequence of `count` tokens; returns its index in the batch. */
static size_t add_sequence(ft_chunk_batch *p, const int32_t *ids, size_t count)
{
    ft_batch *b = &p->batch;
    size_t i = b->sequences++;
    assert(b->tokens + count <= p->limits.tokens && i < p->limits.sequences);
    memmove(p->ids + b->tokens, ids, count * sizeof *ids);
    for (size_t k = 0; k < count; k++)
        p->seq_id[b->tokens + k] = (int32_t) i;
    b->tokens += count;
    p->start[i + 1] = (int32_t) b->tokens;
    if (b->longest < count)
        b->longest = count;
    return i;
}

/* Attach the cross-attention KV of a source to sequence `i` of the batch. */
static void set_cross_kv(ft_chunk_batch *p, size_t i, size_t source)
{
    size_t max_pages = p->sources.max_pages;
    p->cross_kv[i] = p->source_tokens[source];
    memcpy(p->cross_kv_page_table + i * max_pages, ft_page_table_row(&p->sources, source),
           max_pages * sizeof *p->cross_kv_page_table);
}

void ft_chunk_batch_add(ft_chunk_batch *p, const ft_prefill_chunk *chunk)
{
    ft_batch *b = &p->batch;
    size_t first = b->tokens, max_pages = p->pages.max_pages;
    size_t i = add_sequence(p, chunk->ids, chunk->count);
    for (size_t row = first; chunk->logits == FT_LOGITS_ALL && row < b->tokens; row++)
        select_row(p, row, NULL);
    if (chunk->logits == FT_LOGITS_LAST)
        select_row(p, b->tokens - 1, chunk->sampling);
    p->n_past[i] = (int32_t) chunk->n_past;
    p->n_tokens[i] = (int32_t) chunk->n_tokens;
    p->slot[i] = (int32_t) chunk->slot;
    memcpy(p->page_table + i * max_pages, ft_page_table_row(&p->pages, chunk->slot),
           max_pages * sizeof *p->page_table);
    if (b->context < chunk->n_past + chunk->count)
        b->context = chunk->n_past + chunk->count;
    if (p->limits.cross_kv > 0)
        set_cross_kv(p, i, chunk->source);
}

void ft_chunk_batch_add_source(ft_chunk_batch *p, size_t index, const int32_t *ids, size_t count)
{
    size_t i = add_sequence(p, ids, count);
    p->n_past[i] = 0;
    p->n_tokens[i] = (int32_t) count;
    p->slot[i] = (int32_t) index;
    p->source_tokens[index] = (int32_t) count;
    memset(p->page_table + i * p->pages.max_pages, 0, p->pages.max_pages * sizeof *p->page_table);
    set_cross_kv(p, i, index);
}
