/*
 * hashed_output.c - write a binary file that ends with the SHA-256 of everything before it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/hashed_output.h"

#include "runtime/mem.h"

bool ft_hashed_output_init(ft_hashed_output *o, FILE *file)
{
    *o = (ft_hashed_output){ .file = file, .hash = ft_sha256_new() };
    if (o->file == NULL || o->hash == NULL)
        return false;
    ft_sha256_init(o->hash);
    return true;
}

void ft_hashed_output_fini(ft_hashed_output *o)
{
    ft_sha256_free(o->hash);
    *o = (ft_hashed_output){ .file = NULL };
}

void ft_hashed_output_write(ft_hashed_output *o, const void *bytes, size_t size)
{
    o->failed = o->failed || fwrite(bytes, 1, size, o->file) != size;
    ft_sha256_update(o->hash, bytes, size);
}

void ft_hashed_output_write_u32(ft_hashed_output *o, size_t value)
{
    unsigned char bytes[4];
    ft_store_le32(bytes, (uint32_t) value);
    ft_hashed_output_write(o, bytes, sizeof bytes);
}

void ft_hashed_output_write_u64(ft_hashed_output *o, uint64_t value)
{
    unsigned char bytes[8];
    ft_store_le64(bytes, value);
    ft_hashed_output_write(o, bytes, sizeof bytes);
}

bool ft_hashed_output_finish(ft_hashed_output *o)
{
    uint8_t digest[FT_SHA256_BYTES];
    return !o->failed && ft_sha256_final(o->hash, digest) &&
           fwrite(digest, 1, sizeof digest, o->file) == sizeof digest;
}
