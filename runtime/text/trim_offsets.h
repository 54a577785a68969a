/*
 * trim_offsets.h - offsets that leave out the white space at the ends of tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TRIM_OFFSETS_H
#define FT_RUNTIME_TEXT_TRIM_OFFSETS_H

#include "runtime/text/tokenizer.h"

/*
 * Trim the range of token `index` of a list, whose text with white space is `token`; the ranges are
 * of `source`. A single space at the start stays if the pre-tokenizer may have prepended it.
 */
void ft_trim_offsets(const ft_post_processor *post_processor, ft_token_list *tokens, size_t index,
                     const char *token, size_t bytes, const char *source);

#endif
