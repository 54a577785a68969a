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

#include <stdlib.h>
#include <string.h>

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

static void find_char_ids(ft_bpe *bpe, const ft_vocabulary *vocabulary)
{
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
    bpe->affix_bytes = (bpe->prefix == NULL ? 0 : strlen(bpe->prefix)) +
                       (bpe->suffix == NULL ? 0 : strlen(bpe->suffix));
    ft_random_hash_key(bpe->key);
    for (size_t i = 0; i < n_merges; i++)
        *find_merge(bpe, merge[i].left, merge[i].right) = merge[i];
    ft_byte_tokens_find(vocabulary, bpe->byte_id);
    find_char_ids(bpe, vocabulary);
    return true;
}

void ft_bpe_fini(ft_bpe *bpe)
{
    free(bpe->merge);
    free(bpe->prefix);
    free(bpe->suffix);
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

/* What a character is called in the vocabulary: with the prefix or the suffix of its place. */
static bool name_character(const ft_bpe *bpe, ft_strbuf *name, const char *text, size_t bytes,
                           bool first, bool last)
{
    const char *prefix = first || bpe->prefix == NULL ? "" : bpe->prefix;
    const char *suffix = !last || bpe->suffix == NULL ? "" : bpe->suffix;
    name->bytes = 0;
    return ft_strbuf_append(name, prefix, strlen(prefix)) && ft_strbuf_append(name, text, bytes) &&
           ft_strbuf_append(name, suffix, strlen(suffix));
}

/* A character of a word and its name in the vocabulary. */
typedef struct {
    int32_t id; /* -1: unknown */
    size_t bytes;
    const char *name, *name_end;
} character;

static bool next_character(const ft_bpe *bpe, const ft_vocabulary *vocabulary, const char *word,
                           const char *text, const char *end, ft_strbuf *name, character *out)
{
    const char *next = text;
    uint32_t c = ft_utf8_decode_next(&next);
    bool plain = (bpe->prefix == NULL || text == word) && (bpe->suffix == NULL || next < end);
    *out = (character){ .bytes = (size_t) (next - text), .name = text, .name_end = next };
    if (plain && c < FT_BYTE_CHARS_END) {
        out->id = bpe->char_id[c];
        return true;
    }
    if (!plain) {
        if (!name_character(bpe, name, text, out->bytes, text == word, next == end))
            return false;
        out->name = name->data;
        out->name_end = name->data + name->bytes;
    }
    out->id = id_of(vocabulary, out->name, (size_t) (out->name_end - out->name));
    return true;
}

/*
 * Add the initial symbols of a word. An unknown token is delayed until the next character, with
 * which it may be fused; byte tokens overtake it, as in the `tokenizers` library.
 */
static bool add_characters(const ft_bpe *bpe, const ft_vocabulary *vocabulary, const char *word,
                           const char *end, ft_bpe_workspace *workspace)
{
    size_t pending = 0; /* bytes of a delayed unknown token */
    character c;
    for (const char *text = word; text < end; text += c.bytes) {
        if (!next_character(bpe, vocabulary, word, text, end, &workspace->name, &c))
            return false;
        if (c.id < 0 && bpe->byte_fallback && add_byte_tokens(bpe, workspace, c.name, c.name_end))
            continue;
        if (pending > 0 && (c.id >= 0 || !bpe->fuse_unknown)) {
            add_symbol(workspace, bpe->unknown, pending);
            pending = 0;
        }
        if (c.id >= 0)
            add_symbol(workspace, c.id, c.bytes);
        else if (bpe->unknown >= 0)
            pending += c.bytes;
    }
    if (pending > 0)
        add_symbol(workspace, bpe->unknown, pending);
    return true;
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
static void append_tokens(const ft_bpe *bpe, const ft_bpe_workspace *workspace,
                          ft_token_list *tokens)
{
    size_t start = 0;
    for (uint32_t i = 0; i != NO_SYMBOL; i = workspace->symbol[i].next) {
        const ft_bpe_symbol *symbol = &workspace->symbol[i];
        ft_token_list_append(tokens, symbol->id < bpe->unknown_from ? symbol->id : bpe->unknown,
                             start, start + symbol->bytes);
        start += symbol->bytes;
    }
}

ft_status ft_bpe_encode(const ft_bpe *bpe, const ft_vocabulary *vocabulary, const char *word,
                        size_t bytes, ft_bpe_workspace *workspace, ft_token_list *tokens)
{
    const size_t affixes = bpe->affix_bytes;
    int32_t word_id = bpe->ignore_merges ? id_of(vocabulary, word, bytes) : -1;
    if (word_id >= 0) {
        ft_token_list_append(tokens, word_id < bpe->unknown_from ? word_id : bpe->unknown, 0,
                             bytes);
        return FT_OK;
    }
    /* A character gives at most as many symbols as its name has bytes; positions have 32 bits. */
    if (bytes >= NO_SYMBOL / (affixes + 1) || !reserve(workspace, bytes * (affixes + 1)))
        return FT_ENOMEM;
    workspace->n_symbols = 0;
    if (!add_characters(bpe, vocabulary, word, word + bytes, workspace))
        return FT_ENOMEM;
    if (workspace->n_symbols == 0)
        return FT_OK;
    workspace->symbol[workspace->n_symbols - 1].next = NO_SYMBOL;
    merge_all(bpe, workspace);
    append_tokens(bpe, workspace, tokens);
    return FT_OK;
}

void ft_bpe_workspace_fini(ft_bpe_workspace *workspace)
{
    free(workspace->symbol);
    free(workspace->heap);
    ft_strbuf_fini(&workspace->name);
    *workspace = (ft_bpe_workspace){ 0 };
}
