/*
 * model_config_embedding.c - embeddings in a configuration: names of poolings, Dense layers, their
 * form in the manifest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/model_config_members.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- Pooling -------------------------------------------------------------------------------- */

static const char *const embeddings[] = {
    [FT_EMBEDDING_NONE] = "none",
    [FT_EMBEDDING_FIRST] = "first",
    [FT_EMBEDDING_MEAN] = "mean",
    [FT_EMBEDDING_LAST] = "last",
    [FT_EMBEDDING_MAX] = "max",
    [FT_EMBEDDING_MEAN_SQRT_LEN] = "mean_sqrt_len",
    [FT_EMBEDDING_WEIGHTED_MEAN] = "weighted_mean",
};

const char *ft_embedding_name(ft_embedding embedding)
{
    return embeddings[embedding];
}

bool ft_embedding_parse(const char *name, ft_embedding *out)
{
    *out = FT_EMBEDDING_NONE;
    for (size_t i = 0; name != NULL && i < FT_COUNT(embeddings); i++)
        if (strcmp(embeddings[i], name) == 0) {
            *out = (ft_embedding) i;
            return true;
        }
    return false;
}

/* ---- Dense layers --------------------------------------------------------------------------- */

static int32_t input_size(const ft_config *config, int layer)
{
    return layer == 0 ? config->hidden : config->dense[layer - 1].size;
}

int32_t ft_config_embedding_size(const ft_config *config)
{
    return config->embedding == FT_EMBEDDING_NONE ? 0 : input_size(config, config->num_dense);
}

int64_t ft_config_dense_factor(const ft_config *config, const char *name)
{
    static const char *const prefixes[] = { "dense_size_", "dense_input_", "dense_bias_" };
    for (size_t i = 0; i < FT_COUNT(prefixes); i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], length) != 0)
            continue;
        int layer = atoi(name + length);
        return layer >= config->num_dense ? 0
               : i == 0                   ? config->dense[layer].size
               : i == 1                   ? input_size(config, layer)
                                          : config->dense[layer].bias;
    }
    return -1;
}

ft_status ft_config_check_embedding(const ft_config *config, const char *label, ft_error *err)
{
    bool has_embedding = config->embedding != FT_EMBEDDING_NONE;
    if (!has_embedding && config->normalize)
        return ft_fail(err, FT_EFORMAT, "%s: config: no embedding to normalize", label);
    if (!has_embedding && config->num_dense > 0)
        return ft_fail(err, FT_EFORMAT, "%s: config: no embedding for dense layers", label);
    if (config->num_dense > 0 && config->kind != FT_KIND_ENCODER && config->kind != FT_KIND_DECODER)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: dense layers, but neither a text encoder nor a decoder", label);
    return FT_OK;
}

/* ---- Manifest ------------------------------------------------------------------------------- */

bool ft_config_put_dense(json_t *json, const ft_config *config)
{
    if (config->num_dense == 0)
        return true;
    json_t *list = json_array();
    bool fine = list != NULL;
    for (int i = 0; i < config->num_dense; i++) {
        const ft_dense *dense = &config->dense[i];
        json_t *layer = json_pack("{s:i, s:b, s:s, s:b}", "size", (int) dense->size, "bias",
                                  dense->bias, "activation", ft_activation_name(dense->activation),
                                  "normalize_input", dense->normalize_input);
        fine = json_array_append_new(list, layer) == 0 && fine;
    }
    return json_object_set_new(json, "dense", list) == 0 && fine;
}

static ft_status read_layer(ft_dense *out, const ft_json_reader *in)
{
    int32_t low, high;
    const char *activation;
    ft_config_int_bounds(offsetof(ft_config, hidden), &low, &high);
    FT_TRY(ft_json_to_int32(in, "size", json_object_get(in->json, "size"), low, high, &out->size));
    FT_TRY(ft_json_read_bool(in, "bias", &out->bias));
    FT_TRY(ft_json_read_bool(in, "normalize_input", &out->normalize_input));
    FT_TRY(ft_json_read_string(in, "activation", &activation));
    if (ft_activation_parse(activation, &out->activation))
        return FT_OK;
    return ft_json_fail_member(in, "activation", "a name that this version knows");
}

ft_status ft_config_read_dense(ft_config *out, const ft_json_reader *in)
{
    json_t *list;
    if (json_object_get(in->json, "dense") == NULL)
        return FT_OK;
    FT_TRY(ft_json_read_array(in, "dense", &list));
    if (json_array_size(list) > FT_MAX_DENSE)
        return ft_json_fail(in, FT_EFORMAT, "%sdense: %zu layers, expected at most %d", in->path,
                            json_array_size(list), FT_MAX_DENSE);
    for (size_t i = 0; i < json_array_size(list); i++) {
        ft_json_reader layer = ft_json_read_element(in, "dense", i);
        FT_TRY(read_layer(&out->dense[out->num_dense++], &layer));
    }
    return FT_OK;
}
