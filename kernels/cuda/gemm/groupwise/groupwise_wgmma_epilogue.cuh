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
typedef struct wgmma_out {
    char *y; /* at token 0 */
    size_t pitch;
    ft_dtype dtype;
    ft_activation activation;
    float bias[2];
    bool biased, whole; /* whole: one store writes both */
    int there;          /* number of columns in bounds */
} wgmma_out;

__device__ __forceinline__ wgmma_out wgmma_result_of(const ft_cuda_blocks &p,
                                                     const wgmma_tile &tile, int row)
{
    const ft_cuda_blocks_part &part = p.part[tile.part];
    size_t first = (size_t) tile.panel * BLOCKS_PANEL + row;
    wgmma_out out = {};
    out.there = first < part.rows ? (int) (part.rows - first) : 0;
    out.pitch = part.rows;
    out.dtype = p.y_dtype;
    out.y = (char *) part.y + first * (p.y_dtype == FT_F32 ? 4 : 2);
    out.activation = p.activation;
    out.biased = part.bias != NULL;
    out.whole = part.rows % 2 == 0 && (uintptr_t) part.y % 16 == 0;
#pragma unroll
    for (int i = 0; i < 2; i++)
        out.bias[i] = out.biased && i < out.there ? part.bias[first + i] : 0.0f;
    return out;
}

template <ft_dtype type>
__device__ __forceinline__ void wgmma_put_two(const wgmma_out &out, size_t token, float (&value)[2])
{
    if (out.whole)
        return ft_store_as<type, 2>(out.y, token * out.pitch, value);
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (i < out.there)
            ft_store_as<type, 1>(out.y, token * out.pitch + i, value + i);
}

/* Tokens token, token + 1, and the same of each further 8, below `end`. */
template <class FORM, ft_dtype type, bool activates>
__device__ __forceinline__ void wgmma_put_as(const wgmma_out &out, size_t token, size_t end,
                                             const float4 *totals)
{
#pragma unroll(activates ? 1 : FORM::teams == 2 ? 4 : 2)
    for (int i = 0; token < end; i++, token += 8) {
        float4 four = totals[i * FORM::workers];
        float value[2][2] = { { four.x, four.z }, { four.y, four.w } };
        if (out.biased)
#pragma unroll
            for (int j = 0; j < 4; j++)
                value[j / 2][j % 2] += out.bias[j % 2];
        if (activates)
            ft_activate_all<4>(out.activation, &value[0][0]);
#pragma unroll
        for (int j = 0; j < 2; j++)
            if (token + j < end)
                wgmma_put_two<type>(out, token + j, value[j]);
    }
}

template <class FORM, ft_dtype type>
__device__ __forceinline__ void wgmma_put_type(const wgmma_out &out, size_t token, size_t end,
                                               const float4 *totals)
{
    if (out.activation == FT_ACT_NONE)
        wgmma_put_as<FORM, type, false>(out, token, end, totals);
    else
        wgmma_put_as<FORM, type, true>(out, token, end, totals);
}

/*
 * A lane's columns of a tile, tokens first .. end - 1, from its totals in shared memory: registers
 * cannot be indexed in a loop, and unrolled code takes as long to fetch as to run.
 */
template <class FORM>
__device__ __forceinline__ void wgmma_put(const ft_cuda_blocks &p, const wgmma_tile &tile,
                                          size_t first, size_t end, int row, const float4 *totals)
{
    wgmma_out out = wgmma_result_of(p, tile, row);
    size_t token = first + threadIdx.x % 4 * 2;
    if (out.there == 0)
        return;
    switch (out.dtype) {
    case FT_F16:
        return wgmma_put_type<FORM, FT_F16>(out, token, end, totals);
    case FT_BF16:
        return wgmma_put_type<FORM, FT_BF16>(out, token, end, totals);
    default:
        return wgmma_put_type<FORM, FT_F32>(out, token, end, totals);
    }
}

#endif
#endif
