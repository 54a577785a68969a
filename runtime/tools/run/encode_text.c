/*
 * encode_text.c - encode a text into an array that grows as needed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/encode_text.h"

#include "runtime/error.h"

#include <stdlib.h>
#include <string.h>

static ft_status encode(const ft_tokenizer *tokenizer, const char *text, bool bare, int32_t *ids,
                        size_t capacity, size_t *count, ft_error *err)
{
    size_t bytes = strlen(text);
    return bare ? ft_tokenizer_encode_no_special(tokenizer, text, bytes, ids, capacity, count, err)
                : ft_tokenizer_encode(tokenizer, text, bytes, ids, capacity, count, err);
}

ft_status ft_text_encode(const ft_tokenizer *tokenizer, const char *text, bool bare, int32_t **ids,
                         size_t *count, ft_error *err)
{
    size_t capacity = strlen(text) + 16; /* tokens rarely outnumber bytes */
    for (*ids = NULL;;) {
        int32_t *grown = realloc(*ids, capacity * sizeof *grown);
        if (grown == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", capacity);
        *ids = grown;
        FT_TRY(encode(tokenizer, text, bare, *ids, capacity, count, err));
        if (*count <= capacity)
            return FT_OK;
        capacity = *count;
    }
}
