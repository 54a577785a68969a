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

FT_INLINE vi vi_mul(vi a, vi b)
{
    return _mm512_mullo_epi32(a, b);
}

FT_INLINE vf vf_from_i32(vi v)
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

static gemm_fn *const int8_kernels[][2] = {
    TABLE_ROW(1, 1), TABLE_ROW(2, 1), TABLE_ROW(3, 1), TABLE_ROW(4, 1),
    TABLE_ROW(5, 1), TABLE_ROW(6, 1), TABLE_ROW(7, 1), TABLE_ROW(8, 1),
};
static gemm_fn *const float_kernels[][2] = {
    TABLE_ROW(1, 3),
    TABLE_ROW(2, 3),
    TABLE_ROW(3, 3),
    TABLE_ROW(4, 3),
};
FT_GROUPWISE_GEMM_TILE

const ft_groupwise_kernels ft_groupwise_avx512 = FT_GROUPWISE_KERNELS;
