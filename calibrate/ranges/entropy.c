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

#include <math.h>

enum { LEVELS = 128 }; /* also the minimum number of bins */

/* Prefix sums over the first i bins. */
typedef struct running_sums {
    double count[FT_BINS + 1], count_log[FT_BINS + 1];
    int filled[FT_BINS + 1];
} running_sums;

static double x_log_x(double x)
{
    return x > 0.0 ? x * log(x) : 0.0;
}

static void sum_up(running_sums *sums, const ft_histogram *h)
{
    sums->count[0] = sums->count_log[0] = 0.0;
    sums->filled[0] = 0;
    for (int i = 0; i < FT_BINS; i++) {
        double count = (double) h->bin[i == 0 ? 1 : i];
        sums->count[i + 1] = sums->count[i] + count;
        sums->count_log[i + 1] = sums->count_log[i] + x_log_x(count);
        sums->filled[i + 1] = sums->filled[i] + (count > 0.0);
    }
}

/* Infinite where P is positive and Q is not, and if Q is empty. */
static double divergence(const running_sums *sums, int kept)
{
    double total = sums->count[FT_BINS], inside = sums->count[kept], outside = total - inside;
    double last = inside - sums->count[kept - 1];
    if (inside == 0.0 || (last == 0.0 && outside > 0.0))
        return HUGE_VAL;

    double p_log_p = sums->count_log[kept] - x_log_x(last) + x_log_x(last + outside);
    double mass_log_mean = 0.0;
    for (int level = 0, from = 0, to; level < LEVELS; level++, from = to) {
        to = ((level + 1) * kept + LEVELS - 1) / LEVELS;
        double sum = sums->count[to] - sums->count[from];
        int filled = sums->filled[to] - sums->filled[from];
        if (filled > 0)
            mass_log_mean += (to == kept ? sum + outside : sum) * log(sum / filled);
    }
    return (p_log_p - mass_log_mean) / total - log(total) + log(inside);
}

void ft_search_entropy(ft_amax_choice *out, const ft_histogram *h)
{
    running_sums sums;
    sum_up(&sums, h);
    out->index = FT_BINS;
    out->objective = out->second = HUGE_VAL;
    for (int kept = LEVELS; kept <= FT_BINS; kept++) {
        double d = divergence(&sums, kept);
        if (d <= out->objective) {
            out->second = out->objective;
            out->objective = d;
            out->index = kept;
        } else if (d < out->second)
            out->second = d;
    }
    out->amax = h->edge[out->index];
}
