/*
 * tokenizer_check.c - try a tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer_check.h"

#include "runtime/text/embedding_rows.h"
#include "runtime/text/tokenizer.h"

ft_status ft_tokenizer_check(const char *name, const char *json, size_t bytes,
                             const ft_tokenizer_needs *needs, ft_error *note, ft_error *err)
{
    ft_tokenizer *tokenizer;
    size_t none;
    *note = (ft_error){ 0 };
    ft_status status = ft_tokenizer_parse(&tokenizer, name, json, bytes, err);
    if (status == FT_OK && needs->decodes)
        status = ft_tokenizer_decode(tokenizer, NULL, 0, false, NULL, 0, &none, err);
    if (status == FT_OK)
        status = ft_tokenizer_check_embeddings(tokenizer, needs->embedding_rows, note, err);
    ft_tokenizer_close(tokenizer);
    return status;
}
