/*
 * grids.h - weights as floats, the choice of their grids, and rounding to the nearest value: bodies
 * of kernels.
 *
 * The same arithmetic as calibrate/weights/groupwise.c, bit for bit: a thread adds the 16 partial
 * sums of a group.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_QUANTIZE_GRIDS_H
#define FT_KERNELS_CUDA_QUANTIZE_GRIDS_H

#include "kernels/cuda/quantize/input_sums.h"

/* The symmetric 4-bit grid ends at 7 scales, and float16 at 65504. */
#define FT_CUDA_MAX_WEIGHT (7.0f * 65504.0f)

/* ---- Weights ------------------------------------------------------------------------------ */

/* [rows, cols] threads. */
typedef struct ft_cuda_load_weights_args {
    const void *data; /* [rows, cols] */
    ft_dtype dtype;
    const float *row_factor, *col_factor; /* [rows], [cols], or NULL */
    size_t cols;
    float *out;
} ft_cuda_load_weights_args;

FT_HOST_DEVICE void ft_cuda_load_weights_at(const ft_cuda_load_weights_args *a, size_t index)
{
    float value = ft_cuda_load_float(a->data, a->dtype, index);
    if (a->col_factor != NULL)
        value *= a->col_factor[index % a->cols];
    if (a->row_factor != NULL)
        value *= a->row_factor[index / a->cols];
    a->out[index] = value;
}

/* [rows, cols] threads: the weights as doubles. */
typedef struct ft_cuda_copy_weights_args {
    const float *weight;
    double *out;
} ft_cuda_copy_weights_args;

FT_HOST_DEVICE void ft_cuda_copy_weights_at(const ft_cuda_copy_weights_args *a, size_t index)
{
    a->out[index] = (double) a->weight[index];
}

/* [rows, cols] threads: W becomes W + W M. */
typedef struct ft_cuda_correct_weights_args {
    float *weight;
    const double *product; /* W M */
} ft_cuda_correct_weights_args;

FT_HOST_DEVICE void ft_cuda_correct_weights_at(const ft_cuda_correct_weights_args *a, size_t index)
{
    a->weight[index] = (float) ((double) a->weight[index] + a->product[index]);
}

/* [rows, cols] threads: the index of the first weight that cannot be quantized. */
typedef struct ft_cuda_check_weights_args {
    const float *weight;
    unsigned long long *first_invalid; /* starts at ~0 */
} ft_cuda_check_weights_args;

FT_HOST_DEVICE void ft_cuda_check_weights_at(const ft_cuda_check_weights_args *a, size_t index)
{
    if (fabsf(a->weight[index]) <= FT_CUDA_MAX_WEIGHT)
        return;
#ifdef __CUDA_ARCH__
    atomicMin(a->first_invalid, (unsigned long long) index);
#else
    *a->first_invalid = index < *a->first_invalid ? index : *a->first_invalid;
#endif
}

/* ---- Grids -------------------------------------------------------------------------------- */

/* The grids of a stripe of rows, and its quantized values. */
typedef struct ft_cuda_grids {
    size_t cols, group, groups; /* group: columns, not 0; groups of a row */
    int32_t max_q;
    float *scale;  /* [rows, groups] */
    uint8_t *zero; /* [rows, groups] */
    uint8_t *q;    /* [rows, cols] */
} ft_cuda_grids;

typedef struct ft_cuda_grid {
    float scale, inverse;
    int32_t zero, max_q;
} ft_cuda_grid;

FT_HOST_DEVICE size_t ft_cuda_grid_index(const ft_cuda_grids *g, size_t row, size_t col)
{
    return row * g->groups + col / g->group;
}

FT_HOST_DEVICE ft_cuda_grid ft_cuda_grid_of(const ft_cuda_grids *g, size_t row, size_t col)
{
    size_t index = ft_cuda_grid_index(g, row, col);
    ft_cuda_grid grid = { g->scale[index], 1.0f / g->scale[index], g->zero[index], g->max_q };
    return grid;
}

/* Rounds to the nearest integer, half to even; magnitudes up to 2^22. */
FT_HOST_DEVICE float ft_cuda_round_half_even(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it discards the fraction */
    return (x + magic) - magic;
}

/* n_steps on the grid, in steps from the zero point. */
FT_HOST_DEVICE float ft_cuda_round_steps(const ft_cuda_grid *grid, float n_steps)
{
    float low = (float) -grid->zero, high = (float) (grid->max_q - grid->zero), q = n_steps;
    q = q < high ? q : high;
    q = q > low ? q : low;
    return ft_cuda_round_half_even(q);
}

FT_HOST_DEVICE uint8_t ft_cuda_grid_round(const ft_cuda_grid *grid, float weight)
{
    return (uint8_t) ((int32_t) ft_cuda_round_steps(grid, weight * grid->inverse) + grid->zero);
}

FT_HOST_DEVICE float ft_cuda_grid_value(const ft_cuda_grid *grid, uint8_t q)
{
    return grid->scale * (float) (q - grid->zero);
}

/* [rows, groups] threads. */
typedef struct ft_cuda_choose_grids_args {
    const float *weight;     /* [rows, cols] */
    const float *importance; /* [cols], or NULL */
    ft_cuda_grids grids;
    int bits;
    bool asymmetric, clip;
} ft_cuda_choose_grids_args;

/* The weights of a group, and the best grid so far; scale 0: none yet. */
typedef struct ft_cuda_grid_search {
    const float *weight, *importance;
    size_t count;
    ft_cuda_grid best;
    double error;
} ft_cuda_grid_search;

FT_HOST_DEVICE float ft_cuda_round_scale(float span, int32_t n_steps)
{
    uint16_t bits = ft_f16_from_float(span / (float) n_steps);
    if (bits == 0 || ft_float_from_f16(bits) * ((float) n_steps + 0.5f) < span)
        bits++;
    return ft_float_from_f16(bits);
}

FT_HOST_DEVICE ft_cuda_grid ft_cuda_make_grid(float span, int32_t n_steps, int32_t zero,
                                              int32_t max_q)
{
    float scale = span > 0.0f ? ft_cuda_round_scale(span, n_steps) : 1.0f;
    ft_cuda_grid grid = { scale, 1.0f / scale, zero, max_q };
    return grid;
}

FT_HOST_DEVICE ft_cuda_grid ft_cuda_asymmetric_grid(float low, float high, int32_t max_q,
                                                    int32_t shift)
{
    ft_cuda_grid grid = ft_cuda_make_grid(high - low, max_q, 0, max_q);
    float zero = rintf(-low * grid.inverse);
    grid.zero = (zero < (float) max_q ? (int32_t) zero : max_q) + shift;
    grid.zero = grid.zero < 0 ? 0 : grid.zero > max_q ? max_q : grid.zero;
    return grid;
}

enum { FT_CUDA_ERROR_LANES = 16 }; /* partial sums of a squared error */

FT_HOST_DEVICE double ft_cuda_squared_error(const ft_cuda_grid *grid, const ft_cuda_grid_search *s)
{
    float sum[FT_CUDA_ERROR_LANES];
    for (int i = 0; i < FT_CUDA_ERROR_LANES; i++)
        sum[i] = 0.0f;
    for (size_t first = 0; first < s->count; first += FT_CUDA_ERROR_LANES)
        for (int i = 0; i < FT_CUDA_ERROR_LANES; i++) {
            size_t at = first + (size_t) i;
            float n_steps = (at < s->count ? s->weight[at] : 0.0f) * grid->inverse;
            float error = n_steps - ft_cuda_round_steps(grid, n_steps);
            float importance = s->importance == NULL ? 1.0f
                               : at < s->count       ? s->importance[at]
                                                     : 0.0f;
            sum[i] += importance * (error * error);
        }
    double total = 0.0;
    for (int i = 0; i < FT_CUDA_ERROR_LANES; i++)
        total += (double) sum[i];
    return total * (double) grid->scale * (double) grid->scale;
}

FT_HOST_DEVICE void ft_cuda_try_grid(ft_cuda_grid_search *s, ft_cuda_grid grid)
{
    double error = ft_cuda_squared_error(&grid, s);
    if (s->best.scale > 0.0f && !(error < s->error))
        return;
    s->best = grid;
    s->error = error;
}

/* The candidate grids for a range. */
FT_HOST_DEVICE void ft_cuda_try_range(ft_cuda_grid_search *s, float low, float high,
                                      const ft_cuda_choose_grids_args *a)
{
    int32_t max_q = (1 << a->bits) - 1, zero = 1 << (a->bits - 1), last = zero - 1;
    if (a->asymmetric) {
        ft_cuda_try_grid(s, ft_cuda_asymmetric_grid(low, high, max_q, 0));
        for (int32_t shift = -1; shift <= 1 && a->clip; shift += 2)
            ft_cuda_try_grid(s, ft_cuda_asymmetric_grid(low, high, max_q, shift));
        return;
    }
    float amax = high > -low ? high : -low;
    ft_cuda_try_grid(s, ft_cuda_make_grid(amax, last, zero, max_q));
    if (high * (float) zero <= amax * ((float) last + 0.5f) && amax > 0.0f)
        ft_cuda_try_grid(s, ft_cuda_make_grid(amax, zero, zero, max_q));
}

FT_HOST_DEVICE void ft_cuda_choose_grids_at(const ft_cuda_choose_grids_args *a, size_t index)
{
    const ft_cuda_grids *g = &a->grids;
    size_t row = index / g->groups, first = index % g->groups * g->group, left = g->cols - first;
    ft_cuda_grid_search search = { a->weight + row * g->cols + first,
                                   a->importance != NULL ? a->importance + first : NULL,
                                   g->group < left ? g->group : left,
                                   { 0.0f, 0.0f, 0, 0 },
                                   0.0 };
    float low = 0.0f, high = 0.0f;
    for (size_t i = 0; i < search.count; i++) {
        low = search.weight[i] < low ? search.weight[i] : low;
        high = search.weight[i] > high ? search.weight[i] : high;
    }
    for (int i = 40; i >= (a->clip ? 16 : 40); i--) {
        float ratio = (float) i / 40.0f;
        ft_cuda_try_range(&search, low * ratio, high * ratio, a);
    }
    g->scale[index] = search.best.scale;
    g->zero[index] = (uint8_t) search.best.zero;
}

/* [rows, cols] threads. */
typedef struct ft_cuda_round_nearest_args {
    const float *weight;
    ft_cuda_grids grids;
} ft_cuda_round_nearest_args;

FT_HOST_DEVICE void ft_cuda_round_nearest_at(const ft_cuda_round_nearest_args *a, size_t index)
{
    ft_cuda_grid grid = ft_cuda_grid_of(&a->grids, index / a->grids.cols, index % a->grids.cols);
    a->grids.q[index] = ft_cuda_grid_round(&grid, a->weight[index]);
}

#endif
