/*
 * entropy.c - the range whose quantized histogram has the least KL divergence from the histogram.
 *
 * For each number i of bins kept, from 128 on: P is the first i bins of the histogram, with the
 * counts beyond them added to the last one; Q is the same bins without those counts, merged into
 * 128 equal levels: each non-empty bin gets the mean of its level. The selected i has the least
 * Kullback-Leibler divergence of Q from P; the largest i wins ties. Before all this the first bin,
 * which holds the zeros, gets the count of its neighbour.
 *
 * Summing over all bins for each i would take 4 million logarithms. With prefix sums over the bins,
 * of the counts b, of b ln b, and of the number of non-empty bins, each i costs one logarithm per
 * level:
 *
 *   D = (sum of p ln p - sum over levels of mass ln mean) / T - ln T + ln K
 *
 * where p are the counts of P, T their sum, K the sum of Q, mean = a level's sum in Q / its number
 * of non-empty bins, and mass = its sum in P. The test compares this with the definition.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/method.h"

#include "kernels/math/elementary.h"

#include <math.h>

enum { LEVELS = 128 }; /* also the minimum number of bins */

/* Prefix sums over the first i bins. */
typedef struct prefix_sums {
    double count[FT_BINS + 1], count_log[FT_BINS + 1];
    int n_filled[FT_BINS + 1];
} prefix_sums;

static double x_log_x(double x)
{
    return x > 0.0 ? x * ft_math_log(x) : 0.0;
}

static void compute_prefix_sums(prefix_sums *sums, const ft_histogram *h)
{
    sums->count[0] = sums->count_log[0] = 0.0;
    sums->n_filled[0] = 0;
    for (int i = 0; i < FT_BINS; i++) {
        double count = (double) h->bin[i == 0 ? 1 : i];
        sums->count[i + 1] = sums->count[i] + count;
        sums->count_log[i + 1] = sums->count_log[i] + x_log_x(count);
        sums->n_filled[i + 1] = sums->n_filled[i] + (count > 0.0);
    }
}

/* Infinite where P is positive and Q is not, and if Q is empty. */
static double divergence(const prefix_sums *sums, int n_kept)
{
    double total = sums->count[FT_BINS], inside = sums->count[n_kept], outside = total - inside;
    double last = inside - sums->count[n_kept - 1];
    if (inside == 0.0 || (last == 0.0 && outside > 0.0))
        return HUGE_VAL;

    double p_log_p = sums->count_log[n_kept] - x_log_x(last) + x_log_x(last + outside);
    double mass_log_mean = 0.0;
    for (int level = 0, begin = 0, end; level < LEVELS; level++, begin = end) {
        end = ((level + 1) * n_kept + LEVELS - 1) / LEVELS;
        double sum = sums->count[end] - sums->count[begin];
        int n_filled = sums->n_filled[end] - sums->n_filled[begin];
        if (n_filled > 0)
            mass_log_mean += (end == n_kept ? sum + outside : sum) * ft_math_log(sum / n_filled);
    }
    return (p_log_p - mass_log_mean) / total - ft_math_log(total) + ft_math_log(inside);
}

void ft_search_entropy(ft_amax_result *out, const ft_histogram *h)
{
    prefix_sums sums;
    compute_prefix_sums(&sums, h);
    out->index = FT_BINS;
    out->objective = out->second_best = HUGE_VAL;
    for (int n_kept = LEVELS; n_kept <= FT_BINS; n_kept++) {
        double d = divergence(&sums, n_kept);
        if (d <= out->objective) {
            out->second_best = out->objective;
            out->objective = d;
            out->index = n_kept;
        } else if (d < out->second_best)
            out->second_best = d;
    }
    out->amax = h->edge[out->index];
}
