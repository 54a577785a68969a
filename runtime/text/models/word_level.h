/*
 * word_level.h - each word is one token, or unknown.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_WORD_LEVEL_H
#define FT_RUNTIME_TEXT_MODELS_WORD_LEVEL_H

#include "runtime/text/models/token_list.h"
#include "runtime/text/models/vocabulary.h"

typedef struct ft_word_level {
    int32_t unknown; /* id of "<unk>" */
} ft_word_level;

/* Append the token of one word (valid UTF-8, not empty). */
static inline void ft_word_level_encode(const ft_word_level *model, const ft_vocabulary *vocabulary,
                                        const char *word, size_t bytes, ft_token_list *tokens)
{
    const ft_vocabulary_token *token = ft_vocabulary_find(vocabulary, word, bytes);
    bool known = token != NULL && !token->foreign;
    ft_token_list_append(tokens, known ? token->id : model->unknown, 0, bytes);
}

#endif
