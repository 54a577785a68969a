/*
 * mem.h - sizes from outside are multiplied, added and read with care.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MEM_H
#define FT_RUNTIME_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FT_COUNT(array) (sizeof(array) / sizeof(array)[0])

/* *out = a * b or a + b; false when that does not fit a size_t. */
static inline bool ft_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool ft_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* The next multiple of `unit`; the caller knows that it does not overflow. */
static inline size_t ft_round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static inline size_t ft_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Files are little-endian, on every machine. */
static inline uint16_t ft_le16(const void *bytes)
{
    const unsigned char *b = bytes;
    return (uint16_t) (b[0] | b[1] << 8);
}

static inline uint32_t ft_le32(const void *bytes)
{
    const unsigned char *b = bytes;
    return (uint32_t) b[0] | (uint32_t) b[1] << 8 | (uint32_t) b[2] << 16 | (uint32_t) b[3] << 24;
}

static inline uint64_t ft_le64(const void *bytes)
{
    const unsigned char *b = bytes;
    return (uint64_t) ft_le32(b) | (uint64_t) ft_le32(b + 4) << 32;
}

static inline void ft_put_le32(void *bytes, uint32_t value)
{
    unsigned char *b = bytes;
    for (int i = 0; i < 4; i++)
        b[i] = (unsigned char) (value >> 8 * i);
}

static inline void ft_put_le64(void *bytes, uint64_t value)
{
    unsigned char *b = bytes;
    for (int i = 0; i < 8; i++)
        b[i] = (unsigned char) (value >> 8 * i);
}

/*
 * Memory that starts on a cache line (64 bytes), zeroed; NULL when there is none.
 * Free with free().
 */
void *ft_alloc(size_t bytes);

/*
 * Bytes that this machine can give without taking them from others; SIZE_MAX where it does not say.
 * Linux promises more memory than there is, and ends programs that believe it.
 */
size_t ft_memory_free(void);

/* calloc(count, size) that never returns NULL for zero elements. */
void *ft_array(size_t count, size_t size);

/*
 * An array that realloc() may move, with room for twice as many elements, or for `first` where
 * *room is 0.  NULL: no memory, and nothing has changed.
 */
void *ft_grown(void *array, size_t *room, size_t first, size_t size);

/*
 * Close a stream of open_memstream(); false where it has not got all of its text, which is then
 * freed and NULL.  The C library gives the memory its final size here, and loses it where that
 * fails.
 */
bool ft_memstream_close(FILE *stream, char **text);

/* A copy of a string, or NULL. */
char *ft_strdup(const char *text);

#endif
