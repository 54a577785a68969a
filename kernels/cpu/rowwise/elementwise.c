/*
 * elementwise.c - operations on each element or each row independently.
 *
 * Fused plans hardly contain them: they are the input of operator fusion, and a plan built with
 * no_fuse consists of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"

#include <math.h>

static void activate_rows(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    for (size_t row = first; row < end; row++) {
        float *copy = ft_row_buffer(args, thread, 0), *y = ft_row_output(&args->out, row, copy);
        const float *x = ft_row_as_float(args, &args->in[0], row, copy);
        args->rows->activate(y, x, args->op->attr.activation, args->out.cols);
        ft_row_flush(args, &args->out, row, y);
    }
}

void ft_cpu_activate(const ft_args *args)
{
    ft_parallel_rows(args, args->out.rows, args->out.cols, activate_rows);
}

static void add_rows(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    for (size_t row = first; row < end; row++) {
        float *copy = ft_row_buffer(args, thread, 0), *y = ft_row_output(&args->out, row, copy);
        const float *x = ft_row_as_float(args, &args->in[0], row, copy);
        ft_row_add_residual(args, y, x, &args->in[1], row, ft_row_buffer(args, thread, 1));
        ft_row_flush(args, &args->out, row, y);
    }
}

void ft_cpu_add(const ft_args *args)
{
    ft_parallel_rows(args, args->out.rows, args->out.cols, add_rows);
}

static void dequantize_rows(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    for (size_t row = first; row < end; row++) {
        float *y = ft_row_output(&args->out, row, ft_row_buffer(args, thread, 0));
        ft_row_as_float(args, &args->in[0], row, y);
        ft_row_flush(args, &args->out, row, y);
    }
}

void ft_cpu_dequantize(const ft_args *args)
{
    ft_parallel_rows(args, args->out.rows, args->out.cols, dequantize_rows);
}

static void quantize_rows(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    float *copy = ft_row_buffer(args, thread, 0), *smoothed = ft_row_buffer(args, thread, 1);
    for (size_t row = first; row < end; row++) {
        const float *x = ft_row_as_float(args, &args->in[0], row, copy);
        ft_row_quantize(args, &args->quantized, row, ft_row_smooth(args, x, smoothed));
    }
}

void ft_cpu_quantize(const ft_args *args)
{
    ft_parallel_rows(args, args->quantized.rows, args->quantized.cols, quantize_rows);
}

void ft_cpu_l2_normalize(const ft_args *args)
{
    for (size_t row = 0; row < args->out.rows; row++) {
        float *copy = ft_row_buffer(args, 0, 0), *y = ft_row_output(&args->out, row, copy);
        const float *x = ft_row_as_float(args, &args->in[0], row, copy);
        float length = sqrtf(args->rows->square_sum(x, args->out.cols));
        /* The epsilon of torch.nn.functional.normalize: a zero row stays zero. */
        float factor = 1.0f / (length > 1e-12f ? length : 1e-12f);
        args->rows->dequantize_f32(y, x, factor, args->out.cols);
        ft_row_flush(args, &args->out, row, y);
    }
}
