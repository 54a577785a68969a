/*
 * encode_text.h - encode a text into an array that grows as needed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_ENCODE_TEXT_H
#define FT_RUNTIME_TOOLS_RUN_ENCODE_TEXT_H

#include "runtime/ft.h"

/* Encode a text, without adding special tokens if `bare`; free(*ids), also after a failure. */
FT_MUST_USE ft_status ft_text_encode(const ft_tokenizer *tokenizer, const char *text, bool bare,
                                     int32_t **ids, size_t *count, ft_error *err);

#endif
