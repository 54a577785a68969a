/*
 * entropy.c - the range whose quantized histogram diverges least from the histogram.
 *
 * For each number i of bins kept, from 128 on: P is the histogram's first i bins, what lies beyond
 * added to the last of them; Q is what remains of these bins after merging them into 128 equal
 * levels: each bin that is not empty gets its level's mean.  The values beyond are not in Q.  The
 * chosen i has the least Kullback-Leibler divergence of Q from P, the greatest i among equals.
 * Before all this the first bin, where the zeros are, is given its neighbour's count.
 *
 * A sum over all bins for each i would be 4 million logarithms.  With running sums over the bins,
 * of the counts b, of b ln b, and of the number of bins that are not empty, each i costs one
 * logarithm a level:
 *
 *   D = (sum of p ln p - sum over levels of mass ln mean) / T - ln T + ln K
 *
 * with p the counts of P, T their sum, K the sum of Q's, mean = a level's sum in Q / its bins that
 * are not empty, and mass = its sum in P.  The test compares this with the definition.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/method.h"

#include <math.h>

enum { LEVELS = 128 }; /* and as many bins at least */

/* Sums over the first i bins. */
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

/* Infinite where P is positive and Q is not; also where nothing is left of Q. */
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
