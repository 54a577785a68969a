/*
 * base64.h - bytes as text in JSON (RFC 4648).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_DRAFT_BASE64_H
#define FT_CONVERT_TOKENIZER_DRAFT_BASE64_H

#include <stddef.h>

/* The padded text of `bytes` bytes, zero-terminated; the caller frees it. NULL: no memory. */
char *ft_base64_encode(const char *data, size_t bytes);

#endif
