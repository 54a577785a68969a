/*
 * views.c - rows of values of any dtype as floats, for operations that compute in float32 only.
 *
 * F32 rows are used in place; F16, BF16 and quantized rows are converted through a scratch row that
 * stays in the L1 cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

static size_t max_cols(const ft_plan *plan, int value, size_t cols)
{
    size_t base = value < 0 ? 0 : (size_t) plan->value[value].cols;
    return base > cols ? base : cols;
}

ft_workspace ft_cpu_rows_workspace(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    size_t cols =
        max_cols(plan, op->in[0], max_cols(plan, op->out, max_cols(plan, op->quantized, 0)));
    size_t bytes = FT_ROW_BUFFERS * ft_round_up(cols * sizeof(float), 64);
    return (ft_workspace){ .scratch = (size_t) limits->threads * bytes };
}

float *ft_row_buffer(const ft_args *args, int thread, int copy)
{
    size_t cols = args->out.cols > args->quantized.cols ? args->out.cols : args->quantized.cols;
    cols = args->in[0].cols > cols ? args->in[0].cols : cols;
    char *base = ft_thread_scratch(args, thread);
    return (float *) (void *) (base + (size_t) copy * ft_round_up(cols * sizeof(float), 64));
}

static void *row_address(const ft_view *view, size_t row)
{
    return (char *) view->data + row * view->cols * ft_dtype_size(view->dtype);
}

const float *ft_row_as_float(const ft_args *args, const ft_view *view, size_t row, float *copy)
{
    float scale = ft_row_scale(view, row);
    bool quantized = view->scales != NULL || scale > 0.0f;
    if (quantized && view->dtype == FT_I8)
        args->rows->dequantize_i8(copy, ft_row_i8(view, row), scale, view->cols);
    else if (quantized)
        args->rows->dequantize_f32(copy, ft_row_f32(view, row), scale, view->cols);
    else if (view->dtype != FT_F32)
        args->rows->to_float(copy, row_address(view, row), view->dtype, view->cols);
    else
        return ft_row_f32(view, row);
    return copy;
}

void ft_row_add_residual(const ft_args *args, float *y, const float *x, const ft_view *residual,
                         size_t row, float *copy)
{
    const ft_row_kernels *rows = args->rows;
    size_t cols = residual->cols;
    float scale = ft_row_scale(residual, row);
    if (residual->scales == NULL && scale <= 0.0f)
        rows->add(y, x, ft_row_as_float(args, residual, row, copy), cols);
    else if (residual->dtype == FT_I8)
        rows->add_dequantized_i8(y, x, ft_row_i8(residual, row), scale, cols);
    else
        rows->add_dequantized_f32(y, x, ft_row_f32(residual, row), scale, cols);
}

float *ft_row_output(const ft_view *view, size_t row, float *copy)
{
    return view->dtype == FT_F32 ? ft_row_f32(view, row) : copy;
}

void ft_row_flush(const ft_args *args, const ft_view *view, size_t row, const float *x)
{
    if (view->dtype != FT_F32)
        args->rows->from_float(row_address(view, row), x, view->dtype, view->cols);
}

void ft_row_store(const ft_args *args, const ft_view *view, size_t row, const float *x)
{
    args->rows->from_float(row_address(view, row), x, view->dtype, view->cols);
}

const float *ft_row_smooth(const ft_args *args, const float *x, float *buffer)
{
    const ft_weight *smoothing = args->weight[FT_WEIGHT_SMOOTHING];
    if (smoothing == NULL)
        return x;
    args->rows->multiply(buffer, x, smoothing->data, smoothing->cols);
    return buffer;
}

void ft_row_quantize(const ft_args *args, const ft_view *quantized, size_t row, const float *x)
{
    float inverse = ft_inverse_scale(quantized->scale);
    if (quantized->scales != NULL) {
        quantized->scales[row] = ft_scale_from_amax(args->rows->amax(x, quantized->cols));
        inverse = ft_inverse_scale(quantized->scales[row]);
    }
    if (quantized->dtype == FT_I8)
        args->rows->quantize_i8(ft_row_i8(quantized, row), x, inverse, quantized->cols);
    else
        args->rows->quantize_f32(ft_row_f32(quantized, row), x, inverse, quantized->cols);
}
