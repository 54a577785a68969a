/*
 * norm.c - LayerNorm or RMSNorm of x, or of x + residual; writes floats, quantized values, or both.
 *
 * The residual may be quantized (an int8 residual stream). Quantized values next to an F16 or BF16
 * output are those of the rounded values, as a separate QUANTIZE would give; and if the sum is also
 * written, the stored, rounded sum is what gets normalized.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"

/* The row to normalize: x, or x + residual computed in `copy`. */
static const float *load_sum(const ft_args *args, size_t row, float *copy, float *buffer)
{
    const ft_view *residual = &args->in[1];
    const float *x = ft_row_as_float(args, &args->in[0], row, copy);
    if (residual->data == NULL)
        return x;
    ft_row_add_residual(args, copy, x, residual, row, buffer);
    if (args->second.data == NULL)
        return copy;
    ft_row_store(args, &args->second, row, copy);
    return ft_row_as_float(args, &args->second, row, copy);
}

static void normalize(const ft_args *args, float *y, const float *x)
{
    const float *weight = args->weight[0]->data;
    if (args->op->attr.norm == FT_NORM_RMS)
        args->rows->rms_norm(y, x, weight, args->op->attr.eps, args->in[0].cols);
    else
        args->rows->norm(y, x, weight, args->weight[1]->data, args->op->attr.eps, args->in[0].cols);
}

static void norm_row(const ft_args *args, size_t row, float *sum, float *copy)
{
    const ft_view *out = &args->out;
    const float *x = load_sum(args, row, sum, copy), *normalized = copy;
    float *y = out->data != NULL ? ft_row_output(out, row, copy) : copy;
    normalize(args, y, x);
    if (out->data != NULL)
        ft_row_flush(args, out, row, y);
    if (args->quantized.data == NULL)
        return;
    if (out->data != NULL) /* quantize what is stored */
        normalized = ft_row_as_float(args, out, row, copy);
    ft_row_quantize(args, &args->quantized, row, ft_row_smooth(args, normalized, sum));
}

static void norm_rows(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    float *sum = ft_row_buffer(args, thread, 0), *copy = ft_row_buffer(args, thread, 1);
    for (size_t row = first; row < end; row++)
        norm_row(args, row, sum, copy);
}

void ft_cpu_norm(const ft_args *args)
{
    ft_parallel_rows(args, args->in[0].rows, args->in[0].cols, norm_rows);
}

/* ---- Heads -------------------------------------------------------------------------------- */

static void head_norm_rows(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    float *copy = ft_row_buffer(args, thread, 0), *made = ft_row_buffer(args, thread, 1);
    size_t cols = args->in[0].cols, size = cols / (size_t) args->op->attr.heads;
    for (size_t row = first; row < end; row++) {
        const float *x = ft_row_as_float(args, &args->in[0], row, copy);
        float *y = ft_row_output(&args->out, row, made);
        for (size_t at = 0; at < cols; at += size)
            args->rows->rms_norm(y + at, x + at, args->weight[0]->data, args->op->attr.eps, size);
        ft_row_flush(args, &args->out, row, y);
    }
}

void ft_cpu_head_norm(const ft_args *args)
{
    ft_parallel_rows(args, args->in[0].rows, args->in[0].cols, head_norm_rows);
}
