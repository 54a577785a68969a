/*
 * attention.c - softmax(q . k^T) . v: dispatches to the float, the int8 or the fake-quantized
 * kernel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/attention/attention_i8.h"
#include "kernels/cpu/base/cpu.h"
#include "kernels/cpu/fake_quantized/fake_quantized.h"
#include "kernels/quant.h"
#include "kernels/softmax.h"

ft_workspace ft_cpu_attention_workspace(const ft_plan *plan, const ft_op *op,
                                        const ft_limits *limits)
{
    const ft_value *q = &plan->value[op->in[0]];
    size_t dim = (size_t) (q->cols / op->attr.heads);
    if (q->dtype == FT_I8)
        return (ft_workspace){
            .scratch = ft_attention_i8_scratch(limits->tokens, dim, limits->threads),
        };
    if (q->scale > 0.0f)
        return (ft_workspace){ .scratch = ft_fake_quantized_attention_scratch(dim, limits) };
    return (ft_workspace){ .scratch = ft_cpu_attention_f32_scratch(dim, limits) };
}

static void attention_i8(const ft_args *args)
{
    const ft_view *q = &args->in[0], *k = &args->in[1], *v = &args->in[2];
    bool quantize_out = args->quantized.data != NULL;
    ft_attention_i8_run(&(ft_attention_i8){
        .isa = args->isa,
        .threads = ft_cpu_attention_team(args, (size_t) args->threads, FT_TEAM_MACS_I8),
        .sequences = args->batch->sequences,
        .heads = (size_t) args->op->attr.heads,
        .head_size = q->cols / (size_t) args->op->attr.heads,
        .starts = args->batch->start,
        .q = q->data,
        .k = k->data,
        .v = v->data,
        .q_stride = q->cols,
        .k_stride = k->cols,
        .v_stride = v->cols,
        .score_scale = ft_score_scale(q->scale, k->scale, args->op->attr.softmax_scale),
        .value_scale = v->scale,
        .out_inverse = ft_inverse_scale(args->quantized.scale),
        .y = quantize_out ? args->quantized.data : args->out.data,
        .y_stride = q->cols,
        .scratch = args->scratch,
        .scratch_bytes = args->scratch_bytes,
    });
}

void ft_cpu_attention(const ft_args *args)
{
    if (args->in[0].dtype == FT_I8)
        attention_i8(args);
    else if (args->in[0].scale > 0.0f)
        ft_fake_quantized_attention(args);
    else
        ft_cpu_attention_f32(args);
}
