/*
 * linear.c - y = act(x . w^T + b): chooses the float or the int8 form.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm_i8.h"
#include "kernels/quant.h"

static size_t rows_within(const ft_limits *limits, ft_rows kind)
{
    size_t rows;
    (void) ft_limits_rows(limits, kind, &rows); /* the plan was laid out for them */
    return rows;
}

size_t ft_cpu_linear_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    const ft_weight *weight = &plan->weight[op->weight[0]];
    size_t rows = rows_within(limits, plan->value[op->in[0]].rows);
    if (weight->dtype == FT_I8)
        return ft_gemm_i8_scratch(rows, weight->rows, weight->cols, limits->threads);
    return ft_cpu_linear_f32_scratch(weight, limits, rows);
}

static void linear_i8(const ft_args *args)
{
    const ft_weight *weight = args->weight[0];
    bool to_codes = args->codes.data != NULL;
    const ft_view *y = to_codes ? &args->codes : &args->out;
    ft_gemm_i8_run(&(ft_gemm_i8){
        .isa = args->isa,
        .m = args->in[0].rows,
        .n = weight->rows,
        .k = weight->cols,
        .x = args->in[0].data,
        .x_stride = args->in[0].cols,
        .w = weight->data,
        .x_scale = args->in[0].scale,
        .x_scales = args->in[0].scales,
        .w_scale = weight->scale,
        .bias = args->weight[1] == NULL ? NULL : args->weight[1]->data,
        .activation = args->op->attr.activation,
        .out_inverse = to_codes ? ft_inverse_scale(args->codes.scale) : 0.0f,
        .y_dtype = y->dtype,
        .y = y->data,
        .y_stride = weight->rows,
        .threads = args->threads,
        .scratch = args->scratch,
        .scratch_bytes = args->scratch_bytes,
    });
}

void ft_cpu_linear(const ft_args *args)
{
    if (args->weight[0]->dtype == FT_I8)
        linear_i8(args);
    else
        ft_cpu_linear_f32(args);
}
