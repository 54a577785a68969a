/*
 * rotate_weights.c - rotate the residual stream and the values of a decoder with RMS norms.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/rotate_weights.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* Fixed, so that every conversion gives the same bytes. */
enum { RESIDUAL_SEED = 1, HEADS_SEED = 2 };

typedef enum side { NOTHING, RESIDUAL, HEADS } side;

/* What mixes the rows and the columns of a weight, and the norm before it. */
typedef struct rule {
    const char *name, *norm;
    side rows, cols;
} rule;

static const rule rules[] = {
    { "embed.word", .cols = RESIDUAL },
    { "attn.q.weight", "attn.norm.weight", .cols = RESIDUAL },
    { "attn.k.weight", "attn.norm.weight", .cols = RESIDUAL },
    { "attn.v.weight", "attn.norm.weight", .rows = HEADS, .cols = RESIDUAL },
    { "attn.v.bias", .rows = HEADS },
    { "attn.out.weight", .rows = RESIDUAL, .cols = HEADS },
    { "attn.out.bias", .rows = RESIDUAL },
    { "ffn.gate.weight", "ffn.norm.weight", .cols = RESIDUAL },
    { "ffn.up.weight", "ffn.norm.weight", .cols = RESIDUAL },
    { "ffn.down.weight", .rows = RESIDUAL },
    { "ffn.down.bias", .rows = RESIDUAL },
    { "head.weight", "norm.weight", .cols = RESIDUAL },
};

/* ---- The model ------------------------------------------------------------------------------ */

static void check_size(const char *key, int32_t size, ft_messages *problems)
{
    size_t odd = ft_rotation_odd_factor((size_t) size);
    if (odd > FT_ROTATION_MAX_ODD)
        ft_messages_add(problems, FT_EUNSUPPORTED,
                        "config.json: %s %d = %d * %zu: --rotate needs an odd factor of at most %d",
                        key, size, (int) ((size_t) size / odd), odd, FT_ROTATION_MAX_ODD);
}

void ft_conversion_rotate_config(ft_conversion *conversion, ft_messages *problems)
{
    ft_config *config = &conversion->hf.config;
    const char *model_type = conversion->hf.architecture->model_type;
    if (config->kind != FT_KIND_DECODER) {
        ft_messages_add(problems, FT_EUNSUPPORTED,
                        "config.json: --rotate needs a decoder with RMS norms; the layer norms of "
                        "%s subtract the mean of all columns, which a rotation changes",
                        model_type);
        return;
    }
    if (config->embedding != FT_EMBEDDING_NONE)
        ft_messages_add(problems, FT_EUNSUPPORTED,
                        "modules.json: --rotate would rotate the embeddings of texts; convert "
                        "without it");
    check_size("hidden_size", config->hidden, problems);
    check_size("head_dim", ft_config_head_size(config), problems);
    config->rotated = true;
}

/* ---- The weights ---------------------------------------------------------------------------- */

/* "attn.q.weight" of "layer.0.attn.q.weight"; other names are whole. */
static const char *name_in_layer(const char *name)
{
    int skipped = 0;
    sscanf(name, "layer.%*d.%n", &skipped);
    return name + skipped;
}

static const rule *find_rule(const char *name)
{
    for (size_t i = 0; i < FT_COUNT(rules); i++)
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    return NULL;
}

static const ft_rotation *rotation_of(const ft_conversion *conversion, side which)
{
    return which == RESIDUAL ? &conversion->residual : which == HEADS ? &conversion->heads : NULL;
}

/* The norm `name` of the layer of `weight`. */
static ft_mapped_weight *find_norm(const ft_conversion *conversion, const ft_mapped_weight *weight,
                                   const char *name)
{
    char whole[FT_NAME];
    const char *own = weight->spec.name;
    snprintf(whole, sizeof whole, "%.*s%s", (int) (name_in_layer(own) - own), own, name);
    for (size_t i = 0; i < conversion->n_weights; i++)
        if (strcmp(conversion->weight[i].spec.name, whole) == 0)
            return &conversion->weight[i];
    return NULL;
}

static void assign(const ft_conversion *conversion, ft_mapped_weight *weight)
{
    const rule *found = find_rule(name_in_layer(weight->spec.name));
    if (found == NULL)
        return;
    weight->rotation.rows = rotation_of(conversion, found->rows);
    weight->rotation.cols = rotation_of(conversion, found->cols);
    if (found->norm != NULL) {
        ft_mapped_weight *norm = find_norm(conversion, weight, found->norm);
        norm->rotation.is_folded = true;
        weight->rotation.norm = norm;
    }
}

void ft_conversion_rotate_weights(ft_conversion *conversion, ft_messages *problems)
{
    const ft_config *config = &conversion->hf.config;
    ft_error err;
    if (ft_rotation_init(&conversion->residual, (size_t) config->hidden, RESIDUAL_SEED, &err) !=
            FT_OK ||
        ft_rotation_init(&conversion->heads, (size_t) ft_config_head_size(config), HEADS_SEED,
                         &err) != FT_OK) {
        ft_messages_add_error(problems, &err);
        return;
    }
    for (size_t i = 0; i < conversion->n_weights; i++)
        assign(conversion, &conversion->weight[i]);
}
