/*
 * attention.c - softmax(q . k^T) . v: chooses the float or the int8 form.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/cpu.h"

size_t ft_cpu_attention_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    const ft_value *q = &plan->value[op->in[0]];
    size_t dim = (size_t) (q->cols / op->attr.heads);
    if (q->dtype == FT_I8)
        return ft_cpu_attention_i8_scratch(dim, limits);
    return ft_cpu_attention_f32_scratch(dim, limits);
}

void ft_cpu_attention(const ft_args *args)
{
    if (args->in[0].dtype == FT_I8)
        ft_cpu_attention_i8(args);
    else
        ft_cpu_attention_f32(args);
}
