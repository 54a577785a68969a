/*
 * groupwise_pre_post.cu - kernels before and after the MMA kernels: conversion of x for the tensor
 * cores, and reduction of split-K partial sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_mma.cuh"

/* grid = (ceil(columns / 4 / 128), m) */
static __global__ void add_kernel(const __grid_constant__ ft_cuda_blocks p,
                                  const __grid_constant__ tiles_shape shape)
{
    size_t columns = (size_t) shape.all.panels * BLOCKS_PANEL, token = blockIdx.y;
    size_t column = ((size_t) blockIdx.x * blockDim.x + threadIdx.x) * 4;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (column >= columns)
        return;
    float4 *sums = (float4 *) &shape.sums[token * columns + column], total = *sums;
    for (int i = 1; i < shape.all.stretches; i++) {
        float4 next = sums[i * p.m * columns / 4];
        total.x += next.x;
        total.y += next.y;
        total.z += next.z;
        total.w += next.w;
    }
    int panel = (int) (column / BLOCKS_PANEL);
    const ft_cuda_blocks_part &part = p.part[blocks_part_of(shape.all, panel)];
    float value[4] = { total.x, total.y, total.z, total.w };
    blocks_put<4>(p, part, token, (size_t) panel * BLOCKS_PANEL + column % BLOCKS_PANEL, value);
}

/*
 * Convert x for the tensor cores: float32 to three bf16 terms, and pad rows to a multiple of 8.
 * grid = (ceil(padded k / 2 / 256), m)
 */
static __global__ void prepare_kernel(const __grid_constant__ ft_cuda_blocks p,
                                      const __grid_constant__ tiles_shape shape)
{
    int column = 2 * (int) (blockIdx.x * blockDim.x + threadIdx.x);
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (column >= shape.padded_k)
        return;
    ft_bits<1> bits[2] = {};
    uint32_t term[3];
    for (int i = 0; i < 2; i++)
        if (column + i < shape.all.k)
            ft_fetch<1>(bits[i], p.x, p.x_dtype, blockIdx.y * p.k + column + i);
    char *to = (char *) shape.x + blockIdx.y * shape.x_row + column * 2;
    if (p.x_dtype != FT_F32) {
        *(uint32_t *) to = bits[0].word[0] | bits[1].word[0] << 16;
        return;
    }
    blocks_split(term, __uint_as_float(bits[0].word[0]), __uint_as_float(bits[1].word[0]));
    for (int i = 0; i < 3; i++)
        *(uint32_t *) (to + i * shape.x_term) = term[i];
}

/* ---- Host ----------------------------------------------------------------------------------- */

int ft_cuda_blocks_prepare(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p,
                           const tiles_shape *shape)
{
    dim3 grid(ft_cover(tiles_padded(p->k) / 2, 256), (unsigned) p->m);
    return ft_launch(prepare_kernel, grid, 256, 0, stream, chip->overlaps, 1, *p, *shape);
}

int ft_cuda_blocks_add_up(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p,
                          const tiles_shape *shape)
{
    dim3 grid(ft_cover((size_t) shape->all.panels * BLOCKS_PANEL / 4, 128), (unsigned) p->m);
    return ft_launch(add_kernel, grid, 128, 0, stream, chip->overlaps, 1, *p, *shape);
}
