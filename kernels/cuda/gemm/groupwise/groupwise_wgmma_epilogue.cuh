/*
 * groupwise_wgmma_epilogue.cuh - epilogue: totals in shared memory to y.
 *
 * Whatever is common to all tokens of a lane is computed once: recomputed for each, stores took a
 * quarter of the kernel's time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_WGMMA_EPILOGUE_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_WGMMA_EPILOGUE_CUH

#include "kernels/cuda/gemm/groupwise/groupwise_wgmma.cuh"

#ifdef FT_HAS_WGMMA

/* Output address of a lane's two neighbouring columns, from `row` of the tile's weights. */
typedef struct wgmma_output {
    char *y; /* at token 0 */
    size_t pitch;
    ft_dtype dtype;
    ft_activation activation;
    float bias[2];
    bool biased, vectorized; /* vectorized: one store writes both */
    int columns_in_bounds; /* number of columns in bounds */
} wgmma_output;

__device__ __forceinline__ wgmma_output wgmma_output_of(const ft_cuda_groupwise_args &p,
                                                        const wgmma_tile &tile, int row)
{
    const ft_cuda_groupwise_linear &linear = p.linear[tile.linear];
    size_t first = (size_t) tile.panel * GROUPWISE_PANEL_ROWS + row;
    wgmma_output out = {};
    out.columns_in_bounds = first < linear.rows ? (int) (linear.rows - first) : 0;
    out.pitch = linear.rows;
    out.dtype = p.y_dtype;
    out.y = (char *) linear.y + first * (p.y_dtype == FT_F32 ? 4 : 2);
    out.activation = p.activation;
    out.biased = linear.bias != NULL;
    out.vectorized = linear.rows % 2 == 0 && (uintptr_t) linear.y % 16 == 0;
#pragma unroll
    for (int i = 0; i < 2; i++)
        out.bias[i] = out.biased && i < out.columns_in_bounds ? linear.bias[first + i] : 0.0f;
    return out;
}

template <ft_dtype type>
__device__ __forceinline__ void wgmma_store_x2(const wgmma_output &out, size_t token,
                                               float (&value)[2])
{
    if (out.vectorized)
        return ft_store_as<type, 2>(out.y, token * out.pitch, value);
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (i < out.columns_in_bounds)
            ft_store_as<type, 1>(out.y, token * out.pitch + i, value + i);
}

/* Adds the bias to a lane's totals and activates them: tokens as below. */
template <class CONFIG>
__device__ __forceinline__ void wgmma_activate(wgmma_output &out, size_t token, size_t end,
                                               float4 *totals)
{
#pragma unroll 1
    for (; token < end; token += 8, totals += CONFIG::consumers) {
        float4 four = *totals;
        float value[4] = { four.x, four.y, four.z, four.w };
        if (out.biased)
#pragma unroll
            for (int j = 0; j < 4; j++)
                value[j] += out.bias[j / 2];
        ft_activate_vec<4>(out.activation, value);
        *totals = make_float4(value[0], value[1], value[2], value[3]);
    }
    out.biased = false;
}

/* Tokens token, token + 1, and the same of each further 8, below `end`. */
template <class CONFIG, ft_dtype type>
__device__ __forceinline__ void wgmma_store_as(const wgmma_output &out, size_t token, size_t end,
                                               const float4 *totals)
{
#pragma unroll(CONFIG::warpgroups == 2 ? 4 : 2)
    for (int i = 0; token < end; i++, token += 8) {
        float4 four = totals[i * CONFIG::consumers];
        float value[2][2] = { { four.x, four.z }, { four.y, four.w } };
        if (out.biased)
#pragma unroll
            for (int j = 0; j < 4; j++)
                value[j / 2][j % 2] += out.bias[j % 2];
#pragma unroll
        for (int j = 0; j < 2; j++)
            if (token + j < end)
                wgmma_store_x2<type>(out, token + j, value[j]);
    }
}

/*
 * A lane's columns of a tile, tokens first .. end - 1, from its totals in shared memory: registers
 * cannot be indexed in a loop, and unrolled code takes as long to fetch as to run.
 */
template <class CONFIG>
__device__ __forceinline__ void wgmma_store(const ft_cuda_groupwise_args &p, const wgmma_tile &tile,
                                            size_t first, size_t end, int row, float4 *totals)
{
    wgmma_output out = wgmma_output_of(p, tile, row);
    size_t token = first + threadIdx.x % 4 * 2;
    if (out.columns_in_bounds == 0)
        return;
    if (out.activation != FT_ACT_NONE)
        wgmma_activate<CONFIG>(out, token, end, totals);
    switch (out.dtype) {
    case FT_F16:
        return wgmma_store_as<CONFIG, FT_F16>(out, token, end, totals);
    case FT_BF16:
        return wgmma_store_as<CONFIG, FT_BF16>(out, token, end, totals);
    default:
        return wgmma_store_as<CONFIG, FT_F32>(out, token, end, totals);
    }
}

#endif
#endif
