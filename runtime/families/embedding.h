/*
 * embedding.h - the output "embedding" of text encoders and decoders.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_FAMILIES_EMBEDDING_H
#define FT_RUNTIME_FAMILIES_EMBEDDING_H

#include "runtime/families/family.h"

/* One Dense layer of sentence-transformers, in a table of weights. */
#define FT_DENSE_LAYER(i)                                                                          \
    {                                                                                              \
        "embedding.dense." #i, "dense_size_" #i ", dense_input_" #i,                               \
            .role = FT_ROLE_DENSE, .bias = "dense_bias_" #i, .when = "dense_size_" #i              \
    }

/* All of them: FT_MAX_DENSE. */
#define FT_DENSE_LAYERS FT_DENSE_LAYER(0), FT_DENSE_LAYER(1), FT_DENSE_LAYER(2), FT_DENSE_LAYER(3)

/* Pool x [T, hidden] as the configuration says, and make the output [S, embedding size]. */
void ft_build_embedding(ft_graph *graph, const ft_config *config, int x);

#endif
