/*
 * hashed_output.h - write a binary file that ends with the SHA-256 of everything before it.
 *
 * Numbers are little-endian.  Failures are sticky, so that one check at the end is enough.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_RANGES_HASHED_OUTPUT_H
#define FT_CALIBRATE_RANGES_HASHED_OUTPUT_H

#include "runtime/base/sha256.h"

#include <stdio.h>

typedef struct ft_hashed_output {
    FILE *file; /* borrowed */
    ft_sha256 *hash;
    bool failed; /* a write failed, and errno says why */
} ft_hashed_output;

/* False: the file is NULL, or there is no memory.  fini also accepts a zeroed or failed one. */
bool ft_hashed_output_init(ft_hashed_output *output, FILE *file);
void ft_hashed_output_fini(ft_hashed_output *output);

void ft_hashed_output_write(ft_hashed_output *output, const void *bytes, size_t size);
void ft_hashed_output_write_u32(ft_hashed_output *output, size_t value);
void ft_hashed_output_write_u64(ft_hashed_output *output, uint64_t value);

/* Write the digest.  False: this or an earlier write failed. */
bool ft_hashed_output_finish(ft_hashed_output *output);

#endif
