/*
 * bpe_merge.c - few symbols are searched for the best pair again and again; many are a linked list
 * with a heap of the pairs that can be merged.
 *
 * Merging a pair creates up to two new pairs and invalidates others; stale pairs stay in the heap
 * and are detected when they are popped. So any word of n characters takes O(n log n).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/models/bpe_merge.h"

#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 24, MERGED = -1, MIN_CAPACITY = 64 };
#define NO_SYMBOL UINT32_MAX

/* ---- Few symbols ---------------------------------------------------------------------------- */

/* The pairs of neighbours: pair i is symbols i and i + 1. */
typedef struct {
    uint32_t rank[FEW]; /* UINT32_MAX: cannot be merged */
    int32_t id[FEW];    /* of the merged token */
} pair_list;

static void find_pair(const ft_bpe *bpe, const ft_bpe_symbol *symbol, pair_list *pairs, size_t at)
{
    const ft_bpe_merge *merge =
        ft_bpe_find_merge(bpe, (uint32_t) symbol[at].id, (uint32_t) symbol[at + 1].id);
    pairs->rank[at] = merge->rank - 1; /* 0 becomes UINT32_MAX */
    pairs->id[at] = merge->id;
}

/* The leftmost pair of the lowest rank. */
static size_t find_best(const pair_list *pairs, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        best = pairs->rank[i] < pairs->rank[best] ? i : best;
    return best;
}

/* Merge symbols `at` and at + 1 of `count`. */
static void merge_at(ft_bpe_symbol *symbol, pair_list *pairs, size_t count, size_t at)
{
    const size_t behind = count - at - 2; /* symbols behind the pair */
    symbol[at].id = pairs->id[at];
    symbol[at].bytes += symbol[at + 1].bytes;
    memmove(&symbol[at + 1], &symbol[at + 2], behind * sizeof *symbol);
    memmove(&pairs->rank[at], &pairs->rank[at + 1], behind * sizeof *pairs->rank);
    memmove(&pairs->id[at], &pairs->id[at + 1], behind * sizeof *pairs->id);
}

/* Returns the number of symbols that remain of at least 2. */
static size_t merge_few(const ft_bpe *bpe, ft_bpe_symbol *symbol, size_t count)
{
    pair_list pairs;
    for (size_t i = 0; i + 1 < count; i++)
        find_pair(bpe, symbol, &pairs, i);
    while (count > 1) {
        const size_t at = find_best(&pairs, count - 1);
        if (pairs.rank[at] == UINT32_MAX)
            break;
        merge_at(symbol, &pairs, count--, at);
        if (at > 0)
            find_pair(bpe, symbol, &pairs, at - 1);
        if (at + 1 < count)
            find_pair(bpe, symbol, &pairs, at);
    }
    return count;
}

/*
 * ---- A binary min-heap by order -----------------------------------------------------------------
 */

static void heap_push(ft_bpe_workspace *workspace, ft_bpe_pair pair)
{
    size_t at = workspace->n_pairs++;
    for (size_t parent; at > 0; at = parent) {
        parent = (at - 1) / 2;
        if (workspace->heap[parent].order <= pair.order)
            break;
        workspace->heap[at] = workspace->heap[parent];
    }
    workspace->heap[at] = pair;
}

static ft_bpe_pair heap_pop(ft_bpe_workspace *workspace)
{
    ft_bpe_pair first = workspace->heap[0], last_pair = workspace->heap[--workspace->n_pairs];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < workspace->n_pairs; at = child) {
        if (child + 1 < workspace->n_pairs &&
            workspace->heap[child + 1].order < workspace->heap[child].order)
            child++;
        if (last_pair.order <= workspace->heap[child].order)
            break;
        workspace->heap[at] = workspace->heap[child];
    }
    workspace->heap[at] = last_pair;
    return first;
}

/* Push the pair that starts at `left` if it can be merged. */
static void push_if_mergeable(const ft_bpe *bpe, ft_bpe_workspace *workspace, uint32_t left)
{
    const ft_bpe_symbol *symbol = &workspace->symbol[left];
    if (symbol->next == NO_SYMBOL)
        return;
    const ft_bpe_merge *merge = ft_bpe_find_merge(bpe, (uint32_t) symbol->id,
                                                  (uint32_t) workspace->symbol[symbol->next].id);
    if (merge->rank != 0)
        heap_push(workspace, (ft_bpe_pair){ (uint64_t) merge->rank << 32 | left, merge->id });
}

/* ---- Many symbols --------------------------------------------------------------------------- */

/* There are at most two pairs per symbol over time. */
static bool reserve_heap(ft_bpe_workspace *workspace)
{
    const size_t pairs = 2 * workspace->n_symbols;
    if (pairs <= workspace->heap_capacity)
        return true;
    free(workspace->heap);
    workspace->heap = ft_calloc(2 * pairs, sizeof *workspace->heap);
    workspace->heap_capacity = workspace->heap == NULL ? 0 : 2 * pairs;
    return workspace->heap != NULL;
}

static void link_symbols(ft_bpe_workspace *workspace)
{
    for (uint32_t i = 0; i < workspace->n_symbols; i++) {
        workspace->symbol[i].prev = i - 1; /* NO_SYMBOL before the first one */
        workspace->symbol[i].next = i + 1 < workspace->n_symbols ? i + 1 : NO_SYMBOL;
    }
}

/* Merge two neighbours into `id`. */
static void merge_pair(ft_bpe_workspace *workspace, uint32_t left, int32_t id)
{
    ft_bpe_symbol *symbol = workspace->symbol, *merged = &symbol[symbol[left].next];
    symbol[left].id = id;
    symbol[left].bytes += merged->bytes;
    symbol[left].next = merged->next;
    if (merged->next != NO_SYMBOL)
        symbol[merged->next].prev = left;
    merged->id = MERGED;
}

/* Whether the pair still exists and still merges into the same token. */
static bool is_current(const ft_bpe *bpe, const ft_bpe_workspace *workspace, uint32_t left,
                       int32_t id)
{
    const ft_bpe_symbol *symbol = &workspace->symbol[left];
    if (symbol->id == MERGED || symbol->next == NO_SYMBOL)
        return false;
    const ft_bpe_merge *merge = ft_bpe_find_merge(bpe, (uint32_t) symbol->id,
                                                  (uint32_t) workspace->symbol[symbol->next].id);
    return merge->rank != 0 && merge->id == id;
}

static void drop_merged(ft_bpe_workspace *workspace)
{
    size_t kept = 0;
    for (size_t i = 0; i < workspace->n_symbols; i++)
        if (workspace->symbol[i].id != MERGED)
            workspace->symbol[kept++] = workspace->symbol[i];
    workspace->n_symbols = kept;
}

static void merge_many(const ft_bpe *bpe, ft_bpe_workspace *workspace)
{
    workspace->n_pairs = 0;
    for (uint32_t i = 0; i < workspace->n_symbols; i++)
        push_if_mergeable(bpe, workspace, i);
    while (workspace->n_pairs > 0) {
        ft_bpe_pair pair = heap_pop(workspace);
        uint32_t left = (uint32_t) pair.order;
        if (!is_current(bpe, workspace, left, pair.id))
            continue;
        merge_pair(workspace, left, pair.id);
        if (workspace->symbol[left].prev != NO_SYMBOL)
            push_if_mergeable(bpe, workspace, workspace->symbol[left].prev);
        push_if_mergeable(bpe, workspace, left);
    }
}

/*
 * A pair in the heap that is no longer the one that was pushed, but merges into the same token, is
 * merged all the same. Only a prefix that merging cuts off makes such pairs, so then the heap is
 * used for few symbols too.
 */
bool ft_bpe_merge_symbols(const ft_bpe *bpe, ft_bpe_workspace *workspace)
{
    if (workspace->n_symbols <= FEW && bpe->prefix == NULL) {
        workspace->n_symbols = merge_few(bpe, workspace->symbol, workspace->n_symbols);
        return true;
    }
    if (!reserve_heap(workspace))
        return false;
    link_symbols(workspace);
    merge_many(bpe, workspace);
    drop_merged(workspace);
    return true;
}
