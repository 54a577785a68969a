/*
 * gptq.h - rounds the columns of a block, one after the other: bodies of kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_QUANTIZE_GPTQ_H
#define FT_KERNELS_CUDA_QUANTIZE_GPTQ_H

#include "kernels/cuda/quantize/grids.h"

enum { FT_CUDA_COL_BLOCK = 128 };

/* [rows, cols] threads: columns in rounding order; those of dead inputs become 0. */
typedef struct ft_cuda_order_columns_args {
    const float *weight;
    const uint32_t *order;
    size_t cols, n_live;
    float *out;
} ft_cuda_order_columns_args;

FT_HOST_DEVICE void ft_cuda_order_columns_at(const ft_cuda_order_columns_args *a, size_t index)
{
    size_t row = index / a->cols, at = index % a->cols;
    a->out[index] = at < a->n_live ? a->weight[row * a->cols + a->order[at]] : 0.0f;
}

/*
 * [rows] threads: rounds columns number first .. first + count - 1 of the order. Each error is
 * compensated in the columns behind it, up to the end of the block.
 */
typedef struct ft_cuda_round_block_args {
    const float *ordered;  /* [rows, cols], in rounding order */
    const float *upper;    /* [cols, cols]: U */
    const uint32_t *order; /* [cols] */
    size_t first, count;   /* count: at most FT_CUDA_COL_BLOCK */
    ft_cuda_grids grids;
    float *error; /* [rows, FT_CUDA_COL_BLOCK] */
} ft_cuda_round_block_args;

FT_HOST_DEVICE void ft_cuda_round_block_at(const ft_cuda_round_block_args *a, size_t row)
{
    const ft_cuda_grids *g = &a->grids;
    float weight[FT_CUDA_COL_BLOCK];
    for (size_t i = 0; i < a->count; i++)
        weight[i] = a->ordered[row * g->cols + a->first + i];
    for (size_t at = 0; at < a->count; at++) {
        size_t col = a->order[a->first + at];
        const float *upper = a->upper + (a->first + at) * g->cols + a->first;
        ft_cuda_grid grid = ft_cuda_grid_of(g, row, col);
        uint8_t code = ft_cuda_grid_round(&grid, weight[at]);
        float error = (weight[at] - ft_cuda_grid_value(&grid, code)) / upper[at];
        g->q[row * g->cols + col] = code;
        a->error[row * FT_CUDA_COL_BLOCK + at] = error;
        for (size_t i = at + 1; i < a->count; i++)
            weight[i] -= error * upper[i];
    }
}

#endif
