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

static double squared_error(const centres *c, float amax)
{
    float inverse_scale = FT_QUANT_MAX / amax;
    double sum = 0.0;
    for (int i = 0; i < c->count; i++) {
        float quantized = ft_quantize_to_float(c->value[i], inverse_scale) / inverse_scale;
        double error = (double) (quantized - c->value[i]);
        sum += error * error * c->weight[i];
    }
    return sum;
}

void ft_search_mse(ft_amax_result *out, const ft_histogram *h)
{
    centres c = { 0 };
    for (int bin = 0; bin < FT_BINS; bin++)
        if (h->bin[bin] > 0) {
            c.value[c.count] = centre(h, bin);
            c.weight[c.count++] = (double) h->bin[bin];
        }
    out->objective = out->second_best = HUGE_VAL;
    for (int bin = FIRST; bin < FT_BINS; bin++) {
        double error = squared_error(&c, centre(h, bin));
        if (error < out->objective) {
            out->second_best = out->objective;
            out->objective = error;
            out->index = bin;
        } else if (error < out->second_best)
            out->second_best = error;
    }
    out->amax = centre(h, out->index);
}
