/*
 * rope.h - the frequencies of rotary position embeddings (RoPE) and their scaling.
 *
 * RoPE rotates columns i and i + head_size / 2 of a query or key by the angle
 * position * frequency[i], in radians.  Without scaling, frequency[i] = theta^(-2i / head_size).
 *
 *   linear   divides all frequencies by the factor
 *   llama3   a frequency f makes rope_positions * f / (2 pi) rotations within the original context;
 *            f is unchanged for at least rope_high rotations, divided by the factor for at most
 *            rope_low rotations, and interpolated linearly in the number of rotations in between
 *   dynamic  (dynamic NTK) replaces theta once a sequence is longer than rope_positions:
 *            theta * (factor * length / rope_positions - (factor - 1))^e
 *            with e = head_size / (head_size - 2)
 *
 * Source: Su et al. 2021; the Llama 3.1 model card; transformers, modeling_rope_utils.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_ROPE_H
#define FT_RUNTIME_GRAPH_ROPE_H

#include "runtime/graph/model_config.h"

/* The name of the frequencies among the weights of a model; they are computed, not loaded. */
#define FT_ROPE_WEIGHT "rope.frequencies"

/*
 * Write the head_size / 2 frequencies of a configuration with RoPE to `out`.  They are computed in
 * double and rounded once to float32.  With dynamic scaling they are those of sequences of up to
 * rope_positions tokens.
 */
void ft_rope_frequencies(float *out, const ft_config *config);

/*
 * The same for a sequence of `length` tokens, which only dynamic scaling depends on.  There, keys
 * that were cached when the sequence was shorter keep the rotation of that length.
 */
void ft_rope_frequencies_at(float *out, const ft_config *config, int64_t length);

#endif
