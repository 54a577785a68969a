/*
 * sha256.c - a thin wrapper around libcrypto, which uses the processor's SHA instructions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/sha256.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct ft_sha256 {
    EVP_MD_CTX *context;
    bool ok;
};

ft_sha256 *ft_sha256_new(void)
{
    ft_sha256 *hash = calloc(1, sizeof *hash);
    if (hash == NULL)
        return NULL;
    hash->context = EVP_MD_CTX_new();
    ft_sha256_init(hash);
    if (!hash->ok) {
        ft_sha256_free(hash);
        return NULL;
    }
    return hash;
}

void ft_sha256_free(ft_sha256 *hash)
{
    if (hash == NULL)
        return;
    EVP_MD_CTX_free(hash->context);
    free(hash);
}

void ft_sha256_init(ft_sha256 *hash)
{
    hash->ok = hash->context != NULL && EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) == 1;
}

void ft_sha256_update(ft_sha256 *hash, const void *data, size_t bytes)
{
    hash->ok = hash->ok && EVP_DigestUpdate(hash->context, data, bytes) == 1;
}

bool ft_sha256_final(ft_sha256 *hash, uint8_t digest[FT_SHA256_BYTES])
{
    return hash->ok && EVP_DigestFinal_ex(hash->context, digest, NULL) == 1;
}

bool ft_sha256_digest(const void *data, size_t bytes, uint8_t digest[FT_SHA256_BYTES])
{
    return EVP_Digest(data, bytes, digest, NULL, EVP_sha256(), NULL) == 1;
}

static const char digits[] = "0123456789abcdef";

char *ft_sha256_to_hex(char text[FT_SHA256_HEX_SIZE], const uint8_t digest[FT_SHA256_BYTES])
{
    for (int i = 0; i < FT_SHA256_BYTES; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[FT_SHA256_HEX_SIZE - 1] = '\0';
    return text;
}

bool ft_sha256_from_hex(const char *text, uint8_t digest[FT_SHA256_BYTES])
{
    if (strlen(text) != FT_SHA256_HEX_SIZE - 1 || strspn(text, digits) != FT_SHA256_HEX_SIZE - 1)
        return false;
    for (int i = 0; i < FT_SHA256_BYTES; i++) {
        ptrdiff_t high = strchr(digits, text[2 * i]) - digits;
        ptrdiff_t low = strchr(digits, text[2 * i + 1]) - digits;
        digest[i] = (uint8_t) (high << 4 | low);
    }
    return true;
}
