/*
 * i8_avx2.c - int8 GEMM with AVX2, exact without VNNI.
 *
 * vpmaddubsw multiplies unsigned by signed bytes and adds pairs in 16 bits. The unsigned operand is
 * the magnitude of the weight, the signed one is x with the sign of the weight, so a pair is at
 * most 2 * 128 * 127 = 32512: it never saturates, even for weights of -128, as long as x is never
 * -128. Panels hold each weight and its magnitude.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

enum { QUAD_BYTES = 64, TILE_STRIPS = 1 };

#include "kernels/cpu/gemm/int8/i8_epilogue.h"
#include "kernels/cpu/gemm/int8/i8_softmax.h"
#include "kernels/cpu/gemm/int8/i8_ymm.h"

FT_INLINE void store_quad(char *to, __m256i weights)
{
    _mm256_store_si256((__m256i *) to, weights);
    _mm256_store_si256((__m256i *) (to + 32), _mm256_abs_epi8(weights));
}

FT_INLINE __m256i dot(__m256i sum, __m256i weights, __m256i magnitudes, __m256i x)
{
    __m256i pairs = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(x, weights));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

static void acc_init_rows(int32_t *acc_init, const int8_t *x, size_t stride, size_t rows,
                          size_t quads)
{
    (void) x, (void) stride, (void) quads;
    memset(acc_init, 0, rows * sizeof *acc_init);
}

FT_INLINE void dot_quad(tile_acc sum, const char *w, size_t strip,
                        const int8_t *const x[FT_I8_TILE], size_t at, int rows)
{
    (void) strip;
    __m256i weights = _mm256_load_si256((const __m256i *) w);
    __m256i magnitudes = _mm256_load_si256((const __m256i *) (w + 32));
    FT_UNROLL
    for (int row = 0; row < rows; row++)
        sum[row][0] = dot(sum[row][0], weights, magnitudes, vi_broadcast(x[row] + at));
}

/* Half a tile of weights and its magnitudes stay in registers while all rows of x are processed. */
static inline void stream_tile(const ft_i8_tile *tile, const int8_t *weights, const int8_t *x,
                               int32_t *out)
{
    for (int half = 0; half < 2; half++, weights += 64, x += 16) {
        __m256i quads[4], magnitudes[4];
        load_two_quads(quads, weights);
        load_two_quads(quads + 2, weights + 32);
        FT_UNROLL
        for (int q = 0; q < 4; q++)
            magnitudes[q] = _mm256_abs_epi8(quads[q]);
        for (size_t row = 0; row < tile->rows; row++) {
            __m256i *to = (__m256i *) (out + row * tile->out_stride);
            __m256i sum = _mm256_loadu_si256(to);
            FT_UNROLL
            for (int q = 0; q < 4; q++)
                sum = dot(sum, quads[q], magnitudes[q],
                          vi_broadcast(x + row * tile->x_stride + 4 * q));
            _mm256_storeu_si256(to, sum);
        }
    }
}

const ft_i8_kernels ft_i8_avx2 = { FT_I8_KERNELS, .stream = stream, .stream_rows = 8 };
