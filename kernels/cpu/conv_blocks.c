/*
 * conv_blocks.c - windows by weights in blocks, in plain C.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/conv.h"

#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

/* Part of a row: the elements first .. end - 1 are one group. */
typedef struct part {
    size_t row, first, end, at; /* `at`: of its scale and zero */
} part;

static int32_t code_of(const ft_weight *w, const part *p, size_t col)
{
    int bits = ft_blocks_bits(w->dtype);
    return (int32_t) ft_panel_code(w->data, p->row, col, w->cols, bits) -
           ft_blocks_zero(&w->blocks, p->at, bits);
}

/* A group of weights by the same inputs, still without the weights' scale. */
static float multiply_reals(const ft_weight *w, const part *p, const float *x)
{
    float sum = 0.0f;
    for (size_t i = p->first; i < p->end; i++)
        sum = fmaf((float) code_of(w, p, i), x[i], sum);
    return sum;
}

/* The same; the inputs become codes. */
static float multiply_codes(const ft_weight *w, const part *p, const float *x, float *x_scale)
{
    float amax = 0.0f;
    for (size_t i = p->first; i < p->end; i++)
        amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
    int32_t sum = 0;
    *x_scale = ft_scale_from_amax(amax);
    for (size_t i = p->first; i < p->end; i++)
        sum += code_of(w, p, i) * ft_quantize(x[i], ft_inverse_scale(*x_scale));
    return (float) sum;
}

static float multiply_row(const ft_weight *w, size_t row, const float *x)
{
    size_t group = w->blocks.group == 0 ? w->cols : (size_t) w->blocks.group;
    float total = 0.0f;
    for (size_t first = 0; first < w->cols; first += group) {
        part p = { row, first, ft_min_size(first + group, w->cols),
                   ft_blocks_index(&w->blocks, row, first, w->rows) };
        float scale = ft_float_from_f16(w->blocks.scale[p.at]), x_scale = 1.0f;
        float sum =
            w->blocks.by_codes ? multiply_codes(w, &p, x, &x_scale) : multiply_reals(w, &p, x);
        total = fmaf(sum, scale * x_scale, total);
    }
    return total;
}

void ft_conv_multiply_blocks(const ft_args *args, const float *rows, size_t count, float *results)
{
    const ft_weight *w = args->weight[0];
    const float *bias = args->weight[1] == NULL ? NULL : args->weight[1]->data;
    size_t n = w->rows;
#pragma omp parallel for num_threads(ft_team(args, count)) schedule(static)
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < n; j++) {
            float sum = multiply_row(w, j, rows + i * w->cols);
            sum = bias == NULL ? sum : sum + bias[j];
            results[i * n + j] = ft_activate(args->op->attr.activation, sum);
        }
}
