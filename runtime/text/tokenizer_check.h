/*
 * tokenizer_check.h - whether a tokenizer.json is one that the runtime can use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TOKENIZER_CHECK_H
#define FT_RUNTIME_TEXT_TOKENIZER_CHECK_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* What a model needs of its tokenizer. */
typedef struct ft_tokenizer_needs {
    bool decodes;           /* a decoder: the model generates text */
    int32_t embedding_rows; /* ids below this number */
} ft_tokenizer_needs;

/*
 * Parse a tokenizer.json and drop the result. Errors as of ft_tokenizer_open(), with `name` as the
 * file, and of ft_tokenizer_check_embeddings(), as is `note`.
 */
FT_MUST_USE ft_status ft_tokenizer_check(const char *name, const char *json, size_t bytes,
                                         const ft_tokenizer_needs *needs, ft_error *note,
                                         ft_error *err);

#pragma GCC visibility pop

#endif
