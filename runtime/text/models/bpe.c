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

enum { GONE = -1, FIRST_ROOM = 64 };
#define NOBODY UINT32_MAX

/* ---- Merges ------------------------------------------------------------------------------- */

/* The slot of a pair, or the free slot where it belongs. */
static ft_merge *find_merge(const ft_bpe *bpe, uint32_t left, uint32_t right)
{
    uint64_t pair = (uint64_t) left << 32 | right;
    for (uint64_t i = ft_fold(pair ^ bpe->key[0], bpe->key[1]);; i++) {
        ft_merge *slot = &bpe->merge[i & (bpe->slots - 1)];
        if (slot->rank == 0 || (slot->left == left && slot->right == right))
            return slot;
    }
}

/* The id of a text, or -1. */
static int32_t id_of(const ft_vocabulary *vocabulary, const char *text, size_t bytes)
{
    const ft_word *token = ft_vocabulary_find(vocabulary, text, bytes);
    return token == NULL ? -1 : token->id;
}

static void find_ids(ft_bpe *bpe, const ft_vocabulary *vocabulary)
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

bool ft_bpe_init(ft_bpe *bpe, const ft_vocabulary *vocabulary, const ft_merge *merge, size_t merges)
{
    size_t slots = 2;
    while (slots / 2 < merges)
        slots *= 2;
    bpe->merge = ft_array(slots, sizeof *bpe->merge);
    if (bpe->merge == NULL)
        return false;
    bpe->slots = slots;
    ft_random_key(bpe->key);
    for (size_t i = 0; i < merges; i++)
        *find_merge(bpe, merge[i].left, merge[i].right) = merge[i];
    find_ids(bpe, vocabulary);
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

static void push_pair(ft_bpe_room *room, ft_bpe_pair pair)
{
    size_t at = room->pairs++;
    for (size_t up; at > 0; at = up) {
        up = (at - 1) / 2;
        if (room->heap[up].order <= pair.order)
            break;
        room->heap[at] = room->heap[up];
    }
    room->heap[at] = pair;
}

static ft_bpe_pair pop_pair(ft_bpe_room *room)
{
    ft_bpe_pair first = room->heap[0], last = room->heap[--room->pairs];
    size_t at = 0;
    for (size_t down; (down = 2 * at + 1) < room->pairs; at = down) {
        if (down + 1 < room->pairs && room->heap[down + 1].order < room->heap[down].order)
            down++;
        if (last.order <= room->heap[down].order)
            break;
        room->heap[at] = room->heap[down];
    }
    room->heap[at] = last;
    return first;
}

/* Push the pair that starts at `left` if it can be merged. */
static void offer_pair(const ft_bpe *bpe, ft_bpe_room *room, uint32_t left)
{
    const ft_bpe_symbol *symbol = &room->symbol[left];
    if (symbol->next == NOBODY)
        return;
    const ft_merge *merge =
        find_merge(bpe, (uint32_t) symbol->id, (uint32_t) room->symbol[symbol->next].id);
    if (merge->rank != 0)
        push_pair(room, (ft_bpe_pair){ (uint64_t) merge->rank << 32 | left, merge->id });
}

/* ---- A word ------------------------------------------------------------------------------- */

static bool make_room(ft_bpe_room *room, size_t symbols)
{
    if (symbols <= room->room)
        return true;
    size_t wanted = symbols < FIRST_ROOM ? FIRST_ROOM : symbols * 2;
    free(room->symbol);
    free(room->heap);
    room->room = 0;
    room->symbol = ft_array(wanted, sizeof *room->symbol);
    room->heap = ft_array(wanted, 2 * sizeof *room->heap);
    if (room->symbol == NULL || room->heap == NULL)
        return false;
    room->room = wanted;
    return true;
}

static void add_symbol(ft_bpe_room *room, int32_t id)
{
    uint32_t at = (uint32_t) room->symbols++;
    room->symbol[at] = (ft_bpe_symbol){ .id = id, .last = at - 1, .next = at + 1 };
}

/* Add the bytes of a character; false, and adds none, unless all of them are tokens. */
static bool add_bytes(const ft_bpe *bpe, ft_bpe_room *room, const char *text, const char *end)
{
    for (const char *at = text; at < end; at++)
        if (bpe->byte_id[(uint8_t) *at] < 0)
            return false;
    for (const char *at = text; at < end; at++)
        add_symbol(room, bpe->byte_id[(uint8_t) *at]);
    return true;
}

/*
 * Add the initial symbols of a word. An unknown token is delayed until the next character, with
 * which it may be fused; byte tokens overtake it, as in the `tokenizers` library.
 */
static void add_characters(const ft_bpe *bpe, const ft_vocabulary *vocabulary, const char *text,
                           const char *end, ft_bpe_room *room)
{
    bool waits = false;
    for (const char *next = text; text < end; text = next) {
        uint32_t c = ft_utf8_next(&next);
        int32_t id = c < FT_BYTE_CHARS_END ? bpe->char_id[c]
                                           : id_of(vocabulary, text, (size_t) (next - text));
        if (id < 0 && bpe->byte_fallback && add_bytes(bpe, room, text, next))
            continue;
        if (waits && (id >= 0 || !bpe->fuse_unknown))
            add_symbol(room, bpe->unknown);
        waits = id < 0 && bpe->unknown >= 0;
        if (id >= 0)
            add_symbol(room, id);
    }
    if (waits)
        add_symbol(room, bpe->unknown);
}

/* Merge two neighbours into `id`. */
static void join(ft_bpe_room *room, uint32_t left, int32_t id)
{
    ft_bpe_symbol *symbol = room->symbol, *gone = &symbol[symbol[left].next];
    symbol[left].id = id;
    symbol[left].next = gone->next;
    if (gone->next != NOBODY)
        symbol[gone->next].last = left;
    gone->id = GONE;
}

/* Whether the pair still exists and still merges into the same token. */
static bool is_current(const ft_bpe *bpe, const ft_bpe_room *room, uint32_t left, int32_t id)
{
    const ft_bpe_symbol *symbol = &room->symbol[left];
    if (symbol->id == GONE || symbol->next == NOBODY)
        return false;
    const ft_merge *merge =
        find_merge(bpe, (uint32_t) symbol->id, (uint32_t) room->symbol[symbol->next].id);
    return merge->rank != 0 && merge->id == id;
}

static void join_all(const ft_bpe *bpe, ft_bpe_room *room)
{
    room->pairs = 0;
    for (uint32_t i = 0; i < room->symbols; i++)
        offer_pair(bpe, room, i);
    while (room->pairs > 0) {
        ft_bpe_pair pair = pop_pair(room);
        uint32_t left = (uint32_t) pair.order;
        if (!is_current(bpe, room, left, pair.id))
            continue;
        join(room, left, pair.id);
        if (room->symbol[left].last != NOBODY)
            offer_pair(bpe, room, room->symbol[left].last);
        offer_pair(bpe, room, left);
    }
}

ft_status ft_bpe_encode(const ft_bpe *bpe, const ft_vocabulary *vocabulary, const char *word,
                        size_t bytes, ft_bpe_room *room, ft_token_ids *ids)
{
    int32_t whole = bpe->ignore_merges ? id_of(vocabulary, word, bytes) : -1;
    if (whole >= 0) {
        ft_token_ids_put(ids, whole);
        return FT_OK;
    }
    /* A character gives at most as many symbols as it has bytes; symbol positions have 32 bits. */
    if (bytes >= NOBODY || !make_room(room, bytes))
        return FT_ENOMEM;
    room->symbols = 0;
    add_characters(bpe, vocabulary, word, word + bytes, room);
    if (room->symbols == 0)
        return FT_OK;
    room->symbol[room->symbols - 1].next = NOBODY;
    join_all(bpe, room);
    for (uint32_t i = 0; i != NOBODY; i = room->symbol[i].next)
        ft_token_ids_put(ids, room->symbol[i].id);
    return FT_OK;
}

void ft_bpe_room_fini(ft_bpe_room *room)
{
    free(room->symbol);
    free(room->heap);
    *room = (ft_bpe_room){ 0 };
}
