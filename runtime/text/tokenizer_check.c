/*
 * tokenizer_check.c - try a tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer_check.h"

#include "runtime/text/tokenizer.h"

ft_status ft_tokenizer_check(const char *name, const char *json, size_t bytes, bool decodes,
                             ft_error *err)
{
    ft_tokenizer *tokenizer;
    size_t none;
    ft_status status = ft_tokenizer_parse(&tokenizer, name, json, bytes, err);
    if (status == FT_OK && decodes)
        status = ft_tokenizer_decode(tokenizer, NULL, 0, false, NULL, 0, &none, err);
    ft_tokenizer_close(tokenizer);
    return status;
}
