/*
 * sha256.h - SHA-256 of bytes as they pass by, and its hexadecimal text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_SHA256_H
#define FT_RUNTIME_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FT_SHA256_BYTES = 32, FT_SHA256_TEXT = 65 };

typedef struct ft_sha256 ft_sha256;

/* NULL when there is no memory or no SHA-256 in the crypto library. */
ft_sha256 *ft_sha256_new(void);
void ft_sha256_free(ft_sha256 *hash); /* takes NULL */

/* Any number of start, add, add, ..., finish.  A failure in between is kept for finish to tell. */
void ft_sha256_start(ft_sha256 *hash);
void ft_sha256_add(ft_sha256 *hash, const void *data, size_t bytes);
bool ft_sha256_finish(ft_sha256 *hash, uint8_t digest[FT_SHA256_BYTES]);

/* All at once. */
bool ft_sha256_of(const void *data, size_t bytes, uint8_t digest[FT_SHA256_BYTES]);

/* 64 lower-case digits, written into `text`, which is returned; and back, refusing all else. */
char *ft_sha256_text(char text[FT_SHA256_TEXT], const uint8_t digest[FT_SHA256_BYTES]);
bool ft_sha256_parse(const char *text, uint8_t digest[FT_SHA256_BYTES]);

#endif
