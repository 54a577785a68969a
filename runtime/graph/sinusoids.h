/*
 * sinusoids.h - sinusoidal position embeddings of encoder-decoder models.
 *
 * With half = hidden / 2, row p of the table [positions, hidden] holds sin(p * frequency[i]) in
 * columns i = 0 .. half - 1 and cos(p * frequency[i]) in columns half + i:
 *
 *   closed   (M2M100) frequency[i] = 10000^(-i / (half - 1)), computed in float32: frequencies and
 *            angles are rounded before the sine is taken.  The row of the padding id is zero.
 *   open     (Marian) frequency[i] = 10000^(-i / half), computed in double and rounded once
 *
 * The rounding is part of the formula: at position 1000, rounding an angle to float32 changes it by
 * up to 3e-5.  Compared to the tables of transformers 5.23, those of Marian are equal.  Those of
 * M2M100 differ by at most one unit in the last place of the sine, except in columns where torch's
 * exponential is itself off by one unit (4 of 512 for the 1024 columns of M2M100 and NLLB): there
 * by up to 1.6e-5 at positions up to 1023.
 *
 * Source: Vaswani et al. 2017; transformers, modeling_m2m_100 and modeling_marian.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_SINUSOIDS_H
#define FT_RUNTIME_GRAPH_SINUSOIDS_H

#include "runtime/graph/model_config.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* The name of the table among the weights of a model; it is computed, not loaded. */
#define FT_SINUSOIDS_WEIGHT "positions.sinusoids"

/* Write the table [positions, hidden] of a configuration with sinusoids to `out`. */
void ft_sinusoids_write(float *out, const ft_config *config);

/* Write its rows first .. first + count - 1: [count, hidden]. */
void ft_sinusoids_write_rows(float *out, const ft_config *config, int32_t first, int32_t count);

#pragma GCC visibility pop

#endif
