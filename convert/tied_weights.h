/*
 * tied_weights.h - tied weights: tensors of a checkpoint that duplicate a weight of the model.
 *
 * One token embedding may be shared by two or three layers, and checkpoints store it under the name
 * of one of them or of each. Sinusoidal position embeddings, which the model computes, may be
 * stored too. Such copies are not weights of the artifact. A copy with different values would
 * change the result, so copies are compared.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TIED_WEIGHTS_H
#define FT_CONVERT_TIED_WEIGHTS_H

#include "convert/checkpoint/checkpoint.h"
#include "runtime/base/messages.h"
#include "runtime/families/family.h"

/* Whether dtype, shape and values are equal; releases the pages that were read. */
bool ft_tensors_equal(const ft_checkpoint *checkpoint, const ft_tensor *a, const ft_tensor *b);

/*
 * The name of the token embedding in this checkpoint: `own`, or else the first of the
 * architecture's other names that is present. All other copies must be equal to it: each copy that
 * differs adds a problem, FT_EUNSUPPORTED.
 */
const char *ft_tied_embedding_find(const ft_checkpoint *checkpoint,
                                   const ft_architecture *architecture, const char *own,
                                   ft_messages *problems);

/* Note every stored table of positions that is not the sinusoids of the configuration. */
void ft_stored_positions_check(const ft_checkpoint *checkpoint, const ft_architecture *architecture,
                               const ft_config *config, ft_messages *problems);

/* Whether it is one of the architecture's copies. */
bool ft_is_tied_or_computed(const ft_architecture *architecture, const char *name);

#endif
