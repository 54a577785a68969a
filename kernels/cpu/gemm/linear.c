/*
 * linear.c - y = act(x . w^T + b): dispatches to the int8, the group-wise quantized, the float or
 * the fake-quantized GEMM.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"
#include "kernels/cpu/fake_quantized/fake_quantized.h"
#include "kernels/cpu/gemm/groupwise/gemm_groupwise.h"
#include "kernels/cpu/gemm/f32/gemm_f32.h"
#include "kernels/cpu/gemm/int8/gemm_i8.h"
#include "kernels/quant.h"

static bool is_fake_quantized(const ft_weight *weight)
{
    return weight->dtype == FT_F32 && weight->scale != NULL;
}

static size_t scratch_of(const ft_weight *weight, ft_dtype x, size_t rows, int threads)
{
    if (weight->groupwise.scale != NULL)
        return ft_gemm_groupwise_scratch(&weight->groupwise, rows, weight->cols, threads);
    if (weight->dtype == FT_I8)
        return ft_gemm_i8_scratch(rows, weight->rows, weight->cols, threads);
    if (is_fake_quantized(weight))
        return ft_fake_quantized_linear_scratch(weight, rows);
    return ft_gemm_float_scratch(x, rows, weight->cols, threads);
}

ft_workspace ft_cpu_linear_workspace(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    const ft_value *x = &plan->value[op->in[0]];
    return (ft_workspace){ .scratch =
                               scratch_of(&plan->weight[op->weight[0]], x->dtype,
                                          ft_limits_rows(limits, x->rows), limits->threads) };
}

static int gemm_team(const ft_args *args, int macs)
{
    const ft_weight *weight = args->weight[0];
    double rows = (double) args->in[0].rows;
    double work = rows * (double) weight->rows * (double) weight->cols / macs;
    return ft_team_size(args->threads, (size_t) args->threads, work);
}

static void linear_i8(const ft_args *args)
{
    const ft_weight *weight = args->weight[0];
    bool quantize_out = args->quantized.data != NULL;
    const ft_view *y = quantize_out ? &args->quantized : &args->out;
    ft_gemm_i8_run(&(ft_gemm_i8){
        .isa = args->isa,
        .m = args->in[0].rows,
        .n = weight->rows,
        .k = weight->cols,
        .x = args->in[0].data,
        .x_stride = args->in[0].cols,
        .x_zero =
            (int8_t) args->op->attr.conv.zero, /* 0 except for im2col windows of a convolution */
        .w = weight->data,
        .x_scale = args->in[0].scale,
        .x_scales = args->in[0].scales,
        .w_scale = weight->scale,
        .bias = args->weight[1] == NULL ? NULL : args->weight[1]->data,
        .activation = args->op->attr.activation,
        .out_inverse = ft_inverse_scale(args->quantized.scale),
        .y_dtype = y->dtype,
        .y = y->data,
        .y_stride = weight->rows,
        .threads = gemm_team(args, FT_TEAM_MACS_I8),
        .scratch = args->scratch,
        .scratch_bytes = args->scratch_bytes,
    });
}

static void linear_groupwise(const ft_args *args)
{
    const ft_weight *weight = args->weight[0];
    ft_gemm_groupwise_run(&(ft_gemm_groupwise){
        .isa = args->isa,
        .threads = args->threads,
        .m = args->in[0].rows,
        .n = weight->rows,
        .k = weight->cols,
        .x = args->in[0].data,
        .x_dtype = args->in[0].dtype,
        .x_stride = args->in[0].cols,
        .w = weight->data,
        .bits = ft_groupwise_bits(weight->dtype),
        .groupwise = weight->groupwise,
        .bias = args->weight[1] == NULL ? NULL : args->weight[1]->data,
        .activation = args->op->attr.activation,
        .y = args->out.data,
        .y_dtype = args->out.dtype,
        .y_stride = weight->rows,
        .scratch = args->scratch,
        .scratch_bytes = args->scratch_bytes,
    });
}

static void linear_float(const ft_args *args)
{
    const ft_weight *weight = args->weight[0];
    ft_gemm_float_run(&(ft_gemm_float){
        .isa = args->isa,
        .threads = gemm_team(args, FT_TEAM_MACS_FLOAT),
        .m = args->in[0].rows,
        .n = weight->rows,
        .k = weight->cols,
        .x = args->in[0].data,
        .x_dtype = args->in[0].dtype,
        .x_stride = args->in[0].cols,
        .w = weight->data,
        .w_dtype = weight->dtype,
        .bias = args->weight[1] == NULL ? NULL : args->weight[1]->data,
        .activation = args->op->attr.activation,
        .y = args->out.data,
        .y_dtype = args->out.dtype,
        .y_stride = weight->rows,
        .scratch = args->scratch,
        .scratch_bytes = args->scratch_bytes,
    });
}

void ft_cpu_linear(const ft_args *args)
{
    if (args->in[0].rows == 0)
        return;
    if (args->weight[0]->dtype == FT_I8)
        linear_i8(args);
    else if (args->weight[0]->groupwise.scale != NULL)
        linear_groupwise(args);
    else if (is_fake_quantized(args->weight[0]))
        ft_fake_quantized_linear(args);
    else
        linear_float(args);
}
