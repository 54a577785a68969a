/*
 * base64.h - decode base64 (RFC 4648).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_BASE64_H
#define FT_RUNTIME_BASE_BASE64_H

#include <stddef.h>

/* The decoded bytes, which the caller frees; NULL if the text is not base64 or memory ran out. */
unsigned char *ft_base64_decode(const char *text, size_t count, size_t *bytes);

#endif
