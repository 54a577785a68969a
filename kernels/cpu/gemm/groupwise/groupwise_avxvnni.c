/*
 * groupwise_avxvnni.c - GEMM with group-wise quantized weights, with 256-bit VNNI.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/simd_i32.h"

FT_INLINE void vi_dot(vi *sum, vi w, const int8_t *x, int bits)
{
    (void) bits;
    vi_dot_u8(sum, w, vi_broadcast(x));
}

#include "kernels/cpu/gemm/groupwise/groupwise_impl.h"

FUNCTIONS(1, 1, 4)
FUNCTIONS(2, 1, 4)
FUNCTIONS(3, 1, 2)
FUNCTIONS(4, 1, 2)
FUNCTIONS(1, 2, 4)
FUNCTIONS(2, 2, 2)
FUNCTIONS(3, 2, 2)
FUNCTIONS(4, 2, 1)

static gemm_fn *const int8_kernels[][2] = { TABLE_FOUR_ROWS(1) };
static gemm_fn *const float_kernels[][2] = { TABLE_FOUR_ROWS(2) };
FT_GROUPWISE_GEMM_TILE

const ft_groupwise_kernels ft_groupwise_avxvnni = FT_GROUPWISE_KERNELS;
