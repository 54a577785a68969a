/*
 * gate.c - y = activation(a) * b.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/cpu.h"

void ft_cpu_gate(const ft_args *args)
{
    size_t cols = args->in[0].cols;
#pragma omp parallel for num_threads(ft_team(args, args->in[0].rows)) schedule(static)
    for (size_t row = 0; row < args->in[0].rows; row++) {
        float *y = ft_row_copy(args, 0), *other = ft_row_copy(args, 1);
        args->rows->activate(y, ft_row_real(args, &args->in[0], row, y), args->op->attr.activation,
                             cols);
        const float *b = ft_row_real(args, &args->in[1], row, other);
        for (size_t i = 0; i < cols; i++)
            y[i] *= b[i];
        if (args->codes.data != NULL)
            ft_row_quantize(args, &args->codes, row, y);
        else
            ft_row_write(args, &args->out, row, y);
    }
}
