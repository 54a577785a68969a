/*
 * bpe.c - a linked list of symbols, and a heap of the pairs that can be merged.
 *
 * Merging a pair creates up to two new pairs and invalidates others; stale pairs stay in the heap
 * and are detected when they are popped. So any word of n characters takes O(n log n).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/models/bpe.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

enum { MERGED = -1, MIN_CAPACITY = 64 };
#define NO_SYMBOL UINT32_MAX

/* ---- Merges ------------------------------------------------------------------------------- */

/* The slot of a pair, or the free slot where it belongs. */
static ft_bpe_merge *find_merge(const ft_bpe *bpe, uint32_t left, uint32_t right)
{
    uint64_t pair = (uint64_t) left << 32 | right;
    for (uint64_t i = ft_hash_mix(pair ^ bpe->key[0], bpe->key[1]);; i++) {
        ft_bpe_merge *slot = &bpe->merge[i & (bpe->n_slots - 1)];
        if (slot->rank == 0 || (slot->left == left && slot->right == right))
            return slot;
    }
}

/* The id of a text, or -1. */
static int32_t id_of(const ft_vocabulary *vocabulary, const char *text, size_t bytes)
{
    const ft_vocabulary_token *token = ft_vocabulary_find(vocabulary, text, bytes);
    return token == NULL || token->foreign ? -1 : token->id;
}

static void find_byte_and_char_ids(ft_bpe *bpe, const ft_vocabulary *vocabulary)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", byte);
        bpe->byte_id[byte] = id_of(vocabulary, name, 6);
    }
    for (uint32_t c = 0; c < FT_BYTE_CHARS_END; c++) {
        char utf8[2] = { (char) c, 0 };
        if (c >= 0x80) {
            utf8[0] = (char) (0xc0 | c >> 6);
            utf8[1] = (char) (0x80 | (c & 0x3f));
        }
        bpe->char_id[c] = id_of(vocabulary, utf8, c < 0x80 ? 1 : 2);
    }
}

bool ft_bpe_init(ft_bpe *bpe, const ft_vocabulary *vocabulary, const ft_bpe_merge *merge,
                 size_t n_merges)
{
    size_t slots = 2;
    while (slots / 2 < n_merges)
        slots *= 2;
    bpe->merge = ft_calloc(slots, sizeof *bpe->merge);
    if (bpe->merge == NULL)
        return false;
    bpe->n_slots = slots;
    ft_random_hash_key(bpe->key);
    for (size_t i = 0; i < n_merges; i++)
        *find_merge(bpe, merge[i].left, merge[i].right) = merge[i];
    find_byte_and_char_ids(bpe, vocabulary);
    return true;
}

void ft_bpe_fini(ft_bpe *bpe)
{
    free(bpe->merge);
    *bpe = (ft_bpe){ 0 };
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
    const ft_bpe_merge *merge =
        find_merge(bpe, (uint32_t) symbol->id, (uint32_t) workspace->symbol[symbol->next].id);
    if (merge->rank != 0)
        heap_push(workspace, (ft_bpe_pair){ (uint64_t) merge->rank << 32 | left, merge->id });
}

/* ---- A word ------------------------------------------------------------------------------- */

static bool reserve(ft_bpe_workspace *workspace, size_t symbols)
{
    if (symbols <= workspace->capacity)
        return true;
    size_t new_capacity = symbols < MIN_CAPACITY ? MIN_CAPACITY : symbols * 2;
    free(workspace->symbol);
    free(workspace->heap);
    workspace->capacity = 0;
    workspace->symbol = ft_calloc(new_capacity, sizeof *workspace->symbol);
    workspace->heap = ft_calloc(new_capacity, 2 * sizeof *workspace->heap);
    if (workspace->symbol == NULL || workspace->heap == NULL)
        return false;
    workspace->capacity = new_capacity;
    return true;
}

static void add_symbol(ft_bpe_workspace *workspace, int32_t id, size_t bytes)
{
    uint32_t at = (uint32_t) workspace->n_symbols++;
    workspace->symbol[at] =
        (ft_bpe_symbol){ .id = id, .bytes = (uint32_t) bytes, .prev = at - 1, .next = at + 1 };
}

/* Add the bytes of a character; false, and adds none, unless all of them are tokens. */
static bool add_byte_tokens(const ft_bpe *bpe, ft_bpe_workspace *workspace, const char *text,
                            const char *end)
{
    for (const char *at = text; at < end; at++)
        if (bpe->byte_id[(uint8_t) *at] < 0)
            return false;
    for (const char *at = text; at < end; at++)
        add_symbol(workspace, bpe->byte_id[(uint8_t) *at], 1);
    return true;
}

/*
 * Add the initial symbols of a word. An unknown token is delayed until the next character, with
 * which it may be fused; byte tokens overtake it, as in the `tokenizers` library.
 */
static void add_characters(const ft_bpe *bpe, const ft_vocabulary *vocabulary, const char *text,
                           const char *end, ft_bpe_workspace *workspace)
{
    size_t pending = 0; /* bytes of a delayed unknown token */
    for (const char *next = text; text < end; text = next) {
        uint32_t c = ft_utf8_decode_next(&next);
        int32_t id = c < FT_BYTE_CHARS_END ? bpe->char_id[c]
                                           : id_of(vocabulary, text, (size_t) (next - text));
        if (id < 0 && bpe->byte_fallback && add_byte_tokens(bpe, workspace, text, next))
            continue;
        if (pending > 0 && (id >= 0 || !bpe->fuse_unknown)) {
            add_symbol(workspace, bpe->unknown, pending);
            pending = 0;
        }
        if (id >= 0)
            add_symbol(workspace, id, (size_t) (next - text));
        else if (bpe->unknown >= 0)
            pending += (size_t) (next - text);
    }
    if (pending > 0)
        add_symbol(workspace, bpe->unknown, pending);
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
    const ft_bpe_merge *merge =
        find_merge(bpe, (uint32_t) symbol->id, (uint32_t) workspace->symbol[symbol->next].id);
    return merge->rank != 0 && merge->id == id;
}

static void merge_all(const ft_bpe *bpe, ft_bpe_workspace *workspace)
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

/* Dropped characters count for nothing: as in the `tokenizers` library, later ranges move up. */
static void append_tokens(const ft_bpe_workspace *workspace, ft_token_list *tokens)
{
    size_t start = 0;
    for (uint32_t i = 0; i != NO_SYMBOL; i = workspace->symbol[i].next) {
        const ft_bpe_symbol *symbol = &workspace->symbol[i];
        ft_token_list_append(tokens, symbol->id, start, start + symbol->bytes);
        start += symbol->bytes;
    }
}

ft_status ft_bpe_encode(const ft_bpe *bpe, const ft_vocabulary *vocabulary, const char *word,
                        size_t bytes, ft_bpe_workspace *workspace, ft_token_list *tokens)
{
    int32_t word_id = bpe->ignore_merges ? id_of(vocabulary, word, bytes) : -1;
    if (word_id >= 0) {
        ft_token_list_append(tokens, word_id, 0, bytes);
        return FT_OK;
    }
    /* A character gives at most as many symbols as it has bytes; symbol positions have 32 bits. */
    if (bytes >= NO_SYMBOL || !reserve(workspace, bytes))
        return FT_ENOMEM;
    workspace->n_symbols = 0;
    add_characters(bpe, vocabulary, word, word + bytes, workspace);
    if (workspace->n_symbols == 0)
        return FT_OK;
    workspace->symbol[workspace->n_symbols - 1].next = NO_SYMBOL;
    merge_all(bpe, workspace);
    append_tokens(workspace, tokens);
    return FT_OK;
}

void ft_bpe_workspace_fini(ft_bpe_workspace *workspace)
{
    free(workspace->symbol);
    free(workspace->heap);
    *workspace = (ft_bpe_workspace){ 0 };
}
