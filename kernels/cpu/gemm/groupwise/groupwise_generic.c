/*
 * groupwise_generic.c - GEMM with group-wise quantized weights, in plain C.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIMD_SCALAR
#include "kernels/cpu/gemm/groupwise/groupwise.h"
#include "kernels/cpu/base/simd.h"

typedef int32_t vi;
enum { VI_LANES = 1 };
FT_INLINE vi vi_set(int32_t x)
{
    return x;
}

FT_INLINE vi vi_load(const uint32_t *x)
{
    return (int32_t) *x;
}

FT_INLINE vi vi_bytes(const uint8_t *x)
{
    return *x;
}

FT_INLINE vi vi_nibbles(vi w, int high)
{
    return (int32_t) ((uint32_t) w >> 4 * high & 0x0f0f0f0f);
}

FT_INLINE vi vi_times(vi a, vi b)
{
    return (int32_t) ((uint32_t) a * (uint32_t) b);
}

FT_INLINE vf vf_of(vi v)
{
    return (float) v;
}

FT_INLINE void vi_dot(vi *sum, vi w, const int8_t *x, int bits)
{
    (void) bits;
    uint32_t dot = (uint32_t) *sum;
    for (int i = 0; i < 4; i++)
        dot += ((uint32_t) w >> 8 * i & 0xff) * (uint32_t) x[i];
    *sum = (int32_t) dot;
}

#include "kernels/cpu/gemm/groupwise/groupwise_impl.h"

FUNCTIONS(1, 1, 32)
FUNCTIONS(1, 3, 32)

static multiply_function *const codes[][2] = { NAMES(1, 1) }, *const reals[][2] = { NAMES(1, 3) };
FT_PANEL_MULTIPLY

const ft_panel_kernels ft_panel_generic = FT_PANEL_TABLE;
