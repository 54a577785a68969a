/*
 * bpe.h - byte pair encoding: a word is its characters, joined pair by pair in the order that
 * training found.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_BPE_H
#define FT_RUNTIME_TEXT_MODELS_BPE_H

#include "runtime/text/unicode/byte_chars.h"
#include "runtime/text/models/token_ids.h"
#include "runtime/text/models/vocabulary.h"

/* A pair of tokens and what they become. */
typedef struct ft_merge {
    uint32_t left, right;
    uint32_t rank; /* pairs of low rank come first; 0 in a free slot */
    int32_t id;    /* of the token that both make */
} ft_merge;

typedef struct ft_bpe {
    bool ignore_merges; /* a word that is a token is that token, even if no merges lead there */
    bool byte_fallback; /* an unknown character is its bytes, "<0xE2>" */
    bool fuse_unknown;  /* neighbours that are unknown are one token */
    int32_t unknown;    /* its id; -1: what is unknown is left out */
    ft_merge *merge;    /* a table with linear probing, at most half full */
    size_t slots;       /* a power of two, or 0 */
    uint64_t key[2];    /* of the hash */
    int32_t byte_id[256];
    int32_t char_id[FT_BYTE_CHARS_END]; /* of the characters below; -1 for none */
} ft_bpe;

/*
 * Make the tables; `merge` lists pairs, the first first, with ranks from 1.  Of equal pairs the
 * last one counts.  False when there is no memory.
 */
FT_MUST_USE bool ft_bpe_init(ft_bpe *bpe, const ft_vocabulary *vocabulary, const ft_merge *merge,
                             size_t merges);
void ft_bpe_fini(ft_bpe *bpe);

/* A character of a word, or what it has been joined to. */
typedef struct ft_bpe_symbol {
    int32_t id; /* -1 once it is part of the one before */
    uint32_t last, next;
} ft_bpe_symbol;

/* A pair that can be joined. */
typedef struct ft_bpe_pair {
    uint64_t order; /* rank << 32 | place of the left one */
    int32_t id;
} ft_bpe_pair;

/* Memory for words, used again from word to word; all zero to begin with. */
typedef struct ft_bpe_room {
    ft_bpe_symbol *symbol;
    ft_bpe_pair *heap; /* twice as many */
    size_t room, symbols, pairs;
} ft_bpe_room;
void ft_bpe_room_fini(ft_bpe_room *room);

/*
 * Append the ids of one word (valid UTF-8, not empty), in time n log n.  FT_ENOMEM without text.
 */
ft_status ft_bpe_encode(const ft_bpe *bpe, const ft_vocabulary *vocabulary, const char *word,
                        size_t bytes, ft_bpe_room *room, ft_token_ids *ids);

#endif
