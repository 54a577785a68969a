/*
 * tokenizer_json.h - fill a tokenizer from the text of its tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOKENIZER_JSON_H
#define FT_RUNTIME_TOKENIZER_JSON_H

#include "runtime/tokenizer.h"

/*
 * `tokenizer` is all zero.  On failure it may be half filled: close it.
 * Errors: FT_EFORMAT for what is no tokenizer.json, FT_EUNSUPPORTED for what this one asks for and
 * cannot get; both name the field, what was found and what was expected.
 */
FT_MUST_USE ft_status ft_tokenizer_read_json(ft_tokenizer *tokenizer, const char *name,
                                             const char *json, size_t bytes, ft_error *err);

#endif
