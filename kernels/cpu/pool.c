/*
 * pool.c - one row per sequence.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/cpu.h"

#include <string.h>

static void mean_of_rows(const ft_rows_isa *rows, float *out, const ft_view *x, size_t first,
                         size_t end)
{
    memset(out, 0, x->cols * sizeof *out);
    for (size_t row = first; row < end; row++)
        rows->add(out, out, ft_row_f32(x, row), x->cols);
    rows->dequantize_f32(out, out, 1.0f / (float) (end - first), x->cols);
}

void ft_cpu_pool(const ft_args *args)
{
    const int32_t *start = args->batch->start;
    for (size_t i = 0; i < args->batch->sequences; i++) {
        float *out = ft_row_f32(&args->out, i);
        if (args->op->attr.pooling == FT_POOL_MEAN)
            mean_of_rows(args->rows, out, &args->in[0], (size_t) start[i], (size_t) start[i + 1]);
        else
            memcpy(out, ft_row_f32(&args->in[0], (size_t) start[i]), args->out.cols * sizeof *out);
    }
}
