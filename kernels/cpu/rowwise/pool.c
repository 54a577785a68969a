/*
 * pool.c - pooling: one row per sequence, the first token or the mean.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"

#include <string.h>

static void mean_of_rows(const ft_args *args, float *out, size_t first, size_t end)
{
    const ft_row_kernels *rows = args->rows;
    const ft_view *x = &args->in[0];
    memset(out, 0, x->cols * sizeof *out);
    for (size_t row = first; row < end; row++)
        rows->add(out, out, ft_row_as_float(args, x, row, ft_row_buffer(args, 0, 1)), x->cols);
    rows->dequantize_f32(out, out, 1.0f / (float) (end - first), x->cols);
}

void ft_cpu_pool(const ft_args *args)
{
    const int32_t *start = args->batch->start;
    for (size_t i = 0; i < args->batch->sequences; i++) {
        size_t first = (size_t) start[i], end = (size_t) start[i + 1];
        float *out = ft_row_output(&args->out, i, ft_row_buffer(args, 0, 0));
        if (args->op->attr.pooling == FT_POOL_MEAN)
            mean_of_rows(args, out, first, end);
        else
            memcpy(out, ft_row_as_float(args, &args->in[0], first, ft_row_buffer(args, 0, 1)),
                   args->out.cols * sizeof *out);
        ft_row_flush(args, &args->out, i, out);
    }
}
