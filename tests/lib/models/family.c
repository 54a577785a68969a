/*
 * family.c - see family.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/family.h"

#include "runtime/tensor.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

char *weights_text(const ft_family *family, const ft_architecture *architecture,
                   const ft_config *config)
{
    ft_weight_spec *spec;
    size_t count, bytes;
    ft_error err;
    char *text = NULL, shape[FT_SHAPE_TEXT];
    if (ft_family_weights(family, architecture, config, &spec, &count, &err) != FT_OK)
        bail_out("%s", err.text);
    FILE *file = open_memstream(&text, &bytes);
    for (size_t i = 0; file != NULL && i < count; i++)
        fprintf(file, "%s %s %s%s%s\n", spec[i].name, ft_role_name(spec[i].role),
                ft_shape_text(shape, spec[i].ndim, spec[i].dim), spec[i].source[0] ? " " : "",
                spec[i].source);
    if (file == NULL || fclose(file) != 0)
        bail_out("out of memory: text");
    free(spec);
    return text;
}

static bool same_sizes(const ft_config *a, const ft_config *b)
{
    return a->kind == b->kind && a->layers == b->layers && a->hidden == b->hidden &&
           a->heads == b->heads && a->ffn == b->ffn && a->vocabulary == b->vocabulary &&
           a->positions == b->positions && a->types == b->types && a->labels == b->labels &&
           a->problem_type == b->problem_type && a->position_offset == b->position_offset &&
           a->padding_id == b->padding_id && a->eps == b->eps && a->activation == b->activation &&
           a->pooler == b->pooler && a->head == b->head && a->embedding == b->embedding &&
           a->normalize == b->normalize;
}

static bool same_decoder(const ft_config *a, const ft_config *b)
{
    return a->kv_heads == b->kv_heads && a->head_size == b->head_size && a->window == b->window &&
           a->window_first_layer == b->window_first_layer &&
           a->rope_positions == b->rope_positions && a->rope == b->rope &&
           a->rope_theta == b->rope_theta && a->rope_factor == b->rope_factor &&
           a->rope_low == b->rope_low && a->rope_high == b->rope_high &&
           a->qkv_bias == b->qkv_bias && a->out_bias == b->out_bias && a->ffn_bias == b->ffn_bias &&
           a->qk_norm == b->qk_norm && a->rotated == b->rotated && a->tied == b->tied;
}

static bool same_source(const ft_config *a, const ft_config *b)
{
    return a->sinusoids == b->sinusoids && a->encoder_layers == b->encoder_layers &&
           a->encoder_heads == b->encoder_heads && a->encoder_ffn == b->encoder_ffn &&
           a->encoder_head_size == b->encoder_head_size &&
           a->decoder_start_id == b->decoder_start_id && a->pad_id == b->pad_id &&
           a->forced_bos_id == b->forced_bos_id && a->forced_eos_id == b->forced_eos_id &&
           a->num_banned == b->num_banned && memcmp(a->banned, b->banned, sizeof a->banned) == 0 &&
           a->scale_embeddings == b->scale_embeddings && a->head_bias == b->head_bias;
}

bool config_survives(const ft_config *config)
{
    ft_config read;
    json_t *json = ft_config_to_json(config);
    char *text = json_dumps(json, JSON_SORT_KEYS);
    json_t *again = json_loads(text, 0, NULL);
    bool same = ft_config_from_json(&read, again, config->kind, "manifest", NULL) == FT_OK &&
                same_sizes(&read, config) && same_decoder(&read, config) &&
                same_source(&read, config);
    json_decref(json);
    json_decref(again);
    free(text);
    return same;
}

void config_refused(const ft_config *good, const char *patch, const char *why)
{
    ft_config config;
    ft_error err = { 0 };
    json_t *json = ft_config_to_json(good), *changes = json_loads(patch, 0, NULL), *value;
    const char *key;
    if (changes == NULL)
        bail_out("%s is not JSON", patch);
    json_object_foreach(changes, key, value)
    {
        if (json_is_null(value))
            json_object_del(json, key);
        else
            json_object_set(json, key, value);
    }
    ft_status status = ft_config_from_json(&config, json, good->kind, "m.ft", &err);
    char expected[256];
    snprintf(expected, sizeof expected, "m.ft: config: %s", why);
    is_str(status == FT_EFORMAT ? err.text : "no FT_EFORMAT", expected,
           "a configuration with %s is refused with its reason", patch);
    json_decref(json);
    json_decref(changes);
}
