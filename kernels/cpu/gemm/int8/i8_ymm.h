/*
 * i8_ymm.h - the 256-bit vectors of i8_strips.h: a quad of a strip is one vector, and so are the
 * accumulators of a row of x.
 *
 * The including file defines store_quad() and dot_quad() for one quad.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_I8_YMM_H
#define FT_KERNELS_CPU_GEMM_INT8_I8_YMM_H

#include <immintrin.h>

typedef __m256i strip_quad, strip_acc;

enum { ROW_STEP = 1 };

#include "kernels/cpu/gemm/int8/i8_strips.h"

/* Stores a quad of a strip. */
FT_INLINE void store_quad(char *to, __m256i weights);

/* sum += one quad of each row, at x[row] + at, times the quads of TILE_STRIPS strips. */
FT_INLINE void dot_quad(tile_acc sum, const char *w, size_t strip,
                        const int8_t *const x[FT_I8_TILE], size_t at, int rows);

/* Restores the order of dwords 0 2 4 6 1 3 5 7 to 0 1 2 3 4 5 6 7. */
FT_INLINE __m256i unpermute(__m256i acc)
{
    return _mm256_permutevar8x32_epi32(acc, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

FT_INLINE void unpermute_stored(int32_t *acc)
{
    _mm256_storeu_si256((__m256i *) acc, unpermute(_mm256_loadu_si256((const __m256i *) acc)));
}

FT_INLINE void store_acc(int32_t *to, tile_acc sum, int row, int strip)
{
    _mm256_storeu_si256((__m256i *) to, unpermute(sum[row][strip]));
}

FT_INLINE void init_acc(tile_acc sum, const int32_t *acc_init, int rows)
{
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        FT_UNROLL
        for (int i = 0; i < TILE_STRIPS; i++)
            sum[row][i] = _mm256_set1_epi32(acc_init[row]);
    }
}

FT_INLINE void load_two_quads(__m256i quads[2], const int8_t *tile)
{
    __m256i even = _mm256_loadu_si256((const __m256i *) tile);
    __m256i odd = _mm256_loadu_si256((const __m256i *) (tile + 128));
    quads[0] = _mm256_permute2x128_si256(even, odd, 0x20);
    quads[1] = _mm256_permute2x128_si256(even, odd, 0x31);
}

FT_INLINE void transpose_rows(__m256i quads[4], const int8_t *from, size_t stride)
{
    __m256i pair[4]; /* rows 2i and 2i + 1 */
    FT_UNROLL
    for (size_t i = 0; i < 4; i++) {
        __m128i even = _mm_loadu_si128((const __m128i *) (from + 2 * i * stride));
        __m128i odd = _mm_loadu_si128((const __m128i *) (from + (2 * i + 1) * stride));
        pair[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(even), odd, 1);
    }
    __m256i low01 = _mm256_unpacklo_epi32(pair[0], pair[1]);
    __m256i high01 = _mm256_unpackhi_epi32(pair[0], pair[1]);
    __m256i low23 = _mm256_unpacklo_epi32(pair[2], pair[3]);
    __m256i high23 = _mm256_unpackhi_epi32(pair[2], pair[3]);
    quads[0] = _mm256_unpacklo_epi64(low01, low23);
    quads[1] = _mm256_unpackhi_epi64(low01, low23);
    quads[2] = _mm256_unpacklo_epi64(high01, high23);
    quads[3] = _mm256_unpackhi_epi64(high01, high23);
}

FT_INLINE void store_quads(char *strip, size_t quad_bytes, size_t q, const __m256i *quads,
                           size_t count)
{
    for (size_t i = 0; i < count; i++)
        store_quad(strip + (q + i) * quad_bytes, quads[i]);
}

FT_INLINE __m256i transpose_cols(const int8_t *from, size_t stride)
{
    __m128i row[4];
    FT_UNROLL
    for (size_t i = 0; i < 4; i++)
        row[i] = _mm_loadl_epi64((const __m128i *) (from + i * stride));
    __m128i row01 = _mm_unpacklo_epi8(row[0], row[1]), row23 = _mm_unpacklo_epi8(row[2], row[3]);
    __m256i cols = _mm256_castsi128_si256(_mm_unpacklo_epi16(row01, row23));
    cols = _mm256_inserti128_si256(cols, _mm_unpackhi_epi16(row01, row23), 1);
    return _mm256_permutevar8x32_epi32(cols, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

FT_INLINE void dot_block(tile_acc sum, const char *w, size_t strip,
                         const int8_t *const x[FT_I8_TILE], size_t at, int rows)
{
    for (size_t q = 0; q < BLOCK_QUADS; q++)
        dot_quad(sum, w + q * QUAD_BYTES, strip, x, at + 4 * q, rows);
}

FT_INLINE void dot_tail(tile_acc sum, const char *w, size_t strip,
                        const int8_t *const x[FT_I8_TILE], size_t at, size_t quads, int rows)
{
    for (size_t q = 0; q < quads; q++)
        dot_quad(sum, w + q * QUAD_BYTES, strip, x, at + 4 * q, rows);
}

#endif
