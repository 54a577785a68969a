/*
 * groupwise_generic.c - GEMM with group-wise quantized weights, in plain C.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIMD_SCALAR
#include "kernels/cpu/gemm/groupwise/groupwise.h"
#include "kernels/cpu/base/simd_i32.h"

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
FUNCTIONS(1, 2, 32)

static gemm_fn *const int8_kernels[][2] = { TABLE_ROW(1, 1) }, *const float_kernels[][2] = {
    TABLE_ROW(1, 2)
};
FT_GROUPWISE_GEMM_TILE

const ft_groupwise_kernels ft_groupwise_generic = FT_GROUPWISE_KERNELS;
