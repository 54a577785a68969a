/*
 * groupwise_avx512.c - GEMM with group-wise quantized weights, with AVX-512 VNNI.
 *
 * vpdpbusd multiplies unsigned by signed bytes, exactly the types of weights and activations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/groupwise/groupwise.h"
#include "kernels/cpu/base/simd_i32.h"

FT_INLINE void vi_dot(vi *sum, vi w, const int8_t *x, int bits)
{
    (void) bits;
    vi_dot_u8(sum, w, vi_broadcast(x));
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
FUNCTIONS(1, 2, 2)
FUNCTIONS(2, 2, 2)
FUNCTIONS(3, 2, 2)
FUNCTIONS(4, 2, 2)
FUNCTIONS(5, 2, 2)
FUNCTIONS(6, 2, 2)

static gemm_fn *const int8_kernels[][2] = {
    TABLE_FOUR_ROWS(1), TABLE_ROW(5, 1), TABLE_ROW(6, 1), TABLE_ROW(7, 1), TABLE_ROW(8, 1),
};
static gemm_fn *const float_kernels[][2] = {
    TABLE_FOUR_ROWS(2),
    TABLE_ROW(5, 2),
    TABLE_ROW(6, 2),
};
FT_GROUPWISE_GEMM_TILE

const ft_groupwise_kernels ft_groupwise_avx512 = FT_GROUPWISE_KERNELS;
