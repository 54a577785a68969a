/*
 * mma_f16.cuh - the fixed accumulation order of batch-invariant f16 and bf16 GEMM.
 *
 * k advances in steps of 32 from first to last, zero-padded at the end. A step is two mma
 * instructions into the same accumulators, and nothing else is added to them: neither thread blocks
 * nor warps split k. In a step, lane (g, t) = (lane / 4, lane % 4) holds 8 neighbours, k 8t .. 8t +
 * 7, of weight rows g and g + 8 and of token g: 16 bytes each, the first four elements for one
 * instruction and the last four for the other. A result therefore depends neither on the number of
 * rows nor on the kernel: weights are always the 16 rows of the instruction, tokens its 8 columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_MMA_F16_CUH
#define FT_KERNELS_CUDA_GEMM_F16_MMA_F16_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/f16/gemm_f16.h"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/rows.cuh"

enum { F16_K_STEP = 32 };

/* sum [16, 8] += the upper and lower 8 weight rows times x, for one k step. */
template <bool bf16>
__device__ __forceinline__ void f16_mma_k_step(float (&sum)[4], const uint4 &upper,
                                               const uint4 &lower, const uint4 &x)
{
    const uint32_t a[2][4] = { { upper.x, lower.x, upper.y, lower.y },
                               { upper.z, lower.z, upper.w, lower.w } };
    ft_mma_f16<bf16>(sum, a[0], x.x, x.y);
    ft_mma_f16<bf16>(sum, a[1], x.z, x.w);
}

#endif
