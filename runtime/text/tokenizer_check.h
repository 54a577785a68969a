/*
 * tokenizer_check.h - whether a tokenizer.json is one that the runtime can use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TOKENIZER_CHECK_H
#define FT_RUNTIME_TEXT_TOKENIZER_CHECK_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Parse a tokenizer.json and drop the result; `decodes` also requires a decoder, which the model
 * of a generator needs. Errors as of ft_tokenizer_open(), with `name` as the file.
 */
FT_MUST_USE ft_status ft_tokenizer_check(const char *name, const char *json, size_t bytes,
                                         bool decodes, ft_error *err);

#pragma GCC visibility pop

#endif
