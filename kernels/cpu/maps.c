/*
 * maps.c - operations that treat every element, or every row, alone.
 *
 * Fused plans hardly use them: they are what lowering starts from, and what a plan run with
 * no_fuse is made of.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/cpu.h"
#include "kernels/quant.h"

#include <math.h>

void ft_cpu_activate(const ft_args *args)
{
    const ft_rows_isa *rows = args->rows;
#pragma omp parallel for num_threads(args->threads) schedule(static)
    for (size_t row = 0; row < args->out.rows; row++)
        rows->activate(ft_row_f32(&args->out, row), ft_row_f32(&args->in[0], row),
                       args->op->attr.activation, args->out.cols);
}

static void dequantize_row(const ft_rows_isa *rows, float *out, const ft_view *codes, size_t row)
{
    if (codes->dtype == FT_I8)
        rows->dequantize_i8(out, ft_row_i8(codes, row), codes->scale, codes->cols);
    else
        rows->dequantize_f32(out, ft_row_f32(codes, row), codes->scale, codes->cols);
}

void ft_cpu_add(const ft_args *args)
{
    const ft_rows_isa *rows = args->rows;
    const ft_view *residual = &args->in[1];
#pragma omp parallel for num_threads(args->threads) schedule(static)
    for (size_t row = 0; row < args->out.rows; row++) {
        float *out = ft_row_f32(&args->out, row);
        const float *other = ft_row_f32(residual, row);
        if (residual->scale > 0.0f) {
            dequantize_row(rows, out, residual, row);
            other = out;
        }
        rows->add(out, ft_row_f32(&args->in[0], row), other, args->out.cols);
    }
}

void ft_cpu_dequantize(const ft_args *args)
{
#pragma omp parallel for num_threads(args->threads) schedule(static)
    for (size_t row = 0; row < args->out.rows; row++)
        dequantize_row(args->rows, ft_row_f32(&args->out, row), &args->in[0], row);
}

void ft_cpu_quantize(const ft_args *args)
{
    const ft_rows_isa *rows = args->rows;
    const ft_view *codes = &args->codes;
    float inverse = ft_inverse_scale(codes->scale);
#pragma omp parallel for num_threads(args->threads) schedule(static)
    for (size_t row = 0; row < codes->rows; row++)
        if (codes->dtype == FT_I8)
            rows->quantize_i8(ft_row_i8(codes, row), ft_row_f32(&args->in[0], row), inverse,
                              codes->cols);
        else
            rows->quantize_f32(ft_row_f32(codes, row), ft_row_f32(&args->in[0], row), inverse,
                               codes->cols);
}

void ft_cpu_normalize(const ft_args *args)
{
    const ft_rows_isa *rows = args->rows;
    for (size_t row = 0; row < args->out.rows; row++) {
        const float *x = ft_row_f32(&args->in[0], row);
        float length = sqrtf(rows->square_sum(x, args->out.cols));
        /* The bound is the published one: a zero row stays zero. */
        float factor = 1.0f / (length > 1e-12f ? length : 1e-12f);
        rows->dequantize_f32(ft_row_f32(&args->out, row), x, factor, args->out.cols);
    }
}
