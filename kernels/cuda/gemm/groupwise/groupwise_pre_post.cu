/*
 * groupwise_pre_post.cu - kernels before and after the MMA kernels: conversion of x for the tensor
 * cores, and reduction of split-K partial sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_mma.cuh"

/* grid = (ceil(columns / 4 / 128), m) */
static __global__ void reduce_splits_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                                            const __grid_constant__ mma_params shape)
{
    size_t columns = (size_t) shape.all.panels * GROUPWISE_PANEL_ROWS, token = blockIdx.y;
    size_t column = ((size_t) blockIdx.x * blockDim.x + threadIdx.x) * 4;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (column >= columns)
        return;
    float4 *sums = (float4 *) &shape.sums[token * columns + column], total = *sums;
    for (int i = 1; i < shape.all.splits; i++) {
        float4 next = sums[i * p.m * columns / 4];
        total.x += next.x;
        total.y += next.y;
        total.z += next.z;
        total.w += next.w;
    }
    int panel = (int) (column / GROUPWISE_PANEL_ROWS);
    const ft_cuda_groupwise_linear &linear = p.linear[groupwise_linear_of(shape.all, panel)];
    float value[4] = { total.x, total.y, total.z, total.w };
    groupwise_store<4>(p, linear, token,
                       (size_t) panel * GROUPWISE_PANEL_ROWS + column % GROUPWISE_PANEL_ROWS,
                       value);
}

/*
 * Convert x for the tensor cores: float32 to three bf16 terms, and pad rows to a multiple of 8.
 * grid = (ceil(padded k / 2 / 256), m)
 */
static __global__ void convert_x_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                                        const __grid_constant__ mma_params shape)
{
    int column = 2 * (int) (blockIdx.x * blockDim.x + threadIdx.x);
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (column >= shape.padded_k)
        return;
    ft_raw_vec<1> bits[2] = {};
    uint32_t term[3];
    for (int i = 0; i < 2; i++)
        if (column + i < shape.all.k)
            ft_load_raw<1>(bits[i], p.x, p.x_dtype, blockIdx.y * p.k + column + i);
    char *to = (char *) shape.x + blockIdx.y * shape.x_row + column * 2;
    if (p.x_dtype != FT_F32) {
        *(uint32_t *) to = bits[0].word[0] | bits[1].word[0] << 16;
        return;
    }
    groupwise_split_bf16x3(term, __uint_as_float(bits[0].word[0]),
                           __uint_as_float(bits[1].word[0]));
    for (int i = 0; i < 3; i++)
        *(uint32_t *) (to + i * shape.x_term) = term[i];
}

/* ---- Host ----------------------------------------------------------------------------------- */

int ft_cuda_groupwise_convert_x(const ft_cuda_device_props *props, void *stream,
                                const ft_cuda_groupwise_args *p, const mma_params *shape)
{
    dim3 grid(ft_ceil_div(mma_padded_k(p->k) / 2, 256), (unsigned) p->m);
    return ft_launch(convert_x_kernel, grid, 256, 0, stream, props->has_pdl, 1, *p, *shape);
}

int ft_cuda_groupwise_reduce_splits(const ft_cuda_device_props *props, void *stream,
                                    const ft_cuda_groupwise_args *p, const mma_params *shape)
{
    dim3 grid(ft_ceil_div((size_t) shape->all.panels * GROUPWISE_PANEL_ROWS / 4, 128),
              (unsigned) p->m);
    return ft_launch(reduce_splits_kernel, grid, 128, 0, stream, props->has_pdl, 1, *p, *shape);
}
