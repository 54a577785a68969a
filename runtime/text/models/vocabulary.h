/*
 * vocabulary.h - the tokens of a tokenizer: by text, and by id.
 *
 * The table of texts is keyed by random numbers, so that no file can choose texts that collide:
 * a vocabulary of a million words opens in the time that a million words take, whoever made it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_VOCABULARY_H
#define FT_RUNTIME_TEXT_MODELS_VOCABULARY_H

#include "runtime/base/strbuf.h"

#include <string.h>

typedef struct ft_word {
    uint32_t start, bytes;       /* of its text, in the vocabulary's */
    uint32_t shown, shown_bytes; /* the same of the text that decoding shows */
    int32_t id;
    bool added;   /* by the list of added tokens, whether the model has it or not */
    bool special; /* a control token, which text for people leaves out */
} ft_word;

typedef struct ft_vocabulary_slot {
    uint32_t hash, token; /* index of the token + 1; 0 in a free slot */
} ft_vocabulary_slot;

/* All zero is an empty vocabulary. */
typedef struct ft_vocabulary {
    ft_text text;
    ft_word *token;
    size_t count, room;
    ft_vocabulary_slot *slot;
    size_t slots;    /* a power of two, or 0 */
    uint64_t key[2]; /* of the hash */
    uint32_t *by_id; /* indices of tokens with rising id; NULL where they came so */
} ft_vocabulary;

void ft_vocabulary_fini(ft_vocabulary *vocabulary);

/*
 * Add a token; FT_EARG, without text, when there is one of that text.  Once all are there,
 * ft_vocabulary_sort() makes them found by id; it returns false when there is no memory.
 */
ft_status ft_vocabulary_add(ft_vocabulary *vocabulary, const char *text, size_t bytes, int32_t id);
FT_MUST_USE bool ft_vocabulary_sort(ft_vocabulary *vocabulary);

/* Let decoding show another text than a token's own; false when there is no memory. */
FT_MUST_USE bool ft_vocabulary_show(ft_vocabulary *vocabulary, ft_word *token, const char *text,
                                    size_t bytes);

/* After sorting: a token whose id another one has, or NULL. */
const ft_word *ft_vocabulary_clash(const ft_vocabulary *vocabulary);

/* The token of a text or of an id, or NULL; by id only after sorting. */
ft_word *ft_vocabulary_find(const ft_vocabulary *vocabulary, const char *text, size_t bytes);
const ft_word *ft_vocabulary_at(const ft_vocabulary *vocabulary, int32_t id);

static inline const char *ft_word_text(const ft_vocabulary *vocabulary, const ft_word *token)
{
    return vocabulary->text.data + token->start;
}

static inline bool ft_word_is(const ft_vocabulary *vocabulary, const ft_word *token,
                              const char *text, size_t bytes)
{
    return token->bytes == bytes && memcmp(ft_word_text(vocabulary, token), text, bytes) == 0;
}

/* Two numbers that nobody outside can guess. */
void ft_random_key(uint64_t key[2]);

/* Product of two numbers, its halves folded into one: all bits of both count. */
static inline uint64_t ft_fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128) a * b;
    return (uint64_t) product ^ (uint64_t) (product >> 64);
}

#endif
