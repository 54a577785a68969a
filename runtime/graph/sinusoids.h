/*
 * sinusoids.h - the rows that encoder-decoders add to the rows of words, to say where these stand.
 *
 * Columns 0 .. half - 1 of row p are sin(p * frequency[i]), the other half cos(p * frequency[i]):
 *
 *   closed   frequency[i] = 10000^(-i / (half - 1)), all in float: the frequencies are rounded, and
 *            so are the angles, before their sines are taken.  The padding's row is zero.
 *   open     frequency[i] = 10000^(-i / half), all in double and rounded once
 *
 * The rounding is part of the formula: at position 1000 an angle that is rounded to a float is up
 * to 3e-5 away.  Beside the tables that transformers 5.23 makes, those of Marian are equal; those
 * of M2M100 are within one unit in the last place of the sine, except in columns where the
 * exponential of torch is itself one unit away from the rounded one (4 of 512 for M2M100's and
 * NLLB's 1024 columns): there up to 1.6e-5 at positions up to 1023.
 *
 * Source: Vaswani et al. 2017; transformers, modeling_m2m_100 and modeling_marian.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_SINUSOIDS_H
#define FT_RUNTIME_GRAPH_SINUSOIDS_H

#include "runtime/graph/model_config.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* The table among a model's weights: no file holds it. */
#define FT_SINUSOIDS_WEIGHT "positions.sinusoids"

/* Write the table of a configuration with sinusoids: [positions, hidden]. */
void ft_sinusoids_write(float *out, const ft_config *config);

/* Its rows first .. first + count - 1. */
void ft_sinusoids_write_rows(float *out, const ft_config *config, int32_t first, int32_t count);

#pragma GCC visibility pop

#endif
