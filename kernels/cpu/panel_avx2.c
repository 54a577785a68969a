/*
 * panel_avx2.c - products with weights in blocks, with AVX2.
 *
 * vpmaddubsw adds pairs of products in 16 bits, which codes of 4 bits are small enough for.  Those
 * of 8 bits, and x with them, become numbers of 16 bits, every other byte at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/panel_ymm.h"

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
    vi quad = quad_at(x);
    *sum = _mm256_add_epi32(*sum, bits == 4 ? dot_nibbles(w, quad) : dot_bytes(w, quad));
}

#include "kernels/cpu/panel_impl.h"

FUNCTIONS(1, 1, 4)
FUNCTIONS(2, 1, 2)
FUNCTIONS(3, 1, 2)
FUNCTIONS(4, 1, 2)
FUNCTIONS(1, 3, 2)
FUNCTIONS(2, 3, 1)
FUNCTIONS(3, 3, 1)

static multiply_function *const codes[][2] = {
    NAMES(1, 1),
    NAMES(2, 1),
    NAMES(3, 1),
    NAMES(4, 1),
};
static multiply_function *const reals[][2] = { NAMES(1, 3), NAMES(2, 3), NAMES(3, 3) };
FT_PANEL_MULTIPLY

const ft_panel_kernels ft_panel_avx2 = FT_PANEL_TABLE;
