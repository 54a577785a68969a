/*
 * rotate_weights.h - rotate the residual stream and the values of a decoder with RMS norms.
 *
 * RMS norms without weights commute with rotations, so a decoder computes the same function if
 * every matrix that writes the residual stream rotates it and every matrix that reads it undoes the
 * rotation.  Nothing is left to do at run time.  With a residual stream in rows, y = x W^T:
 *
 *   folding   attn.q, k, v, ffn.gate, up and the head take the weight g of the norm before them,
 *             W diag(g); the norm keeps the weight 1
 *   residual  (R1 of the papers) embed.word, these matrices and the head become W Q; attn.out and
 *             ffn.down, their biases too, become Q^T W
 *   values    (R2) the rows of each key/value head of attn.v, and its bias, become P^T W; the
 *             columns of each query head of attn.out become W P
 *
 * A tied head gets its own weight, as only the head takes the final norm.
 *
 * Sources: see rotation.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_ROTATE_WEIGHTS_H
#define FT_CONVERT_ROTATE_WEIGHTS_H

#include "convert/convert.h"

/* Check that the model can be rotated, and mark its configuration.  Each obstacle is added to
 * `problems`. */
void ft_conversion_rotate_config(ft_conversion *conversion, ft_messages *problems);

/* Make the rotations and assign them to the mapped weights; FT_ENOMEM is added to `problems`. */
void ft_conversion_rotate_weights(ft_conversion *conversion, ft_messages *problems);

#endif
