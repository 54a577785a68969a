/*
 * byte_tokens.h - the tokens "<0x00>" to "<0xFF>" for text that is not in a vocabulary.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_MODELS_BYTE_TOKENS_H
#define FT_RUNTIME_TEXT_MODELS_BYTE_TOKENS_H

#include "runtime/text/models/vocabulary.h"

#include <stdio.h>

/* Their ids; -1 for those that the vocabulary has not. */
static inline void ft_byte_tokens_find(const ft_vocabulary *vocabulary, int32_t id[256])
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", byte);
        const ft_vocabulary_token *token = ft_vocabulary_find(vocabulary, name, 6);
        id[byte] = token == NULL ? -1 : token->id;
    }
}

#endif
