/*
 * groupwise_avx512.c - GEMM with group-wise quantized weights, with AVX-512 VNNI.
 *
 * vpdpbusd multiplies unsigned by signed bytes, exactly the types of weights and activations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/groupwise/groupwise.h"
#include "kernels/cpu/base/simd.h"

typedef __m512i vi;
enum { VI_LANES = 16 };
typedef struct x_quad {
    int8_t x[4];
} x_quad;

FT_INLINE vi vi_set(int32_t x)
{
    return _mm512_set1_epi32(x);
}

FT_INLINE vi vi_load(const uint32_t *x)
{
    return _mm512_loadu_si512(x);
}

FT_INLINE vi vi_bytes(const uint8_t *x)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *) x));
}

FT_INLINE vi vi_nibbles(vi w, int high)
{
    return _mm512_and_si512(high ? _mm512_srli_epi32(w, 4) : w, _mm512_set1_epi8(15));
}

FT_INLINE vi vi_times(vi a, vi b)
{
    return _mm512_mullo_epi32(a, b);
}

FT_INLINE vf vf_of(vi v)
{
    return _mm512_cvtepi32_ps(v);
}

/* An asm, so that the accumulator stays in its register; see i8_avx512.c. */
FT_INLINE void vi_dot(vi *sum, vi w, const int8_t *x, int bits)
{
    (void) bits;
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(*sum) : "v"(w), "m"(*(const x_quad *) x));
}

#include "kernels/cpu/gemm/groupwise/groupwise_impl.h"

FUNCTIONS(1, 1, 2)
FUNCTIONS(2, 1, 2)
FUNCTIONS(3, 1, 2)
FUNCTIONS(4, 1, 2)
FUNCTIONS(5, 1, 2)
FUNCTIONS(6, 1, 2)
FUNCTIONS(7, 1, 2)
FUNCTIONS(8, 1, 2)
FUNCTIONS(1, 3, 2)
FUNCTIONS(2, 3, 2)
FUNCTIONS(3, 3, 2)
FUNCTIONS(4, 3, 2)

static multiply_function *const codes[][2] = {
    NAMES(1, 1), NAMES(2, 1), NAMES(3, 1), NAMES(4, 1),
    NAMES(5, 1), NAMES(6, 1), NAMES(7, 1), NAMES(8, 1),
};
static multiply_function *const reals[][2] = {
    NAMES(1, 3),
    NAMES(2, 3),
    NAMES(3, 3),
    NAMES(4, 3),
};
FT_PANEL_MULTIPLY

const ft_panel_kernels ft_panel_avx512 = FT_PANEL_TABLE;
