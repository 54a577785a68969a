/*
 * added_tokens.h - tokens that are found in the text as they stand, before it is cut into words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_ADDED_TOKENS_H
#define FT_RUNTIME_TEXT_ADDED_TOKENS_H

#include "runtime/text/models/trie.h"

typedef struct ft_added_token {
    int32_t id;
    bool single_word;    /* not inside of a word */
    bool lstrip, rstrip; /* takes the white space before, after it along */
} ft_added_token;

/* All zero is an empty set. */
typedef struct ft_added_tokens {
    ft_trie trie; /* content -> index of the token */
    ft_added_token *token;
    size_t count;
    bool starts[256]; /* the bytes that contents start with */
} ft_added_tokens;

/* `content` is valid UTF-8 of at least one byte.  Errors as ft_trie_add. */
ft_status ft_added_tokens_add(ft_added_tokens *set, const char *content, size_t bytes,
                              ft_added_token token);
void ft_added_tokens_fini(ft_added_tokens *set);

/* A walk over a text: start with { .set = set, .text = text, .bytes = bytes }. */
typedef struct ft_added_search {
    const ft_added_tokens *set;
    const char *text; /* valid UTF-8 */
    size_t bytes;
    size_t next;      /* where the search goes on */
    size_t used;      /* end of the last token with the white space that it took */
    size_t space_end; /* up to here the white space behind a token has been looked at */
} ft_added_search;

/*
 * The next added token: the plain text before it in *plain and *plain_bytes, its id in *id.
 * Where no more follow, the rest of the text and false.
 */
bool ft_added_search_next(ft_added_search *search, const char **plain, size_t *plain_bytes,
                          int32_t *id);

#endif
