/*
 * pair_error.h - the output error of linears whose weights and inputs are both quantized to int8.
 *
 * Let x be rows of an input and w a matrix that reads it. With factors f per column, x / f and
 * w * f have the same product, but other rounding errors. The error of a matrix is the sum of
 * squares of Q(x / f) . Q(w * f)^T - x . w^T over the rows, divided by that of x . w^T, so that
 * matrices with small outputs count as much as others.
 *
 * Products of quantized values are exact integers, and all sums have one order: the error depends
 * neither on the instruction set nor on the number of threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_SMOOTH_PAIR_ERROR_H
#define FT_CALIBRATE_SMOOTH_PAIR_ERROR_H

#include "calibrate/stats/activation_stats.h"
#include "calibrate/weights/weights.h"
#include "kernels/linalg.h"

/* At most so many output channels of a matrix are computed: evenly spaced ones. */
enum { FT_PAIR_MAX_CHANNELS = 512 };

/* Linears that read one input. */
typedef struct ft_pair {
    const ft_half_stats *fit;   /* decides the range of the tensor; borrowed */
    const ft_half_stats *judge; /* its rows are x, with other samples than `fit`; borrowed */
    size_t cols;
    const ft_weight_matrix *weights; /* [count], each of `cols` columns; borrowed */
    size_t count;
    bool per_token; /* one scale per row of x; else one for the tensor */

    /* Private to pair_error.c. */
    ft_linalg linalg;
    float **w;            /* [count][channels, cols] */
    double **output;      /* [count][rows, channels]: x . w^T */
    double *energy;       /* [count]: sum of its squares */
    float *x_q, *x_scale; /* [rows, cols] of either half, and [rows] */
    float *w_q, *w_scale; /* [channels, cols] and [channels] */
    double *product;      /* [rows, channels] */
} ft_pair;

/*
 * Computes the float outputs of a pair whose public members are set. fini also accepts a zeroed or
 * failed one. FT_ENOMEM; those of ft_linalg_init().
 */
FT_MUST_USE ft_status ft_pair_init(ft_pair *pair, int threads, ft_error *err);
void ft_pair_fini(ft_pair *pair);

/*
 * The sum of the errors of all matrices with factors [cols], positive. With one scale for the
 * tensor, its range is the maximum of `fit` or one of 12 smaller ones, each 2^(-1/4) of the one
 * before: that with the least square error of its rows. Values of `judge` beyond it are clipped, as
 * those of data that were not calibrated with.
 */
double ft_pair_error(ft_pair *pair, const float *factor);

#endif
