/*
 * bpe.h - byte pair encoding: a word is split into characters, which are merged pair by pair in the
 * order learned by training.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_BPE_H
#define FT_RUNTIME_TEXT_MODELS_BPE_H

#include "runtime/text/models/bpe_joins.h"
#include "runtime/text/models/byte_tokens.h"
#include "runtime/text/models/token_list.h"
#include "runtime/text/models/vocabulary.h"

/* A pair of tokens and the token that they merge into. */
typedef struct ft_bpe_merge {
    uint32_t left, right;
    uint32_t rank; /* pairs of lower rank are merged first; 0 in a free slot */
    int32_t id;    /* of the merged token */
} ft_bpe_merge;

enum { FT_BPE_CHARS_END = 0x10000 }; /* ids of characters below are in a table */

typedef struct ft_bpe {
    bool ignore_merges;   /* a word in the vocabulary is one token, even if no merges produce it */
    bool byte_fallback;   /* an unknown character is encoded as byte tokens, "<0xE2>" */
    bool fuse_unknown;    /* consecutive unknown characters are one token */
    int32_t unknown;      /* id of the unknown token; -1: unknown characters are dropped */
    int32_t unknown_from; /* tokens of ids from here on are encoded as unknown; INT32_MAX: none */
    char *prefix; /* of all characters of a word but the first, in the vocabulary; NULL: none */
    char *suffix; /* of the last one; the same */
    size_t affix_bytes;  /* of both */
    ft_bpe_merge *merge; /* hash table with linear probing, at most half full */
    size_t n_slots;      /* a power of two, or 0 */
    uint64_t key[2];     /* of the hash */
    int32_t byte_id[256];
    int32_t *char_id;    /* [FT_BPE_CHARS_END] by code point; -1 for none */
    ft_bpe_joins *joins; /* NULL: any characters */
} ft_bpe;

/*
 * Build the tables; `merge` lists pairs by priority, with ranks from 1. Of equal pairs the last one
 * is used. The vocabulary is sorted. False when out of memory.
 */
FT_MUST_USE bool ft_bpe_init(ft_bpe *bpe, const ft_vocabulary *vocabulary,
                             const ft_bpe_merge *merge, size_t n_merges);
void ft_bpe_fini(ft_bpe *bpe);

/* A character of a word, or the token that it has been merged into. */
typedef struct ft_bpe_symbol {
    int32_t id; /* -1 once it is merged into the previous one */
    uint32_t bytes;
    uint32_t prev, next; /* for bpe_merge.c */
} ft_bpe_symbol;

/* A pair that can be merged. */
typedef struct ft_bpe_pair {
    uint64_t order; /* rank << 32 | position of the left symbol */
    int32_t id;
} ft_bpe_pair;

/* A workspace that is reused from word to word; zero-initialize it. */
typedef struct ft_bpe_workspace {
    ft_bpe_symbol *symbol;
    ft_bpe_pair *heap;
    size_t capacity, n_symbols, heap_capacity, n_pairs;
    ft_strbuf name; /* of a character with its prefix and suffix */
} ft_bpe_workspace;
void ft_bpe_workspace_fini(ft_bpe_workspace *workspace);

/* Append the tokens of one word (valid UTF-8, not empty), in O(n log n). FT_ENOMEM without text. */
ft_status ft_bpe_encode(const ft_bpe *bpe, const ft_vocabulary *vocabulary, const char *word,
                        size_t bytes, ft_bpe_workspace *workspace, ft_token_list *tokens);

#endif
