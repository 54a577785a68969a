/*
 * gate.c - y = activation(a) * b.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"

static void gate_rows(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    size_t cols = args->in[0].cols;
    float *y = ft_row_buffer(args, thread, 0), *other = ft_row_buffer(args, thread, 1);
    for (size_t row = first; row < end; row++) {
        args->rows->activate(y, ft_row_as_float(args, &args->in[0], row, y),
                             args->op->attr.activation, cols);
        const float *b = ft_row_as_float(args, &args->in[1], row, other);
        for (size_t i = 0; i < cols; i++)
            y[i] *= b[i];
        if (args->quantized.data != NULL)
            ft_row_quantize(args, &args->quantized, row, y);
        else
            ft_row_store(args, &args->out, row, y);
    }
}

void ft_cpu_gate(const ft_args *args)
{
    ft_parallel_rows(args, args->in[0].rows, args->in[0].cols, gate_rows);
}
