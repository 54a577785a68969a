/*
 * embedding.c - builds the output "embedding": pooling, Dense layers and normalization, as the
 * modules of sentence-transformers.
 *
 * Source: Reimers and Gurevych 2019; the modules' own configuration in sentence-transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/embedding.h"

#include <stdio.h>

/* "embedding.dense.I" and a suffix. */
static const char *layer_name(char name[FT_NAME], int layer, const char *suffix)
{
    snprintf(name, FT_NAME, "embedding.dense.%d%s", layer, suffix);
    return name;
}

static int build_layer(ft_graph *g, const ft_dense *dense, int layer, int x)
{
    char name[FT_NAME];
    if (dense->normalize_input)
        x = ft_l2_normalize(g, layer_name(name, layer, ".input"), x);
    x = ft_linear(g, layer_name(name, layer, ""), x);
    if (dense->activation == FT_ACT_NONE)
        return x;
    return ft_apply_activation(g, layer_name(name, layer, ".act"), x, dense->activation);
}

void ft_build_embedding(ft_graph *graph, const ft_config *config, int x)
{
    static const ft_pooling poolings[] = {
        [FT_EMBEDDING_FIRST] = FT_POOL_FIRST,
        [FT_EMBEDDING_MEAN] = FT_POOL_MEAN,
        [FT_EMBEDDING_LAST] = FT_POOL_LAST,
        [FT_EMBEDDING_MAX] = FT_POOL_MAX,
        [FT_EMBEDDING_MEAN_SQRT_LEN] = FT_POOL_MEAN_SQRT_LEN,
        [FT_EMBEDDING_WEIGHTED_MEAN] = FT_POOL_WEIGHTED_MEAN,
    };
    int e = ft_pool(graph, "embedding.pool", x, poolings[config->embedding]);
    for (int i = 0; i < config->num_dense; i++)
        e = build_layer(graph, &config->dense[i], i, e);
    if (config->normalize)
        e = ft_l2_normalize(graph, "embedding", e);
    ft_graph_output(graph, "embedding", e);
}
