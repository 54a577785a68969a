/*
 * rope.h - how fast rotary positions turn each pair of columns of a head.
 *
 * Column i and column i + head_size / 2 of a query or key are a pair, turned by the angle
 * position * frequency[i].  Without scaling the frequency is theta^(-2i / head_size).
 *
 *   linear   all divided by the factor
 *   llama3   a frequency turns rope_positions * f / (2 pi) times within the positions that need no
 *            scaling; at least rope_high times: as it is; at most rope_low times: divided by the
 *            factor; between these a mixture, linear in the number of turns
 *   dynamic  once a sequence is longer than rope_positions, another theta for all of it:
 *            theta * (factor * length / rope_positions - (factor - 1))^(head_size / (head_size -
 * 2))
 *
 * Source: Su et al. 2021; the Llama 3.1 model card; transformers, modeling_rope_utils.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_ROPE_H
#define FT_RUNTIME_GRAPH_ROPE_H

#include "runtime/graph/model_config.h"

/* The frequencies among a model's weights: no file holds them. */
#define FT_ROPE_WEIGHT "rope.frequencies"

/*
 * Write head_size / 2 frequencies of a configuration with rope, computed in double and rounded
 * once.  Those of dynamic scaling are for sequences of up to rope_positions tokens.
 */
void ft_rope_frequencies(float *out, const ft_config *config);

/*
 * The same for a sequence of `length` tokens; only dynamic scaling asks for the length.  There, a
 * key that was turned when the sequence was shorter is not what it would be now.
 */
void ft_rope_frequencies_at(float *out, const ft_config *config, int64_t length);

#endif
