/*
 * i8_avxvnni.c - int8 GEMM with 256-bit VNNI, for processors without AVX-512.
 *
 * As in i8_avx512.c, panels hold weight + 128 and accumulators start at -128 times the sum of x.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

enum { QUAD_BYTES = 32, TILE_STRIPS = 2 };

#include "kernels/cpu/gemm/int8/i8_epilogue.h"
#include "kernels/cpu/gemm/int8/i8_softmax.h"
#include "kernels/cpu/gemm/int8/i8_ymm.h"

FT_INLINE __m256i flip(__m256i weights)
{
    return _mm256_xor_si256(weights, _mm256_set1_epi8(-128));
}

FT_INLINE void store_quad(char *to, __m256i weights)
{
    _mm256_store_si256((__m256i *) to, flip(weights));
}

static void acc_init_rows(int32_t *acc_init, const int8_t *x, size_t stride, size_t rows,
                          size_t quads)
{
    const __m256i ones = _mm256_set1_epi8(1);
    for (size_t row = 0; row < rows; row++, x += stride) {
        __m256i sum = _mm256_setzero_si256();
        size_t q = 0;
        for (; q + 8 <= quads; q += 8)
            vi_dot_u8(&sum, ones, _mm256_loadu_si256((const __m256i *) (x + 4 * q)));
        int8_t tail[32] = { 0 };
        memcpy(tail, x + 4 * q, 4 * (quads - q));
        vi_dot_u8(&sum, ones, _mm256_loadu_si256((const __m256i *) tail));
        __m128i x4 = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        x4 = _mm_hadd_epi32(x4, x4);
        acc_init[row] = -128 * _mm_cvtsi128_si32(_mm_hadd_epi32(x4, x4));
    }
}

FT_INLINE void dot_quad(tile_acc sum, const char *w, size_t strip,
                        const int8_t *const x[FT_I8_TILE], size_t at, int rows)
{
    __m256i weights[2] = { _mm256_load_si256((const __m256i *) w),
                           _mm256_load_si256((const __m256i *) (w + strip)) };
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        __m256i x_quad = vi_broadcast(x[row] + at);
        vi_dot_u8(&sum[row][0], weights[0], x_quad);
        vi_dot_u8(&sum[row][1], weights[1], x_quad);
    }
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
            vi_dot_u8(&sum[q % 2], quads[q], vi_broadcast(x + 4 * q));
        _mm256_storeu_si256((__m256i *) out, _mm256_add_epi32(sum[0], sum[1]));
    }
}

const ft_i8_kernels ft_i8_avxvnni = { FT_I8_KERNELS, .stream = stream, .stream_rows = 8 };
