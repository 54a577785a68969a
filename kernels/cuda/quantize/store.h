/*
 * store.h - the bytes of quantized rows, and the sums that compare them with the weights: bodies of
 * kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_QUANTIZE_STORE_H
#define FT_KERNELS_CUDA_QUANTIZE_STORE_H

#include "kernels/cuda/quantize/grids.h"

/* One thread for each word of whole panels: its values, 0 for padding. */
typedef struct ft_cuda_pack_values_args {
    ft_cuda_grids grids;
    size_t rows; /* of the stripe, without padding */
    int bits;
    uint32_t *out;
} ft_cuda_pack_values_args;

/* The inverse of ft_panel_word() and ft_panel_shift(). */
FT_HOST_DEVICE void ft_cuda_pack_values_at(const ft_cuda_pack_values_args *a, size_t index)
{
    size_t cols = a->grids.cols, block_cols = a->bits == 4 ? 32 : 16;
    size_t blocks = ft_layout_cols(FT_PANEL32, cols) / block_cols, block = (index >> 7) % blocks;
    size_t row = (index >> 7) / blocks * FT_PANEL_ROWS + (index & 31);
    size_t first = block * block_cols + ((index >> 5) & 3) * 2;
    uint32_t word = 0;
    for (size_t col = first; col < first + block_cols && row < a->rows; col += 8)
        for (size_t i = col; i < col + 2 && i < cols; i++)
            word |= (uint32_t) a->grids.q[row * cols + i] << ft_panel_shift(i, a->bits);
    a->out[index] = word;
}

/* [padded rows of the stripe, groups] threads: scales and zero points, 0 for padding. */
typedef struct ft_cuda_pack_grids_args {
    ft_cuda_grids grids;
    size_t rows;                   /* of the stripe, without padding */
    size_t first_row, padded_rows; /* of the stripe; of the matrix */
    uint16_t *scale;               /* [groups, padded_rows] */
    uint8_t *zero;                 /* the same, or NULL */
} ft_cuda_pack_grids_args;

FT_HOST_DEVICE void ft_cuda_pack_grids_at(const ft_cuda_pack_grids_args *a, size_t index)
{
    size_t row = index / a->grids.groups, group = index % a->grids.groups;
    size_t at = group * a->padded_rows + a->first_row + row;
    bool is_padding = row >= a->rows;
    a->scale[at] = is_padding ? 0 : ft_f16_from_float(a->grids.scale[index]);
    if (a->zero != NULL)
        a->zero[at] = is_padding ? 0 : a->grids.zero[index];
}

/* [rows, cols] threads: the dequantized values, rounded to the dtype of a model's weights. */
typedef struct ft_cuda_dequantize_args {
    ft_cuda_grids grids;
    ft_dtype dtype; /* FT_F32, FT_F16 or FT_BF16 */
    void *out;
} ft_cuda_dequantize_args;

FT_HOST_DEVICE void ft_cuda_dequantize_at(const ft_cuda_dequantize_args *a, size_t index)
{
    ft_cuda_grid grid = ft_cuda_grid_of(&a->grids, index / a->grids.cols, index % a->grids.cols);
    float value = ft_cuda_grid_value(&grid, a->grids.q[index]);
    if (a->dtype == FT_F32)
        ((float *) a->out)[index] = value;
    else
        ((uint16_t *) a->out)[index] =
            a->dtype == FT_F16 ? ft_f16_from_float(value) : ft_bf16_from_float(value);
}

/* [rows] threads: sums of squares of weights and of their errors. */
typedef struct ft_cuda_sum_squares_args {
    const float *weight;
    ft_cuda_grids grids;
    double *signal, *noise; /* [rows] */
} ft_cuda_sum_squares_args;

FT_HOST_DEVICE void ft_cuda_sum_squares_at(const ft_cuda_sum_squares_args *a, size_t row)
{
    size_t cols = a->grids.cols;
    double signal = 0.0, noise = 0.0;
    for (size_t col = 0; col < cols; col++) {
        ft_cuda_grid grid = ft_cuda_grid_of(&a->grids, row, col);
        double weight = (double) a->weight[row * cols + col];
        double error = weight - (double) ft_cuda_grid_value(&grid, a->grids.q[row * cols + col]);
        signal += weight * weight;
        noise += error * error;
    }
    a->signal[row] = signal;
    a->noise[row] = noise;
}

/* [rows] threads: the dot products of the rows of two matrices. */
typedef struct ft_cuda_sum_products_args {
    const double *x, *y; /* [rows, cols] */
    size_t cols;
    double *out; /* [rows] */
} ft_cuda_sum_products_args;

FT_HOST_DEVICE void ft_cuda_sum_products_at(const ft_cuda_sum_products_args *a, size_t row)
{
    double sum = 0.0;
    for (size_t col = 0; col < a->cols; col++)
        sum += a->x[row * a->cols + col] * a->y[row * a->cols + col];
    a->out[row] = sum;
}

#endif
