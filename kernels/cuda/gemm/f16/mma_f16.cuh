/*
 * mma_f16.cuh - the one order in which products of f16 or bf16 are added.
 *
 * k goes by in windows of 32, from the first to the last; behind the end are zeros.  A window is
 * two instructions that add to the same sums, and nothing else adds to them: neither blocks nor
 * warps share k.  Of a window lane (g, t) = (lane / 4, lane % 4) holds 8 neighbours, k 8t .. 8t +
 * 7, of the weights' rows g and g + 8 and of token g: 16 bytes each, the first four for one
 * instruction and the last four for the other.  So a sum does not depend on how many rows there
 * are, nor on the kernel: weights are always the instruction's 16 rows, tokens its 8 columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_MMA_F16_CUH
#define FT_KERNELS_CUDA_GEMM_F16_MMA_F16_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/f16/gemm_f16.h"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/rows.cuh"

enum { HALVES_WINDOW = 32 };

/* sum [16, 8] += upper and lower 8 rows of the weights times x, of a window. */
template <bool bf16>
__device__ __forceinline__ void halves_multiply(float (&sum)[4], const uint4 &upper,
                                                const uint4 &lower, const uint4 &x)
{
    const uint32_t a[2][4] = { { upper.x, lower.x, upper.y, lower.y },
                               { upper.z, lower.z, upper.w, lower.w } };
    ft_mma_halves<bf16>(sum, a[0], x.x, x.y);
    ft_mma_halves<bf16>(sum, a[1], x.z, x.w);
}

#endif
