/*
 * lowercase.h - a tokenizer that lowercases texts first, as do_lower_case of sentence-transformers
 * asks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_LOWERCASE_H
#define FT_CONVERT_TOKENIZER_LOWERCASE_H

#include "convert/tokenizer/tokenizer_files.h"

/*
 * Put the normalizer Lowercase before those of a tokenizer.json, unless it is one of them. The
 * text is replaced; one of another form is kept, and its reader refuses it. FT_EFORMAT: it is no
 * JSON.
 */
FT_MUST_USE ft_status ft_tokenizer_lowercase(ft_json_file *tokenizer, ft_error *err);

#endif
