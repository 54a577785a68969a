/*
 * divergence.c - how far the outputs of one model are from those of another, row by row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/divergence.h"

#include "kernels/math/elementary.h"
#include "runtime/scores/class_scores.h"

#include <math.h>

double ft_log_sum_exp(const float *x, size_t n, double max)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += ft_math_exp((double) x[i] - max);
    return max + ft_math_log(sum);
}

/* The mean of y - x weighted by softmax(y); entries of probability 0 (-inf) are skipped. */
static double mean_difference(const float *x, const float *y, size_t n, double log_sum_y)
{
    double mean = 0.0;
    for (size_t i = 0; i < n; i++) {
        double p = ft_math_exp((double) y[i] - log_sum_y);
        mean += p > 0.0 ? p * ((double) y[i] - (double) x[i]) : 0.0;
    }
    return mean;
}

/* Rounding may make a divergence slightly negative. */
static double not_negative(double kl)
{
    return kl > 0.0 || isnan(kl) ? kl : 0.0;
}

double ft_softmax_divergence(const float *logits, double log_sum, const float *baseline,
                             double baseline_log_sum, size_t n)
{
    double mean = mean_difference(logits, baseline, n, baseline_log_sum);
    return not_negative(mean - baseline_log_sum + log_sum);
}

/* log(1 + e^x) */
static double softplus(double x)
{
    return (x > 0.0 ? x : 0.0) + ft_math_log1p(ft_math_exp(-fabs(x)));
}

double ft_sigmoid_divergence(const float *logits, const float *baseline, size_t n)
{
    double kl = 0.0;
    for (size_t i = 0; i < n; i++) {
        double x = (double) logits[i], y = (double) baseline[i];
        kl += ft_sigmoid(baseline[i]) * (y - x) + softplus(x) - softplus(y);
    }
    return not_negative(kl);
}

double ft_cosine(const float *a, const float *b, size_t n)
{
    double product = 0.0, a_squares = 0.0, b_squares = 0.0;
    for (size_t i = 0; i < n; i++) {
        product += (double) a[i] * (double) b[i];
        a_squares += (double) a[i] * (double) a[i];
        b_squares += (double) b[i] * (double) b[i];
    }
    double norms = sqrt(a_squares) * sqrt(b_squares);
    return norms > 0.0 ? product / norms : 0.0;
}
