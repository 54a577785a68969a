/*
 * vocabulary.h - the tokens of a tokenizer, by text and by id.
 *
 * The hash table has a random key, so that no file can contain texts chosen to collide: opening a
 * vocabulary of a million words takes time linear in its size, whoever made it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_VOCABULARY_H
#define FT_RUNTIME_TEXT_MODELS_VOCABULARY_H

#include "runtime/base/strbuf.h"

#include <string.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

typedef struct ft_vocabulary_token {
    uint32_t start, bytes;                 /* of its text, in the vocabulary's text buffer */
    uint32_t decoded_start, decoded_bytes; /* the same of its decoded text */
    int32_t id;
    bool added;   /* listed in added_tokens, whether the model has it or not */
    bool foreign; /* the model does not have it */
    bool special; /* a control token, which decoding can skip */
} ft_vocabulary_token;

typedef struct ft_vocabulary_slot {
    uint32_t hash, token; /* index of the token + 1; 0 in a free slot */
} ft_vocabulary_slot;

/* Zero-initialized means empty. */
typedef struct ft_vocabulary {
    ft_strbuf text;
    ft_vocabulary_token *token;
    size_t count, capacity;
    ft_vocabulary_slot *slot;
    size_t n_slots;  /* a power of two, or 0 */
    uint64_t key[2]; /* of the hash */
    uint32_t *by_id; /* indices of tokens by ascending id; NULL if already in order */
} ft_vocabulary;

void ft_vocabulary_fini(ft_vocabulary *vocabulary);

/*
 * Add a token; FT_EARG, without text, when a token of that text exists. After the last one,
 * ft_vocabulary_sort() enables lookup by id; it returns false when out of memory.
 */
ft_status ft_vocabulary_add(ft_vocabulary *vocabulary, const char *text, size_t bytes, int32_t id);
/* Add a token whose text may exist: then the new one is found by it. FT_ENOMEM, without text. */
ft_status ft_vocabulary_add_last(ft_vocabulary *vocabulary, const char *text, size_t bytes,
                                 int32_t id);
FT_MUST_USE bool ft_vocabulary_sort(ft_vocabulary *vocabulary);

/* Set a decoded text that differs from the token's own; false when out of memory. */
FT_MUST_USE bool ft_vocabulary_set_decoded(ft_vocabulary *vocabulary, ft_vocabulary_token *token,
                                           const char *text, size_t bytes);

/* After sorting: a token whose id another one has too, or NULL. */
const ft_vocabulary_token *ft_vocabulary_find_duplicate_id(const ft_vocabulary *vocabulary);

/* Look up a token by text or by id, or NULL; by id only after sorting. */
ft_vocabulary_token *ft_vocabulary_find(const ft_vocabulary *vocabulary, const char *text,
                                        size_t bytes);
const ft_vocabulary_token *ft_vocabulary_at(const ft_vocabulary *vocabulary, int32_t id);

static inline const char *ft_vocabulary_token_text(const ft_vocabulary *vocabulary,
                                                   const ft_vocabulary_token *token)
{
    return vocabulary->text.data + token->start;
}

static inline bool ft_vocabulary_token_equals(const ft_vocabulary *vocabulary,
                                              const ft_vocabulary_token *token, const char *text,
                                              size_t bytes)
{
    return token->bytes == bytes &&
           memcmp(ft_vocabulary_token_text(vocabulary, token), text, bytes) == 0;
}

/* A random hash key. */
void ft_random_hash_key(uint64_t key[2]);

/* Folded multiply: XOR of the high and the low half of the 128-bit product. */
static inline uint64_t ft_hash_mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128) a * b;
    return (uint64_t) product ^ (uint64_t) (product >> 64);
}

#pragma GCC visibility pop

#endif
