/*
 * norm.c - layer norm of x, or of x + residual; writes floats, codes, or both.
 *
 * The residual may be codes (an int8 residual stream): they are dequantized row by row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/cpu.h"
#include "kernels/quant.h"

#include <omp.h>

/* One row of floats for each thread, and one more for a dequantized residual. */
size_t ft_cpu_norm_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    size_t cols = (size_t) plan->value[op->in[0]].cols;
    return (size_t) limits->threads * (2 * cols * sizeof(float) + 128);
}

/* sum = x + residual; returns what must be normalized. */
static const float *add_residual(const ft_args *args, size_t row, float *sum)
{
    const ft_rows_isa *rows = args->rows;
    const ft_view *residual = &args->in[1];
    const float *x = ft_row_f32(&args->in[0], row);
    size_t cols = args->in[0].cols;
    if (residual->data == NULL)
        return x;
    if (residual->scale <= 0.0f) {
        rows->add(sum, x, ft_row_f32(residual, row), cols);
        return sum;
    }
    if (residual->dtype == FT_I8)
        rows->dequantize_i8(sum, ft_row_i8(residual, row), residual->scale, cols);
    else
        rows->dequantize_f32(sum, ft_row_f32(residual, row), residual->scale, cols);
    rows->add(sum, x, sum, cols);
    return sum;
}

static void norm_row(const ft_args *args, size_t row, float *sum, float *normal)
{
    const ft_rows_isa *rows = args->rows;
    size_t cols = args->in[0].cols;
    const float *x = add_residual(args, row, sum);
    if (args->out.data != NULL)
        normal = ft_row_f32(&args->out, row);
    rows->norm(normal, x, args->weight[0]->data, args->weight[1]->data, args->op->attr.eps, cols);
    if (args->codes.data == NULL)
        return;
    float inverse = ft_inverse_scale(args->codes.scale);
    if (args->codes.dtype == FT_I8)
        rows->quantize_i8(ft_row_i8(&args->codes, row), normal, inverse, cols);
    else
        rows->quantize_f32(ft_row_f32(&args->codes, row), normal, inverse, cols);
}

void ft_cpu_norm(const ft_args *args)
{
#pragma omp parallel num_threads(args->threads)
    {
        float *sum = ft_thread_scratch(args, omp_get_thread_num());
        float *normal = sum + args->in[0].cols;
#pragma omp for schedule(static)
        for (size_t row = 0; row < args->in[0].rows; row++)
            norm_row(args, row, sum, normal);
    }
}
