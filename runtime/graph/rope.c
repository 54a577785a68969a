/*
 * rope.c - frequencies of rotary position embeddings.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/rope.h"

#include "kernels/math/elementary.h"

#include <math.h>

static const double two_pi = 6.283185307179586476925;

/* The unscaled frequency of column pair i. */
static double base_frequency(double theta, int i, int head_size)
{
    return ft_math_pow(theta, -2.0 * i / head_size);
}

/* Divides the low frequencies, which make less than one rotation in the original context. */
static double scale_llama3(const ft_config *c, double frequency)
{
    double rotations = c->rope_positions * frequency / two_pi;
    double high_weight = (rotations - c->rope_low) / (c->rope_high - c->rope_low);
    high_weight = fmin(fmax(high_weight, 0.0), 1.0);
    return (1.0 - high_weight) * frequency / c->rope_factor + high_weight * frequency;
}

/* Theta for a sequence of `length` tokens; it grows with the length. */
static double theta_at(const ft_config *c, int64_t length)
{
    if (c->rope != FT_ROPE_DYNAMIC || length <= c->rope_positions)
        return c->rope_theta;
    double ratio = (double) length / c->rope_positions;
    double scaled_ratio = c->rope_factor * ratio - (c->rope_factor - 1.0);
    return c->rope_theta * ft_math_pow(scaled_ratio, c->head_size / (c->head_size - 2.0));
}

void ft_rope_frequencies_at(float *out, const ft_config *config, int64_t length)
{
    double theta = theta_at(config, length);
    for (int i = 0; i < config->head_size / 2; i++) {
        double frequency = base_frequency(theta, i, config->head_size);
        if (config->rope == FT_ROPE_LINEAR)
            frequency /= config->rope_factor;
        else if (config->rope == FT_ROPE_LLAMA3)
            frequency = scale_llama3(config, frequency);
        out[i] = (float) frequency;
    }
}

void ft_rope_frequencies(float *out, const ft_config *config)
{
    ft_rope_frequencies_at(out, config, 0);
}
