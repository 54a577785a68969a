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

__device__ __forceinline__ void wgmma_store_element(int8_t *y, float value, float inverse)
{
    *y = (int8_t) ft_quantize_bits(value, inverse);
}

__device__ __forceinline__ void wgmma_store_element(__half *y, float value, float)
{
    *y = __float2half_rn(value);
}

__device__ __forceinline__ void wgmma_store_element(float *y, float value, float)
{
    *y = value;
}

template <typename Y>
__device__ __forceinline__ void wgmma_epilogue_element(const wgmma_args &a, int row, int col,
                                                       int32_t sum, float scale, float bias)
{
    if (a.x_scales != NULL)
        scale = a.x_scales[row] * scale;
    float value = ft_apply_epilogue<FT_EPILOGUE_ANY>(sum, scale, bias, a.activation);
    if (a.residual != NULL)
        value += (float) ((const Y *) a.residual)[(size_t) row * a.n + col];
    int output_index = wgmma_output_of(a, col),
        first = output_index == 0 ? 0 : a.output_end[output_index - 1];
    size_t width = (size_t) (a.output_end[output_index] - first);
    wgmma_store_element((Y *) a.y[output_index] + row * width + (col - first), value,
                        a.y_inv_scale[output_index]);
}

/* Rows of the shared memory copy are padded by 4 elements to avoid bank conflicts. */
template <int COLS, typename Y>
__device__ __forceinline__ void
wgmma_epilogue_general(const wgmma_args &a, const wgmma_tile_coord &coord,
                       const int32_t (&sums)[COLS / 2], const wgmma_col_params<COLS> &columns,
                       int32_t (&copy)[64][COLS + 4], int warpgroup)
{
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int block = 0; block < COLS / 32; block++)
#pragma unroll
            for (int i = 0; i < 8; i++)
                copy[h * 8 + wgmma_lane_row()][32 * block + wgmma_lane_col() + i] =
                    wgmma_acc_at(sums, block, h, i);
    wgmma_warpgroup_sync(warpgroup);
    for (int i = threadIdx.x % WARPGROUP_THREADS; i < 64 * COLS; i += WARPGROUP_THREADS) {
        int down = i / COLS, right = i % COLS;
        if (coord.row + down < a.m && coord.col + right < wgmma_range_end(a, coord))
            wgmma_epilogue_element<Y>(a, coord.row + down, coord.col + right, copy[down][right],
                                      columns.scale[right], columns.bias[right]);
    }
}

#endif
#endif
