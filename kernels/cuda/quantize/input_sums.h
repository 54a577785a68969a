/*
 * input_sums.h - sums over samples of |x|, x * x, x[i] * x[j] and d[i] * x[j] that are the same in
 * any order: bodies of kernels.
 *
 * As in calibrate/stats/exact_sums.c, what one sample contributes is rounded to a multiple of a
 * power of two: 128-bit multiples of 2^-60 for columns, 64-bit multiples of a unit for products.
 * The sum of a column adds chunks of rows in their order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_QUANTIZE_INPUT_SUMS_H
#define FT_KERNELS_CUDA_QUANTIZE_INPUT_SUMS_H

#include "kernels/half.h"

#include <math.h>

__extension__ typedef __int128 ft_cuda_int128;

#define FT_CUDA_COLUMN_UNITS 0x1p60 /* multiples in 1 */
#define FT_CUDA_MAX_COLUMN_SUM 0x1p65
#define FT_CUDA_MAX_UNITS 0x1p61 /* of a sum of products */

enum { FT_CUDA_ROW_CHUNK = 64 }; /* rows of a column that one thread adds */

FT_HOST_DEVICE float ft_cuda_load_float(const void *data, ft_dtype dtype, size_t i)
{
    if (dtype == FT_F32)
        return ((const float *) data)[i];
    uint16_t bits = ((const uint16_t *) data)[i];
    return dtype == FT_F16 ? ft_float_from_f16(bits) : ft_float_from_bf16(bits);
}

FT_HOST_DEVICE void ft_cuda_store_float(void *data, ft_dtype dtype, size_t i, float value)
{
    if (dtype == FT_F32)
        ((float *) data)[i] = value;
    else
        ((uint16_t *) data)[i] =
            dtype == FT_F16 ? ft_f16_from_float(value) : ft_bf16_from_float(value);
}

/* The inputs of one sample: x, or with `original` the difference original / factor - x. */
typedef struct ft_cuda_input_sample {
    const void *x, *original; /* [rows, cols] */
    ft_dtype dtype, original_dtype;
    const float *factor; /* [cols], or NULL */
    size_t rows, cols;
} ft_cuda_input_sample;

FT_HOST_DEVICE float ft_cuda_input_sample_value(const ft_cuda_input_sample *s, size_t row,
                                                size_t col)
{
    size_t at = row * s->cols + col;
    float x = ft_cuda_load_float(s->x, s->dtype, at);
    if (s->original == NULL)
        return x;
    float original = ft_cuda_load_float(s->original, s->original_dtype, at);
    return (s->factor != NULL ? original / s->factor[col] : original) - x;
}

/* ---- Columns ------------------------------------------------------------------------------ */

/* [chunks, cols] threads: sums of a chunk of rows, and the amax of the sample. */
typedef struct ft_cuda_sum_columns_args {
    ft_cuda_input_sample sample;
    double *magnitude, *square; /* [chunks, cols] */
    uint32_t *amax_bits;        /* rises to that of this sample; NULL: not needed */
} ft_cuda_sum_columns_args;

/* The bits of floats that are not negative order as the floats do; NaN is on top. */
FT_HOST_DEVICE void ft_cuda_raise(uint32_t *maximum, uint32_t value)
{
#ifdef __CUDA_ARCH__
    if (value > *(volatile uint32_t *) maximum) /* most threads need no atomic operation */
        atomicMax(maximum, value);
#else
    *maximum = value > *maximum ? value : *maximum;
#endif
}

FT_HOST_DEVICE void ft_cuda_sum_columns_at(const ft_cuda_sum_columns_args *a, size_t index)
{
    const ft_cuda_input_sample *s = &a->sample;
    size_t chunk = index / s->cols, col = index % s->cols, first = chunk * FT_CUDA_ROW_CHUNK;
    size_t end = first + FT_CUDA_ROW_CHUNK < s->rows ? first + FT_CUDA_ROW_CHUNK : s->rows;
    double magnitude = 0.0, square = 0.0;
    uint32_t amax_bits = 0;
    for (size_t row = first; row < end; row++) {
        float value = ft_cuda_input_sample_value(s, row, col);
        uint32_t bits = ft_bits_from_float(value) & 0x7fffffff;
        amax_bits = bits > amax_bits ? bits : amax_bits;
        magnitude += fabs((double) value);
        square += (double) value * (double) value;
    }
    a->magnitude[index] = magnitude;
    a->square[index] = square;
    if (a->amax_bits != NULL)
        ft_cuda_raise(a->amax_bits, amax_bits);
}

/*
 * [cols] threads: adds the chunks of a sample to the totals. The first sum that is not finite or
 * too large is kept in `failed` and not added.
 */
typedef struct ft_cuda_add_columns_args {
    const double *magnitude, *square; /* [chunks, cols] */
    size_t chunks, cols;
    ft_cuda_int128 *total_magnitude; /* [cols]; NULL: not needed */
    ft_cuda_int128 *total_square;
    double *failed; /* [cols]: 0 where no sum failed */
} ft_cuda_add_columns_args;

FT_HOST_DEVICE void ft_cuda_add_columns_at(const ft_cuda_add_columns_args *a, size_t col)
{
    double magnitude = 0.0, square = 0.0;
    for (size_t chunk = 0; chunk < a->chunks; chunk++) {
        magnitude += a->magnitude[chunk * a->cols + col];
        square += a->square[chunk * a->cols + col];
    }
    if (a->failed[col] != 0.0)
        return;
    if (!(square <= FT_CUDA_MAX_COLUMN_SUM)) {
        a->failed[col] = square;
        return;
    }
    a->total_square[col] += (ft_cuda_int128) rint(square * FT_CUDA_COLUMN_UNITS);
    if (a->total_magnitude != NULL)
        a->total_magnitude[col] += (ft_cuda_int128) rint(magnitude * FT_CUDA_COLUMN_UNITS);
    double total = (double) a->total_square[col] / FT_CUDA_COLUMN_UNITS;
    if (total > FT_CUDA_MAX_COLUMN_SUM)
        a->failed[col] = total;
}

/* ---- Products ----------------------------------------------------------------------------- */

/*
 * The power of two that brings differences with this amax close to 2^15: as float16, they neither
 * overflow nor are the large ones subnormal.
 */
FT_HOST_DEVICE int ft_cuda_difference_exponent(uint32_t amax_bits)
{
    int exponent = 14 - ((int) (amax_bits >> 23) - 127);
    return exponent > 120 ? 120 : exponent;
}

FT_HOST_DEVICE float ft_cuda_power_of_two(int exponent)
{
    return ft_float_from_bits((uint32_t) (exponent + 127) << 23);
}

/* [rows, cols] threads: the scaled differences of a sample. */
typedef struct ft_cuda_store_difference_args {
    ft_cuda_input_sample sample;
    const uint32_t *amax_bits;
    void *out; /* [rows, cols] of sample.dtype */
} ft_cuda_store_difference_args;

FT_HOST_DEVICE void ft_cuda_store_difference_at(const ft_cuda_store_difference_args *a,
                                                size_t index)
{
    float scale = ft_cuda_power_of_two(ft_cuda_difference_exponent(*a->amax_bits));
    size_t row = index / a->sample.cols, col = index % a->sample.cols;
    ft_cuda_store_float(a->out, a->sample.dtype, index,
                        scale * ft_cuda_input_sample_value(&a->sample, row, col));
}

/* [count, width] threads: adds products of columns first .. by columns left .. of a sample. */
typedef struct ft_cuda_add_products_args {
    const float *product; /* [count, width] */
    size_t first, left, width, cols;
    int64_t *sums;             /* [cols, cols] */
    double units;              /* multiples in 1 */
    const uint32_t *amax_bits; /* of differences, which are scaled; or NULL */
    bool upper;                /* only the upper triangle */
} ft_cuda_add_products_args;

FT_HOST_DEVICE void ft_cuda_add_products_at(const ft_cuda_add_products_args *a, size_t index)
{
    size_t row = a->first + index / a->width, col = a->left + index % a->width;
    if (a->upper && col < row)
        return;
    double value = (double) a->product[index] * a->units;
    if (a->amax_bits != NULL)
        value *= (double) ft_cuda_power_of_two(-ft_cuda_difference_exponent(*a->amax_bits));
    value = fmin(fmax(value, -FT_CUDA_MAX_UNITS), FT_CUDA_MAX_UNITS); /* or a column has failed */
    uint64_t units = (uint64_t) (int64_t) rint(value);
    a->sums[row * a->cols + col] = (int64_t) ((uint64_t) a->sums[row * a->cols + col] + units);
}

/* ---- Results ------------------------------------------------------------------------------ */

/*
 * [cols, cols] threads: the moments as doubles in the same memory, symmetric; their diagonal is
 * that of the columns.
 */
typedef struct ft_cuda_finish_moments_args {
    void *moments; /* [cols, cols]: int64_t become doubles */
    size_t cols;
    double unit;
    const ft_cuda_int128 *square; /* [cols] */
} ft_cuda_finish_moments_args;

FT_HOST_DEVICE double ft_cuda_double_of_units(const void *sums, size_t index, double unit)
{
    int64_t units;
    const char *at = (const char *) sums + index * sizeof units;
    memcpy(&units, __builtin_assume_aligned(at, sizeof units), sizeof units);
    return (double) units * unit;
}

FT_HOST_DEVICE void ft_cuda_store_double(void *out, size_t index, double value)
{
    char *at = (char *) out + index * sizeof value;
    memcpy(__builtin_assume_aligned(at, sizeof value), &value, sizeof value);
}

FT_HOST_DEVICE void ft_cuda_finish_moments_at(const ft_cuda_finish_moments_args *a, size_t index)
{
    size_t row = index / a->cols, col = index % a->cols;
    if (col < row)
        return;
    double value = col == row ? (double) a->square[col] / FT_CUDA_COLUMN_UNITS
                              : ft_cuda_double_of_units(a->moments, index, a->unit);
    ft_cuda_store_double(a->moments, index, value);
    ft_cuda_store_double(a->moments, col * a->cols + row, value);
}

/* [cols, cols] threads: the same without symmetry. */
typedef struct ft_cuda_finish_cross_args {
    void *cross;
    double unit;
} ft_cuda_finish_cross_args;

FT_HOST_DEVICE void ft_cuda_finish_cross_at(const ft_cuda_finish_cross_args *a, size_t index)
{
    ft_cuda_store_double(a->cross, index, ft_cuda_double_of_units(a->cross, index, a->unit));
}

#endif
