/*
 * tied_weights.h - tensors of a checkpoint that hold again what the model has anyway.
 *
 * One table of words may serve two or three places, and checkpoints store it under the name of one
 * of them or of each.  Tables of positions that the model's code computes may be stored too.  Such
 * copies are no weights; but one whose values are others would change the result, so they are
 * compared.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TIED_WEIGHTS_H
#define FT_CONVERT_TIED_WEIGHTS_H

#include "convert/checkpoint/checkpoint.h"
#include "convert/checkpoint/messages.h"
#include "runtime/families/family.h"

/* Whether dtype, shape and values are the same; lets go of the pages that were read. */
bool ft_tensors_equal(const ft_checkpoint *checkpoint, const ft_tensor *a, const ft_tensor *b);

/*
 * The name under which a checkpoint has the table of words: `own`, or else the first that it has of
 * the dialect's other names.  Those that it has beside must be equal: a problem for each that
 * differs, FT_EUNSUPPORTED.
 */
const char *ft_words_find(const ft_checkpoint *checkpoint, const ft_dialect *dialect,
                          const char *own, ft_messages *problems);

/* Note every stored table of positions that is not the sinusoids of the configuration. */
void ft_positions_check(const ft_checkpoint *checkpoint, const ft_dialect *dialect,
                        const ft_config *config, ft_messages *problems);

/* Whether it is one of the dialect's copies. */
bool ft_is_copy(const ft_dialect *dialect, const char *name);

#endif
