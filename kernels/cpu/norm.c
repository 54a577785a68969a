/*
 * norm.c - layer norm of x, or of x + residual; writes floats, codes, or both.
 *
 * The residual may be codes (an int8 residual stream).  Codes beside half-precision floats are
 * those of the rounded values, as a quantize would make.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/cpu.h"

/* The row that is to be normalized: x, or x + residual made in `copy`. */
static const float *row_of_sum(const ft_args *args, size_t row, float *copy, float *other)
{
    const ft_view *residual = &args->in[1];
    const float *x = ft_row_real(args, &args->in[0], row, copy);
    if (residual->data == NULL)
        return x;
    ft_row_add(args, copy, x, residual, row, other);
    return copy;
}

static void norm_row(const ft_args *args, size_t row, float *sum, float *copy)
{
    const ft_view *out = &args->out;
    const float *x = row_of_sum(args, row, sum, copy), *normal = copy;
    float *y = out->data != NULL ? ft_row_begin(out, row, copy) : copy;
    args->rows->norm(y, x, args->weight[0]->data, args->weight[1]->data, args->op->attr.eps,
                     args->in[0].cols);
    if (out->data != NULL)
        ft_row_end(args, out, row, y);
    if (args->codes.data == NULL)
        return;
    if (out->data != NULL) /* codes are those of what is stored */
        normal = ft_row_real(args, out, row, copy);
    ft_row_quantize(args, &args->codes, row, normal);
}

void ft_cpu_norm(const ft_args *args)
{
#pragma omp parallel num_threads(args->threads)
    {
        float *sum = ft_row_copy(args, 0), *copy = ft_row_copy(args, 1);
#pragma omp for schedule(static)
        for (size_t row = 0; row < args->in[0].rows; row++)
            norm_row(args, row, sum, copy);
    }
}
