/*
 * pool.c - pooling: one row per sequence.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"

#include <math.h>
#include <string.h>

static const float *row_at(const ft_args *args, size_t row)
{
    return ft_row_as_float(args, &args->in[0], row, ft_row_buffer(args, 0, 1));
}

static void sum_of_rows(const ft_args *args, float *out, size_t first, size_t end)
{
    size_t cols = args->in[0].cols;
    memset(out, 0, cols * sizeof *out);
    for (size_t row = first; row < end; row++)
        args->rows->add(out, out, row_at(args, row), cols);
}

static void scale_row(const ft_args *args, float *row, float factor)
{
    args->rows->dequantize_f32(row, row, factor, args->in[0].cols);
}

/* The weights are 1 to n. */
static void weighted_mean_of_rows(const ft_args *args, float *out, size_t first, size_t end)
{
    const ft_row_kernels *rows = args->rows;
    size_t cols = args->in[0].cols, n = end - first;
    float *weighted = ft_row_buffer(args, 0, 1);
    memset(out, 0, cols * sizeof *out);
    for (size_t row = first; row < end; row++) {
        rows->dequantize_f32(weighted, row_at(args, row), (float) (row - first + 1), cols);
        rows->add(out, out, weighted, cols);
    }
    scale_row(args, out, 1.0f / (0.5f * (float) n * (float) (n + 1)));
}

/* A NaN stays, so that it is found in the result. */
static void max_of_rows(const ft_args *args, float *out, size_t first, size_t end)
{
    size_t cols = args->in[0].cols;
    memcpy(out, row_at(args, first), cols * sizeof *out);
    for (size_t row = first + 1; row < end; row++) {
        const float *x = row_at(args, row);
        for (size_t i = 0; i < cols; i++)
            out[i] = x[i] > out[i] || isnan(x[i]) ? x[i] : out[i];
    }
}

/* Rows first .. end - 1, at least one. */
static void pool_rows(const ft_args *args, float *out, size_t first, size_t end)
{
    size_t n = end - first, cols = args->in[0].cols;
    switch (args->op->attr.pooling) {
    case FT_POOL_MEAN:
        sum_of_rows(args, out, first, end);
        scale_row(args, out, 1.0f / (float) n);
        break;
    case FT_POOL_MEAN_SQRT_LEN:
        sum_of_rows(args, out, first, end);
        scale_row(args, out, 1.0f / sqrtf((float) n));
        break;
    case FT_POOL_WEIGHTED_MEAN:
        weighted_mean_of_rows(args, out, first, end);
        break;
    case FT_POOL_MAX:
        max_of_rows(args, out, first, end);
        break;
    case FT_POOL_LAST:
        memcpy(out, row_at(args, end - 1), cols * sizeof *out);
        break;
    default:
        memcpy(out, row_at(args, first), cols * sizeof *out);
    }
}

void ft_cpu_pool(const ft_args *args)
{
    const int32_t *start = args->batch->start;
    for (size_t i = 0; i < args->batch->sequences; i++) {
        float *out = ft_row_output(&args->out, i, ft_row_buffer(args, 0, 0));
        pool_rows(args, out, (size_t) start[i], (size_t) start[i + 1]);
        ft_row_flush(args, &args->out, i, out);
    }
}
