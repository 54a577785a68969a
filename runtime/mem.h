/*
 * mem.h - overflow-checked size arithmetic, little-endian loads and stores, allocation helpers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MEM_H
#define FT_RUNTIME_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

#define FT_COUNT(array) (sizeof(array) / sizeof(array)[0])

/* *out = a * b, or a + b; false if the result overflows size_t. */
static inline bool ft_checked_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool ft_checked_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Round up to a multiple of `unit`; the caller ensures that this does not overflow. */
static inline size_t ft_round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* n / by, rounded up; by is not 0 and n + by does not overflow. */
static inline size_t ft_divide_up(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

static inline size_t ft_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t ft_max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Files are little-endian on every machine. */
static inline uint16_t ft_load_le16(const void *bytes)
{
    const unsigned char *b = bytes;
    return (uint16_t) (b[0] | b[1] << 8);
}

static inline uint32_t ft_load_le32(const void *bytes)
{
    const unsigned char *b = bytes;
    return (uint32_t) b[0] | (uint32_t) b[1] << 8 | (uint32_t) b[2] << 16 | (uint32_t) b[3] << 24;
}

static inline uint64_t ft_load_le64(const void *bytes)
{
    const unsigned char *b = bytes;
    return (uint64_t) ft_load_le32(b) | (uint64_t) ft_load_le32(b + 4) << 32;
}

static inline void ft_store_le32(void *bytes, uint32_t value)
{
    unsigned char *b = bytes;
    for (int i = 0; i < 4; i++)
        b[i] = (unsigned char) (value >> 8 * i);
}

static inline void ft_store_le64(void *bytes, uint64_t value)
{
    unsigned char *b = bytes;
    for (int i = 0; i < 8; i++)
        b[i] = (unsigned char) (value >> 8 * i);
}

/*
 * Zeroed memory aligned to a cache line (64 bytes); NULL if the allocation fails.
 * Free with free().
 */
void *ft_calloc_aligned(size_t bytes);

/*
 * MemAvailable of /proc/meminfo in bytes, or SIZE_MAX if unknown.  Linux overcommits memory, so a
 * successful allocation is no guarantee, and the OOM killer ends programs that use too much.
 */
size_t ft_memory_available(void);

/* calloc(count, size), but never NULL for count 0. */
void *ft_calloc(size_t count, size_t size);

/*
 * Grow an array with realloc() to twice its capacity, or to the minimum capacity if it is 0.
 * NULL: out of memory, and nothing has changed.
 */
void *ft_array_grow(void *array, size_t *capacity, size_t min_capacity, size_t size);

/*
 * Close a stream of open_memstream().  False if a write or the final reallocation of the buffer
 * failed; the buffer is then freed and *text is NULL.
 */
bool ft_memstream_close(FILE *stream, char **text);

/* A copy of a string, or NULL if out of memory. */
char *ft_strdup(const char *text);

#pragma GCC visibility pop

#endif
