/*
 * i8_avxvnni.c - int8 GEMM with 256-bit VNNI, for processors without AVX-512.
 *
 * As in i8_avx512.c, panels hold weight + 128 and accumulators start at -128 times the sum of x.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

enum { QUAD_BYTES = 32 };

#include "kernels/cpu/gemm/int8/i8_epilogue.h"
#include "kernels/cpu/gemm/int8/i8_softmax.h"
#include "kernels/cpu/gemm/int8/i8_ymm.h"

FT_INLINE __m256i flip(__m256i weights)
{
    return _mm256_xor_si256(weights, _mm256_set1_epi8(-128));
}

static inline void store_quad(char *to, __m256i weights)
{
    _mm256_store_si256((__m256i *) to, flip(weights));
}

/* An asm, so that the accumulator stays in its register; see i8_avx512.c. */
FT_INLINE void dot(__m256i *sum, __m256i weights, __m256i x)
{
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(*sum) : "x"(weights), "x"(x));
}

static void acc_init_rows(int32_t *acc_init, const int8_t *x, size_t stride, size_t rows,
                          size_t quads)
{
    const __m256i ones = _mm256_set1_epi8(1);
    for (size_t row = 0; row < rows; row++, x += stride) {
        __m256i sum = _mm256_setzero_si256();
        size_t q = 0;
        for (; q + 8 <= quads; q += 8)
            dot(&sum, ones, _mm256_loadu_si256((const __m256i *) (x + 4 * q)));
        int8_t tail[32] = { 0 };
        memcpy(tail, x + 4 * q, 4 * (quads - q));
        dot(&sum, ones, _mm256_loadu_si256((const __m256i *) tail));
        __m128i x4 = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        x4 = _mm_hadd_epi32(x4, x4);
        acc_init[row] = -128 * _mm_cvtsi128_si32(_mm_hadd_epi32(x4, x4));
    }
}

FT_INLINE void dot_rows(__m256i sum[FT_I8_TILE][2], const char *w, size_t strip,
                        const int8_t *const x[FT_I8_TILE], size_t at, int rows)
{
    __m256i weights[2] = { _mm256_load_si256((const __m256i *) w),
                           _mm256_load_si256((const __m256i *) (w + strip)) };
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        __m256i x_quad = broadcast_quad(x[row] + at);
        dot(&sum[row][0], weights[0], x_quad);
        dot(&sum[row][1], weights[1], x_quad);
    }
}

/* rows x two strips, with the accumulators of all of k in registers. */
FT_INLINE void gemm_two_strips(const ft_i8_tile *tile, const char *w, size_t strip,
                               const ft_i8_prefetch *prefetch, int32_t *out, int rows)
{
    const int8_t *x[FT_I8_TILE], *prefetch_at = prefetch->at;
    __m256i sum[FT_I8_TILE][2];
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        x[row] = tile->x + (size_t) row * tile->x_stride;
        sum[row][0] = sum[row][1] = _mm256_set1_epi32(tile->acc_init[row]);
    }
    size_t q = 0;
    for (; q + 8 <= tile->k_quads; q += 8, prefetch_at += prefetch->stride) {
        prefetch_lines(prefetch_at, prefetch->lines);
        for (size_t i = 0; i < 8; i++)
            dot_rows(sum, w + (q + i) * QUAD_BYTES, strip, x, 4 * (q + i), rows);
    }
    for (; q < tile->k_quads; q++)
        dot_rows(sum, w + q * QUAD_BYTES, strip, x, 4 * q, rows);
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        __m256i *to = (__m256i *) (out + (size_t) row * tile->out_stride);
        _mm256_storeu_si256(to, unpermute(sum[row][0]));
        _mm256_storeu_si256(to + 1, unpermute(sum[row][1]));
    }
}

#define TWO_FUNCTION(rows)                                                                         \
    static void two_##rows(const ft_i8_tile *tile, const char *w, size_t strip,                    \
                           const ft_i8_prefetch *prefetch, int32_t *out)                           \
    {                                                                                              \
        gemm_two_strips(tile, w, strip, prefetch, out, rows);                                      \
    }
TWO_FUNCTION(1)
TWO_FUNCTION(2)
TWO_FUNCTION(3)
TWO_FUNCTION(4)
TWO_FUNCTION(5)
TWO_FUNCTION(6)

static void gemm_tile(const ft_i8_tile *tile, const void *panel, size_t panel_rows)
{
    static strips_fn *const two[FT_I8_TILE] = { two_1, two_2, two_3, two_4, two_5, two_6 };
    gemm_strips(tile, panel, panel_rows, 2, two[tile->rows - 1]);
}

/* A tile of weights stays in registers while all rows of x are processed. */
static inline void stream_tile(const ft_i8_tile *tile, const int8_t *weights, const int8_t *x,
                               int32_t *out)
{
    __m256i quads[8];
    FT_UNROLL
    for (int q = 0; q < 8; q += 2)
        load_two_quads(quads + q, weights + q * 16);
    FT_UNROLL
    for (int q = 0; q < 8; q++)
        quads[q] = flip(quads[q]);
    for (size_t row = 0; row < tile->rows; row++, x += tile->x_stride, out += tile->out_stride) {
        __m256i sum[2] = { _mm256_loadu_si256((const __m256i *) out), _mm256_setzero_si256() };
        FT_UNROLL
        for (int q = 0; q < 8; q++)
            dot(&sum[q % 2], quads[q], broadcast_quad(x + 4 * q));
        _mm256_storeu_si256((__m256i *) out, _mm256_add_epi32(sum[0], sum[1]));
    }
}

static void stream(const ft_i8_tile *tile, const int8_t *w, size_t padded_n, size_t first,
                   size_t weight_rows)
{
    stream_tiles(tile, w, padded_n, first, weight_rows, stream_tile);
}

const ft_i8_kernels ft_i8_avxvnni = {
    .stream_rows = 8,
    .pack_col4 = pack_col4,
    .pack_rows = pack_rows,
    .pack_cols = pack_cols,
    .acc_init_rows = acc_init_rows,
    .gemm_tile = gemm_tile,
    .stream = stream,
    .softmax = softmax,
    .epilogue = epilogue,
};
