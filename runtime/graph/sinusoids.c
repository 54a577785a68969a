/*
 * sinusoids.c - sinusoidal position embeddings.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/sinusoids.h"

#include "kernels/math/elementary.h"

#include <string.h>

/* The angle of column i at a position, with the float32 rounding of each tensor operation. */
static double m2m100_angle(int32_t position, int32_t i, int32_t half)
{
    float step = (float) (-ft_math_log(10000.0) / (half - 1));
    float exponent = (float) i * step;
    float frequency = (float) ft_math_exp((double) exponent);
    return (double) ((float) position * frequency);
}

static double marian_angle(int32_t position, int32_t i, int32_t half)
{
    return position / ft_math_pow(10000.0, (double) i / half);
}

static void write_row(float *out, const ft_config *c, int32_t position)
{
    int32_t half = c->hidden / 2;
    bool m2m100 = c->sinusoids == FT_SINUSOIDS_M2M100;
    for (int32_t i = 0; i < half; i++) {
        double angle = m2m100 ? m2m100_angle(position, i, half) : marian_angle(position, i, half);
        out[i] = (float) ft_math_sin(angle);
        out[half + i] = (float) ft_math_cos(angle);
    }
}

void ft_sinusoids_write_rows(float *out, const ft_config *config, int32_t first, int32_t count)
{
    for (int32_t row = first; row < first + count; row++, out += config->hidden)
        if (row == config->padding_id)
            memset(out, 0, (size_t) config->hidden * sizeof *out);
        else
            write_row(out, config, row);
}

void ft_sinusoids_write(float *out, const ft_config *config)
{
    ft_sinusoids_write_rows(out, config, 0, config->positions);
}
