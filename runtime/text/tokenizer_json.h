/*
 * tokenizer_json.h - fill a tokenizer from the text of its tokenizer.json.
 *
 * Each section of the file has its own parser; tokenizer_json.c parses the model and calls the
 * others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TOKENIZER_JSON_H
#define FT_RUNTIME_TEXT_TOKENIZER_JSON_H

#include "runtime/text/tokenizer.h"

/*
 * `tokenizer` is zero-initialized. On failure it may be partially filled: close it.
 * Errors: FT_EFORMAT for an invalid tokenizer.json, FT_EUNSUPPORTED for an unsupported feature;
 * both name the field, what was found and what was expected.
 */
FT_MUST_USE ft_status ft_tokenizer_read_json(ft_tokenizer *tokenizer, const char *name,
                                             const char *json, size_t bytes, ft_error *err);

/*
 * Parse the section "added_tokens" of `file`, the root object. The vocabulary and the normalizer
 * must have been read before.
 */
ft_status ft_json_read_added_tokens(ft_tokenizer *tokenizer, const ft_json_reader *file);

#endif
