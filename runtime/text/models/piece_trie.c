/*
 * piece_trie.c - place the children of each prefix in a block of 256 units.
 *
 * XOR with a byte keeps an address within its block, so each block is searched on its own: a bitmap
 * of its free units, permuted by each byte that needs one, has a bit left where all of them fit.
 * Only a few blocks are open for new units at a time, which bounds the search.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/models/piece_trie.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256, WORDS = BLOCK / 64, OPEN_BLOCKS = 8, MIN_STACK = 256 };

/* The free units of a block, one bit each. */
typedef struct {
    uint64_t word[WORDS];
} bitmap;

typedef struct {
    uint32_t start; /* its first unit */
    uint32_t n_free;
    bitmap free;
} open_block;

/* Pieces [first, last) start with the prefix of `depth` bytes that leads to `unit`. */
typedef struct {
    uint32_t unit, depth;
    size_t first, last;
} range;

typedef struct {
    ft_piece_trie *trie;
    const ft_scored_piece *piece;
    open_block block[OPEN_BLOCKS]; /* the oldest first */
    size_t n_blocks;
    range *stack;
    size_t n_ranges, capacity;
} builder;

/* ---- Bitmaps -------------------------------------------------------------------------------- */

/* Bit i of the result is bit i ^ byte. */
static bitmap permute(const bitmap *from, unsigned byte)
{
    static const uint64_t low[6] = { 0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f,
                                     0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff };
    bitmap to;
    for (unsigned i = 0; i < WORDS; i++) {
        uint64_t word = from->word[i ^ byte >> 6];
        for (unsigned k = 0; k < 6; k++)
            if (byte >> k & 1)
                word = (word & low[k]) << (1u << k) | (word >> (1u << k) & low[k]);
        to.word[i] = word;
    }
    return to;
}

/* The first bit, or -1. */
static int first_bit(const bitmap *map)
{
    for (int i = 0; i < WORDS; i++)
        if (map->word[i] != 0)
            return i * 64 + __builtin_ctzll(map->word[i]);
    return -1;
}

/* ---- Blocks --------------------------------------------------------------------------------- */

/* Append a block of free units, which replaces the oldest open one if there are enough. */
static ft_status add_block(builder *b)
{
    ft_piece_trie *trie = b->trie;
    uint32_t start = trie->n_units;
    if (start >= FT_PIECE_TRIE_MAX_UNITS)
        return FT_ELIMIT;
    if ((start & (start - 1)) == 0) { /* double the arrays: their sizes are powers of two */
        size_t capacity = start == 0 ? BLOCK : 2 * (size_t) start;
        ft_piece_trie_unit *unit = realloc(trie->unit, capacity * sizeof *unit);
        trie->unit = unit != NULL ? unit : trie->unit;
        int32_t *id = unit != NULL ? realloc(trie->id, capacity * sizeof *id) : NULL;
        if (id == NULL)
            return FT_ENOMEM;
        trie->id = id;
    }
    for (uint32_t i = start; i < start + BLOCK; i++) {
        trie->unit[i] = (ft_piece_trie_unit){ 0, FT_PIECE_TRIE_FREE, (double) NAN };
        trie->id[i] = -1;
    }
    trie->n_units = start + BLOCK;
    if (b->n_blocks == OPEN_BLOCKS)
        memmove(b->block, b->block + 1, --b->n_blocks * sizeof *b->block);
    open_block *block = &b->block[b->n_blocks++];
    *block = (open_block){ .start = start, .n_free = BLOCK };
    memset(&block->free, 0xff, sizeof block->free);
    return FT_OK;
}

/* A base in the block for all of these bytes, or -1. */
static int64_t find_base(const open_block *block, const unsigned char *byte, size_t count)
{
    if (count == 1) /* the usual case: any free unit will do */
        return (int64_t) block->start + (first_bit(&block->free) ^ byte[0]);
    bitmap fits = permute(&block->free, byte[0]);
    for (size_t i = 1; i < count; i++) {
        bitmap next = permute(&block->free, byte[i]);
        uint64_t any = 0;
        for (int k = 0; k < WORDS; k++)
            any |= fits.word[k] &= next.word[k];
        if (any == 0)
            return -1;
    }
    return (int64_t) block->start + first_bit(&fits);
}

static ft_status place(builder *b, const unsigned char *byte, size_t count, uint32_t *base)
{
    for (;;) {
        for (size_t i = 0; i < b->n_blocks; i++) {
            int64_t found = b->block[i].n_free < count ? -1 : find_base(&b->block[i], byte, count);
            if (found < 0)
                continue;
            *base = (uint32_t) found;
            b->block[i].n_free -= (uint32_t) count;
            for (size_t k = 0; k < count; k++) {
                unsigned bit = (*base ^ byte[k]) % BLOCK;
                b->block[i].free.word[bit / 64] &= ~((uint64_t) 1 << bit % 64);
            }
            return FT_OK;
        }
        FT_TRY(add_block(b));
    }
}

/* ---- Building ------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    const ft_scored_piece *x = a, *y = b;
    int order = memcmp(x->text, y->text, ft_min_size(x->bytes, y->bytes));
    return order != 0 ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static bool push(builder *b, range part)
{
    if (b->n_ranges == b->capacity) {
        range *stack = ft_array_grow(b->stack, &b->capacity, MIN_STACK, sizeof *stack);
        if (stack == NULL)
            return false;
        b->stack = stack;
    }
    b->stack[b->n_ranges++] = part;
    return true;
}

/* The piece that ends at a prefix is the first one of its range. */
static void set_piece(builder *b, range *part)
{
    if (part->first == part->last)
        return;
    const ft_scored_piece *piece = &b->piece[part->first];
    if (piece->bytes != part->depth)
        return;
    b->trie->unit[part->unit].score = piece->score;
    b->trie->id[part->unit] = piece->id;
    part->first++;
}

/* Give each next byte of the pieces in a range a unit. */
static ft_status add_children(builder *b, range part)
{
    unsigned char byte[BLOCK];
    size_t start[BLOCK + 1], count = 0;
    uint32_t base;
    set_piece(b, &part);
    for (size_t i = part.first; i < part.last; i++) {
        unsigned char next = (unsigned char) b->piece[i].text[part.depth];
        if (count == 0 || byte[count - 1] != next) {
            byte[count] = next;
            start[count++] = i;
        }
    }
    start[count] = part.last;
    if (count == 0)
        return FT_OK;
    FT_TRY(place(b, byte, count, &base));
    b->trie->unit[part.unit].base = base;
    for (size_t i = 0; i < count; i++) {
        uint32_t child = base ^ byte[i];
        b->trie->unit[child].parent = part.unit;
        if (!push(b, (range){ child, part.depth + 1, start[i], start[i + 1] }))
            return FT_ENOMEM;
    }
    return FT_OK;
}

ft_status ft_piece_trie_build(ft_piece_trie *trie, ft_scored_piece *piece, size_t count)
{
    builder b = { .trie = trie, .piece = piece };
    if (count > 0)
        qsort(piece, count, sizeof *piece, by_text);
    ft_status rc = add_block(&b);
    if (rc == FT_OK) { /* the root, whose own parent is not a unit that leads to it */
        trie->unit[FT_PIECE_TRIE_ROOT].parent = FT_PIECE_TRIE_FREE - 1;
        b.block[0].free.word[0] &= ~(uint64_t) 1;
        b.block[0].n_free--;
        rc = push(&b, (range){ FT_PIECE_TRIE_ROOT, 0, 0, count }) ? FT_OK : FT_ENOMEM;
    }
    while (rc == FT_OK && b.n_ranges > 0)
        rc = add_children(&b, b.stack[--b.n_ranges]);
    free(b.stack);
    return rc;
}

void ft_piece_trie_fini(ft_piece_trie *trie)
{
    free(trie->unit);
    free(trie->id);
    *trie = (ft_piece_trie){ 0 };
}
