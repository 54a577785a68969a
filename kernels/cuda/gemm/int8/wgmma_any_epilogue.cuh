/*
 * wgmma_any_epilogue.cuh - general epilogue of the wgmma INT8 GEMM.
 *
 * Through shared memory, one element at a time: any activation, row scales, any width.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_WGMMA_ANY_EPILOGUE_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_WGMMA_ANY_EPILOGUE_CUH

#include "kernels/cuda/gemm/int8/wgmma_epilogue.cuh"

#include <cuda_fp16.h>

#ifdef FT_HAS_WGMMA

__device__ __forceinline__ void wgmma_put(int8_t *y, float value, float inverse)
{
    *y = (int8_t) ft_code_bits(value, inverse);
}

__device__ __forceinline__ void wgmma_put(__half *y, float value, float)
{
    *y = __float2half_rn(value);
}

__device__ __forceinline__ void wgmma_put(float *y, float value, float)
{
    *y = value;
}

template <typename Y>
__device__ __forceinline__ void wgmma_finish_one(const wgmma_args &a, int row, int col, int32_t sum,
                                                 float scale, float bias)
{
    if (a.x_scales != NULL)
        scale = a.x_scales[row] * scale;
    float value = ft_finish<FT_EPILOGUE_ANY>(sum, scale, bias, a.activation);
    if (a.residual != NULL)
        value += (float) ((const Y *) a.residual)[(size_t) row * a.n + col];
    int which = wgmma_part_of(a, col), first = which == 0 ? 0 : a.part[which - 1];
    size_t width = (size_t) (a.part[which] - first);
    wgmma_put((Y *) a.y[which] + row * width + (col - first), value, a.y_inverse[which]);
}

/* Rows of the shared memory copy are padded by 4 elements to avoid bank conflicts. */
template <int COLS, typename Y>
__device__ __forceinline__ void
wgmma_finish_any(const wgmma_args &a, const wgmma_place &place, const int32_t (&sums)[COLS / 2],
                 const wgmma_columns<COLS> &columns, int32_t (&copy)[64][COLS + 4], int team)
{
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int block = 0; block < COLS / 32; block++)
#pragma unroll
            for (int i = 0; i < 8; i++)
                copy[h * 8 + wgmma_lane_row()][32 * block + wgmma_lane_col() + i] =
                    wgmma_sum(sums, block, h, i);
    wgmma_sync_team(team);
    for (int i = threadIdx.x % WGMMA_TEAM; i < 64 * COLS; i += WGMMA_TEAM) {
        int down = i / COLS, right = i % COLS;
        if (place.row + down < a.m && place.col + right < wgmma_end(a, place))
            wgmma_finish_one<Y>(a, place.row + down, place.col + right, copy[down][right],
                                columns.scale[right], columns.bias[right]);
    }
}

#endif
#endif
