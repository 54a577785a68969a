/*
 * bpe_joins.h - between which characters a merge may take place.
 *
 * A merge joins the last character of its left token with the first one of its right token. Where
 * no merge joins two neighbouring characters, the tokens on both sides do not depend on each other,
 * so that a long word can be encoded part by part. In the vocabularies of SentencePiece that is in
 * front of each U+2581 but the first of several, because its pieces do not cross words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_BPE_JOINS_H
#define FT_RUNTIME_TEXT_MODELS_BPE_JOINS_H

#include <stdbool.h>
#include <stdint.h>

/* A set of pairs of characters, some of which may be there by chance: a part is longer then. */
enum { FT_BPE_JOINS_LOG2 = 18 };
typedef struct ft_bpe_joins {
    uint64_t bit[(1 << FT_BPE_JOINS_LOG2) / 64];
} ft_bpe_joins;

static inline uint32_t ft_bpe_joins_bit(uint32_t left, uint32_t right)
{
    return (left * 0x9e3779b1u ^ right) * 0x85ebca6bu >> (32 - FT_BPE_JOINS_LOG2);
}

static inline void ft_bpe_joins_add(ft_bpe_joins *joins, uint32_t left, uint32_t right)
{
    uint32_t bit = ft_bpe_joins_bit(left, right);
    joins->bit[bit / 64] |= UINT64_C(1) << bit % 64;
}

static inline bool ft_bpe_joins_has(const ft_bpe_joins *joins, uint32_t left, uint32_t right)
{
    uint32_t bit = ft_bpe_joins_bit(left, right);
    return (joins->bit[bit / 64] >> bit % 64 & 1) != 0;
}

#endif
