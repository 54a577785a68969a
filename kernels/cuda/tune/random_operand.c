/*
 * random_operand.c - random values for benchmarks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/tune/random_operand.h"
#include "runtime/mem.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN_BYTES = 8 << 20 };

uint64_t ft_mix64(uint64_t i)
{
    uint64_t z = i * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The next 8 bytes of random bits z, as values of this type. */
static uint64_t values_of(uint64_t z, ft_dtype dtype)
{
    uint64_t out = 0;
    switch (dtype) {
    case FT_F16:
        return (z & 0x83ff83ff83ff83ffu) | 0x3800380038003800u;
    case FT_BF16:
        return (z & 0x807f807f807f807fu) | 0x3f003f003f003f00u;
    case FT_F32:
        return (z & 0x807fffff807fffffu) | 0x3f0000003f000000u;
    case FT_I8:
        for (int i = 0; i < 64; i += 8)
            out |= (uint64_t) (uint8_t) ((z >> i & 0xff) * 255 / 256 - 127) << i;
        return out;
    default:
        return z;
    }
}

int ft_cuda_fill_random(void *to, size_t bytes, ft_dtype dtype)
{
    size_t count = ft_min_size(PATTERN_BYTES, ft_round_up(bytes, 8)) / sizeof(uint64_t);
    uint64_t *pattern = ft_calloc(count, sizeof *pattern);
    int code = pattern == NULL ? (int) cudaErrorMemoryAllocation : 0;
    for (size_t i = 0; code == 0 && i < count; i++)
        pattern[i] = values_of(ft_mix64(i + 1), dtype);
    for (size_t at = 0; at < bytes && code == 0; at += PATTERN_BYTES)
        code = (int) cudaMemcpy((char *) to + at, pattern, ft_min_size(PATTERN_BYTES, bytes - at),
                                cudaMemcpyHostToDevice);
    free(pattern);
    return code;
}
