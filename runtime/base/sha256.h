/*
 * sha256.h - incremental SHA-256 and its hexadecimal text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_SHA256_H
#define FT_RUNTIME_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum { FT_SHA256_BYTES = 32, FT_SHA256_HEX_SIZE = 65 };

typedef struct ft_sha256 ft_sha256;

/* NULL when out of memory or when libcrypto has no SHA-256. */
ft_sha256 *ft_sha256_new(void);
void ft_sha256_free(ft_sha256 *hash); /* accepts NULL */

/* Any number of init, update, update, ..., final. A failure in between makes final return false. */
void ft_sha256_init(ft_sha256 *hash);
void ft_sha256_update(ft_sha256 *hash, const void *data, size_t bytes);
bool ft_sha256_final(ft_sha256 *hash, uint8_t digest[FT_SHA256_BYTES]);

/* The digest of one buffer; false when out of memory. */
bool ft_sha256_digest(const void *data, size_t bytes, uint8_t digest[FT_SHA256_BYTES]);

/*
 * Write 64 lowercase hexadecimal digits to `text` and return it; and the reverse, which rejects any
 * other text.
 */
char *ft_sha256_to_hex(char text[FT_SHA256_HEX_SIZE], const uint8_t digest[FT_SHA256_BYTES]);
bool ft_sha256_from_hex(const char *text, uint8_t digest[FT_SHA256_BYTES]);

#pragma GCC visibility pop

#endif
