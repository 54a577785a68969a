/*
 * mse.c - the range whose quantization has the least mean square error on the histogram.
 *
 * Every bin from the 128th on is tried: its centre is taken as amax, and the centres of all bins as
 * the values. The least sum of squared errors weighted by counts wins; the first of equals is
 * selected.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/method.h"

#include "kernels/quant.h"

#include <math.h>

enum { FIRST = 128 };

typedef struct centres {
    int count; /* of non-empty bins */
    float value[FT_BINS];
    double weight[FT_BINS];
} centres;

static float centre(const ft_histogram *h, int bin)
{
    return (h->edge[bin] + h->edge[bin + 1]) / 2.0f;
}

static double squared_change(const centres *c, float amax)
{
    float inverse_scale = 127.0f / amax;
    double sum = 0.0;
    for (int i = 0; i < c->count; i++) {
        float quantized = ft_quantize_to_float(c->value[i], inverse_scale) / inverse_scale;
        double change = (double) (quantized - c->value[i]);
        sum += change * change * c->weight[i];
    }
    return sum;
}

void ft_search_mse(ft_amax_choice *out, const ft_histogram *h)
{
    centres c = { 0 };
    for (int bin = 0; bin < FT_BINS; bin++)
        if (h->bin[bin] > 0) {
            c.value[c.count] = centre(h, bin);
            c.weight[c.count++] = (double) h->bin[bin];
        }
    out->objective = out->second = HUGE_VAL;
    for (int bin = FIRST; bin < FT_BINS; bin++) {
        double change = squared_change(&c, centre(h, bin));
        if (change < out->objective) {
            out->second = out->objective;
            out->objective = change;
            out->index = bin;
        } else if (change < out->second)
            out->second = change;
    }
    out->amax = centre(h, out->index);
}
