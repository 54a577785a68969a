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

static bool allocate(ft_passages *p)
{
    size_t tokens = p->limits.tokens, sequences = p->limits.sequences, most = p->pages.most;
    size_t listed = sequences * most; /* checked for overflow by ft_pages_init() */
    p->ids = ft_array(tokens, sizeof *p->ids);
    p->owner = ft_array(tokens, sizeof *p->owner);
    p->start = ft_array(sequences + 1, sizeof *p->start);
    p->past = ft_array(sequences, sizeof *p->past);
    p->reach = ft_array(sequences, sizeof *p->reach);
    p->seat = ft_array(sequences, sizeof *p->seat);
    p->list = ft_array(listed, sizeof *p->list);
    p->select = ft_array(p->limits.selected, sizeof *p->select);
    p->choice = ft_array(p->limits.selected, sizeof *p->choice);
    if (p->limits.memory > 0) {
        p->source_tokens = ft_array(sequences, sizeof *p->source_tokens);
        p->memory = ft_array(sequences, sizeof *p->memory);
        p->memory_list = ft_array(sequences * p->sources.most, sizeof *p->memory_list);
        if (p->source_tokens == NULL || p->memory == NULL || p->memory_list == NULL)
            return false;
    }
    return p->ids != NULL && p->owner != NULL && p->start != NULL && p->past != NULL &&
           p->reach != NULL && p->seat != NULL && p->list != NULL && p->select != NULL &&
           p->choice != NULL;
}

ft_status ft_passages_open(ft_passages **out, const ft_limits *limits, ft_error *err)
{
    *out = NULL;
    ft_passages *p = ft_array(1, sizeof *p);
    if (p == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a session");
    p->limits = *limits;
    ft_status status =
        ft_pages_init(&p->pages, limits->pages, limits->sequences, limits->context / FT_PAGE, err);
    if (status == FT_OK && limits->memory > 0)
        status = ft_pages_init(&p->sources, limits->memory_pages, limits->sequences,
                               limits->memory / FT_PAGE, err);
    if (status == FT_OK && !allocate(p))
        status = ft_fail(err, FT_ENOMEM, "no memory for a batch of %zu tokens", limits->tokens);
    if (status != FT_OK) {
        ft_passages_close(p);
        return status;
    }
    ft_passages_clear(p);
    *out = p;
    return FT_OK;
}

void ft_passages_close(ft_passages *p)
{
    if (p == NULL)
        return;
    ft_pages_fini(&p->pages);
    ft_pages_fini(&p->sources);
    free(p->source_tokens);
    free(p->memory);
    free(p->memory_list);
    free(p->ids);
    free(p->owner);
    free(p->start);
    free(p->past);
    free(p->reach);
    free(p->seat);
    free(p->list);
    free(p->select);
    free(p->choice);
    free(p);
}

void ft_passages_clear(ft_passages *p)
{
    p->start[0] = 0;
    p->batch = (ft_batch){
        .start = p->start,
        .owner = p->owner,
        .past = p->past,
        .reach = p->reach,
        .seat = p->seat,
        .pages = p->list,
        .most_pages = p->pages.most,
        .select = p->select,
        .memory = p->memory,
        .memory_pages = p->memory_list,
        .most_memory_pages = p->sources.most,
    };
}

void ft_passages_clear_for_sources(ft_passages *p)
{
    ft_passages_clear(p);
    p->batch.source = true;
}

static void want(ft_passages *p, size_t row, const ft_choice *choice)
{
    assert(p->batch.selected < p->limits.selected);
    if (choice != NULL) {
        p->choice[p->batch.selected] = *choice;
        p->batch.choice = p->choice;
    }
    p->select[p->batch.selected++] = (int32_t) row;
}

/* Add a sequence of `count` tokens; returns its index in the batch. */
static size_t add_sequence(ft_passages *p, const int32_t *ids, size_t count)
{
    ft_batch *b = &p->batch;
    size_t i = b->sequences++;
    assert(b->tokens + count <= p->limits.tokens && i < p->limits.sequences);
    for (size_t k = 0; k < count; k++) {
        p->ids[b->tokens + k] = ids[k];
        p->owner[b->tokens + k] = (int32_t) i;
    }
    b->tokens += count;
    p->start[i + 1] = (int32_t) b->tokens;
    if (b->longest < count)
        b->longest = count;
    return i;
}

/* Attach the cross-attention KV of a source to sequence `i` of the batch. */
static void remember(ft_passages *p, size_t i, size_t source)
{
    size_t most = p->sources.most;
    p->memory[i] = p->source_tokens[source];
    memcpy(p->memory_list + i * most, ft_pages_of(&p->sources, source),
           most * sizeof *p->memory_list);
}

void ft_passages_add(ft_passages *p, const ft_passage *passage)
{
    ft_batch *b = &p->batch;
    size_t first = b->tokens, most = p->pages.most;
    size_t i = add_sequence(p, passage->ids, passage->count);
    for (size_t row = first; passage->wanted == FT_WANT_ALL && row < b->tokens; row++)
        want(p, row, NULL);
    if (passage->wanted == FT_WANT_LAST)
        want(p, b->tokens - 1, passage->choice);
    p->past[i] = (int32_t) passage->past;
    p->reach[i] = (int32_t) passage->reach;
    p->seat[i] = (int32_t) passage->seat;
    memcpy(p->list + i * most, ft_pages_of(&p->pages, passage->seat), most * sizeof *p->list);
    if (b->context < passage->past + passage->count)
        b->context = passage->past + passage->count;
    if (p->limits.memory > 0)
        remember(p, i, passage->source);
}

void ft_passages_add_source(ft_passages *p, size_t index, const int32_t *ids, size_t count)
{
    size_t i = add_sequence(p, ids, count);
    p->past[i] = 0;
    p->reach[i] = (int32_t) count;
    p->seat[i] = (int32_t) index;
    p->source_tokens[index] = (int32_t) count;
    memset(p->list + i * p->pages.most, 0, p->pages.most * sizeof *p->list);
    remember(p, i, index);
}
