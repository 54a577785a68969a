/*
 * groupwise_avx2.c - GEMM with group-wise quantized weights and int8 activations, with AVX2.
 *
 * vpmaddubsw adds pairs of products in 16 bits, which 4-bit weights cannot overflow. 8-bit weights
 * and the activations are widened to 16 bits, even and odd bytes separately. groupwise_avx2_float.c
 * has the kernels for float activations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/groupwise/groupwise_avx2_float.h"
#include "kernels/cpu/base/simd_i32.h"

FT_INLINE __m256i dot_nibbles(__m256i w, __m256i quad)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(w, quad), _mm256_set1_epi16(1));
}

FT_INLINE __m256i dot_bytes(__m256i w, __m256i quad)
{
    __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(quad, 8), 8);
    __m256i odd = _mm256_srai_epi16(quad, 8);
    return _mm256_add_epi32(_mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(0xff)), even),
                            _mm256_madd_epi16(_mm256_srli_epi16(w, 8), odd));
}

FT_INLINE void vi_dot(vi *sum, vi w, const int8_t *x, int bits)
{
    vi quad = vi_broadcast(x);
    *sum = _mm256_add_epi32(*sum, bits == 4 ? dot_nibbles(w, quad) : dot_bytes(w, quad));
}

#include "kernels/cpu/gemm/groupwise/groupwise_impl.h"

FUNCTIONS(1, 1, 4)
FUNCTIONS(2, 1, 2)
FUNCTIONS(3, 1, 2)
FUNCTIONS(4, 1, 2)

static gemm_fn *const int8_kernels[][2] = { TABLE_FOUR_ROWS(1) };

static void quantize_any(const ft_groupwise_x *to, size_t row, const ft_groupwise_weights *w,
                         const float *x, size_t cols)
{
    (to->digits == 1 ? quant_x : ft_groupwise_avx2_quantize_float)(to, row, w, x, cols);
}

static void gemm_tile(const ft_groupwise_tile *t)
{
    if (t->x.digits == 1)
        int8_kernels[t->rows - 1][t->w.bits == 8](t);
    else
        ft_groupwise_avx2_gemm_float(t);
}

const ft_groupwise_kernels ft_groupwise_avx2 = { .rows = { 0, FT_COUNT(int8_kernels),
                                                           FT_PANEL_MAX_ROWS },
                                                 .quant_x = quantize_any,
                                                 .gemm_tile = gemm_tile };
