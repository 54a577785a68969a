/*
 * piece_trie.h - all pieces that a text starts with, by a double array.
 *
 * The children of a unit are at its base XOR the byte that leads to them, and each names its
 * parent: a step takes one access to memory. A quarter of a million pieces of a multilingual model
 * take 20 megabytes and half a million steps per text of 50 kB, which a hash table would spread
 * over 50 megabytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_PIECE_TRIE_H
#define FT_RUNTIME_TEXT_MODELS_PIECE_TRIE_H

#include "runtime/ft.h"

enum { FT_PIECE_TRIE_ROOT = 0, FT_PIECE_TRIE_MAX_UNITS = 1 << 25 };

/* A prefix of pieces; its children are in the block of 256 units that has its base. */
typedef struct ft_piece_trie_unit {
    uint32_t base;   /* children are at base ^ byte */
    uint32_t parent; /* FT_PIECE_TRIE_FREE in a free unit */
    double score;    /* of the piece that ends here; NaN: none does */
} ft_piece_trie_unit;
#define FT_PIECE_TRIE_FREE UINT32_MAX

/* Zero-initialized means empty. */
typedef struct ft_piece_trie {
    ft_piece_trie_unit *unit;
    int32_t *id; /* [n_units]; of the piece that ends there, or -1 */
    uint32_t n_units;
} ft_piece_trie;

typedef struct ft_scored_piece {
    const char *text;
    uint32_t bytes; /* not 0 */
    int32_t id;
    double score;
} ft_scored_piece;

/*
 * Build a trie from pieces, which are sorted here; their texts differ.
 * Errors, without text: FT_ENOMEM; FT_ELIMIT beyond FT_PIECE_TRIE_MAX_UNITS.
 */
FT_MUST_USE ft_status ft_piece_trie_build(ft_piece_trie *trie, ft_scored_piece *piece,
                                          size_t count);
void ft_piece_trie_fini(ft_piece_trie *trie);

/* The unit that a byte leads to from `unit`, or FT_PIECE_TRIE_ROOT. */
static inline uint32_t ft_piece_trie_step(const ft_piece_trie *trie, uint32_t unit, char byte)
{
    uint32_t next = trie->unit[unit].base ^ (unsigned char) byte;
    return trie->unit[next].parent == unit ? next : FT_PIECE_TRIE_ROOT;
}

#endif
