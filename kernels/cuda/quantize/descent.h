/*
 * descent.h - coordinate descent over quantized values and scales: bodies of kernels.
 *
 * The gradient of a row is half the decrease of its error per unit of each value: (w - q) H. A
 * kernel changes a block of values or a group's scale and stores the changes; then a GEMM of the
 * changes and rows of H subtracts what they add to the gradient. Within a block of values, the
 * kernel updates its own copy of the block's gradient.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_QUANTIZE_DESCENT_H
#define FT_KERNELS_CUDA_QUANTIZE_DESCENT_H

#include "kernels/cuda/quantize/gptq.h"

/* A change must reduce the error by more than the rounding error of the two sides. */
#define FT_CUDA_DESCENT_MARGIN (1.0 + 1e-6)

/* [rows, cols] threads: w - q, and the share of the damping in the gradient. */
typedef struct ft_cuda_subtract_quantized_args {
    const float *weight;
    ft_cuda_grids grids;
    double damping;
    double *error, *gradient; /* [rows, cols]; gradient NULL: not needed */
} ft_cuda_subtract_quantized_args;

FT_HOST_DEVICE void ft_cuda_subtract_quantized_at(const ft_cuda_subtract_quantized_args *a,
                                                  size_t index)
{
    ft_cuda_grid grid = ft_cuda_grid_of(&a->grids, index / a->grids.cols, index % a->grids.cols);
    double error =
        (double) a->weight[index] - (double) ft_cuda_grid_value(&grid, a->grids.q[index]);
    a->error[index] = error;
    if (a->gradient != NULL)
        a->gradient[index] = a->damping * error;
}

/* ---- Values ------------------------------------------------------------------------------- */

/* [count, cols] threads: rows number first .. of the order. */
typedef struct ft_cuda_order_rows_args {
    const double *moments; /* [cols, cols] */
    const uint32_t *order;
    size_t first, cols;
    double *out; /* [count, cols] */
} ft_cuda_order_rows_args;

FT_HOST_DEVICE void ft_cuda_order_rows_at(const ft_cuda_order_rows_args *a, size_t index)
{
    size_t row = a->order[a->first + index / a->cols];
    a->out[index] = a->moments[row * a->cols + index % a->cols];
}

/* [count, count] threads: rows and columns number first .. of the order. */
typedef struct ft_cuda_order_block_args {
    const double *moments;
    const uint32_t *order;
    size_t first, count, cols;
    double *out; /* [count, count] */
} ft_cuda_order_block_args;

FT_HOST_DEVICE void ft_cuda_order_block_at(const ft_cuda_order_block_args *a, size_t index)
{
    size_t row = a->order[a->first + index / a->count], col = a->order[a->first + index % a->count];
    a->out[index] = a->moments[row * a->cols + col];
}

/* [rows] threads: sets values number first .. of the order, one after the other, to their optimum.
 */
typedef struct ft_cuda_update_values_args {
    const double *block; /* [count, count]: H of these columns */
    const uint32_t *order;
    size_t first, count; /* count: at most FT_CUDA_COL_BLOCK */
    ft_cuda_grids grids;
    double damping;
    double *gradient; /* [rows, cols]; here only the damping's share of the changes is subtracted */
    double *change;   /* [rows, count] */
} ft_cuda_update_values_args;

/* The change of one value, which is stored; 0 if no other value is better. */
FT_HOST_DEVICE double ft_cuda_update_value(const ft_cuda_grid *grid, uint8_t *code, double gradient,
                                           double square)
{
    double value = (double) ft_cuda_grid_value(grid, *code);
    uint8_t best = ft_cuda_grid_round(grid, (float) (value + gradient / square));
    double change = (double) ft_cuda_grid_value(grid, best) - value;
    if (best == *code ||
        2.0 * change * gradient <= change * change * square * FT_CUDA_DESCENT_MARGIN)
        return 0.0;
    *code = best;
    return change;
}

FT_HOST_DEVICE void ft_cuda_update_values_at(const ft_cuda_update_values_args *a, size_t row)
{
    const ft_cuda_grids *g = &a->grids;
    double gradient[FT_CUDA_COL_BLOCK], *whole = a->gradient + row * g->cols;
    for (size_t i = 0; i < a->count; i++)
        gradient[i] = whole[a->order[a->first + i]];
    for (size_t at = 0; at < a->count; at++) {
        size_t col = a->order[a->first + at];
        const double *moments = a->block + at * a->count;
        ft_cuda_grid grid = ft_cuda_grid_of(g, row, col);
        double change = ft_cuda_update_value(&grid, &g->q[row * g->cols + col], gradient[at],
                                             moments[at] + a->damping);
        a->change[row * a->count + at] = change;
        if (change != 0.0) {
            whole[col] -= change * a->damping;
            for (size_t i = at + 1; i < a->count; i++)
                gradient[i] -= change * moments[i];
        }
    }
}

/* ---- Scales ------------------------------------------------------------------------------- */

/* [rows, count] threads: the values of a group less their zero point. */
typedef struct ft_cuda_offset_values_args {
    ft_cuda_grids grids;
    size_t first, count; /* columns of the group */
    double *out;         /* [rows, count] */
} ft_cuda_offset_values_args;

FT_HOST_DEVICE void ft_cuda_offset_values_at(const ft_cuda_offset_values_args *a, size_t index)
{
    const ft_cuda_grids *g = &a->grids;
    size_t row = index / a->count, col = a->first + index % a->count;
    a->out[index] = (double) (g->q[row * g->cols + col] - g->zero[ft_cuda_grid_index(g, row, col)]);
}

/* [rows] threads: sets the scale of a group to its optimum with all values fixed. */
typedef struct ft_cuda_update_scales_args {
    ft_cuda_grids grids;
    size_t first, count;
    double damping;
    double *values;        /* [rows, count]: k; becomes the change of the dequantized values */
    const double *product; /* [rows, count]: k H of these columns */
    double *gradient;      /* [rows, cols]; here only the damping's share is subtracted */
} ft_cuda_update_scales_args;

/* The change to the float16 closest to the best scale; 0 if that is no better. */
FT_HOST_DEVICE double ft_cuda_update_scale(float *scale, double square, double slope)
{
    double old = (double) *scale, wanted = old + slope / square;
    if (!(square > 0.0) || !(wanted > 0.5 * old && wanted < 2.0 * old))
        return 0.0;
    float rounded = ft_float_from_f16(ft_f16_from_float((float) wanted));
    double change = (double) rounded - old;
    if (!(rounded > 0.0f && rounded <= 65504.0f) ||
        2.0 * change * slope <= change * change * square * FT_CUDA_DESCENT_MARGIN)
        return 0.0;
    *scale = rounded;
    return change;
}

FT_HOST_DEVICE void ft_cuda_update_scales_at(const ft_cuda_update_scales_args *a, size_t row)
{
    const ft_cuda_grids *g = &a->grids;
    double *k = a->values + row * a->count, *gradient = a->gradient + row * g->cols + a->first;
    const double *product = a->product + row * a->count;
    double square = 0.0, slope = 0.0;
    for (size_t i = 0; i < a->count; i++) {
        square += k[i] * (product[i] + a->damping * k[i]);
        slope += gradient[i] * k[i];
    }
    double change =
        ft_cuda_update_scale(&g->scale[ft_cuda_grid_index(g, row, a->first)], square, slope);
    for (size_t i = 0; i < a->count; i++) {
        k[i] *= change;
        gradient[i] -= k[i] * a->damping;
    }
}

#endif
