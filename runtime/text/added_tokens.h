/*
 * added_tokens.h - match added tokens in the text before pre-tokenization.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_ADDED_TOKENS_H
#define FT_RUNTIME_TEXT_ADDED_TOKENS_H

#include "runtime/text/models/trie.h"

typedef struct ft_added_token {
    int32_t id;
    bool single_word;    /* matches whole words only */
    bool lstrip, rstrip; /* include the white space before, after it */
    bool at_start;       /* matches at the start of the text only */
} ft_added_token;

/* Zero-initialized means empty. */
typedef struct ft_added_tokens {
    ft_trie trie; /* content -> index of the token */
    ft_added_token *token;
    size_t count;
    bool starts[256]; /* first bytes of all contents */
} ft_added_tokens;

/* `content` is valid UTF-8 of at least one byte. Errors as of ft_trie_add. */
ft_status ft_added_tokens_add(ft_added_tokens *set, const char *content, size_t bytes,
                              ft_added_token token);
void ft_added_tokens_fini(ft_added_tokens *set);

/* The state of a search: initialize with { .set, .text, .bytes }, and .rejects and .user if wanted.
 */
typedef struct ft_added_token_matcher {
    const ft_added_tokens *set;
    const char *text; /* valid UTF-8 */
    size_t bytes;
    bool (*rejects)(const void *user, size_t start, size_t end); /* contents at which no token may
                                                                    match; NULL: none */
    const void *user;
    size_t next;      /* where the search continues */
    size_t used;      /* end of the last token and the white space that it includes */
    size_t space_end; /* the white space after a token has been scanned up to here */
} ft_added_token_matcher;

/* An added token: its bytes [start, end), which include white space, and the plain text before. */
typedef struct ft_added_token_match {
    size_t plain, plain_end; /* [plain, plain_end) */
    size_t start, end;       /* starts before `plain` where the token before took its white space */
    int32_t id;
} ft_added_token_match;

/* Find the next added token. Without another one, the rest of the text is plain, and false. */
bool ft_added_token_matcher_next(ft_added_token_matcher *search, ft_added_token_match *match);

#endif
