/*
 * wordpiece.h - split a word into the pieces of a vocabulary, longest first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_WORDPIECE_H
#define FT_RUNTIME_TEXT_MODELS_WORDPIECE_H

#include "runtime/text/models/token_list.h"
#include "runtime/text/models/trie.h"

typedef struct ft_wordpiece {
    ft_trie trie;          /* the vocabulary: token -> id */
    uint32_t continuation; /* node of the continuation prefix ("##") */
    bool has_continuation; /* false when no token has that prefix: words are single pieces */
    int32_t unknown;       /* id of "[UNK]" */
    size_t max_word_chars; /* longer words are unknown */
} ft_wordpiece;

/*
 * Append the tokens of one word (valid UTF-8, not empty): at each position the longest matching
 * token. A word that cannot be split completely is one unknown token.
 */
void ft_wordpiece_encode(const ft_wordpiece *model, const char *word, size_t bytes,
                         ft_token_list *tokens);

void ft_wordpiece_fini(ft_wordpiece *model);

#endif
