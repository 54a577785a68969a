/*
 * config.c - fuzz target: arbitrary text parsed as model configurations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/hf_config.h"
#include "convert/config/generation.h"
#include "convert/config/sentence_transformers.h"
#include "runtime/text/embedding_prompts.h"
#include "runtime/graph/rope.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* Every problem has a code and names the file. */
static void check_problems(const ft_messages *problems, const char *label)
{
    for (size_t i = 0; i < problems->count && i < FT_MAX_MESSAGES; i++)
        require(problems->message[i].code != FT_OK &&
                strncmp(problems->message[i].text, label, strlen(label)) == 0);
}

/* Every RoPE frequency is between 0 and 1. */
static void check_frequencies(const ft_config *config)
{
    float frequency[64];
    ft_rope_frequencies_at(frequency, config, 1 << 24);
    for (int i = 0; i < config->head_size / 2; i++)
        require(frequency[i] >= 0.0f && frequency[i] <= 1.0f);
}

/* An accepted configuration can be stored and expanded to weights that all have a source. */
static void check_origin(const ft_hf_model *origin)
{
    ft_config again;
    ft_error err;
    json_t *json = ft_config_to_json(&origin->config);
    require(json != NULL &&
            ft_config_from_json(&again, json, origin->config.kind, "fuzz", &err) == FT_OK);
    json_decref(json);
    const ft_config *config = &origin->config;
    require(again.hidden == config->hidden && again.labels == config->labels &&
            again.position_offset == config->position_offset && again.rope == config->rope &&
            again.kv_heads == config->kv_heads && again.window == config->window &&
            again.rope_factor == config->rope_factor && again.tied == config->tied &&
            again.sinusoids == config->sinusoids &&
            again.decoder_start_id == config->decoder_start_id &&
            again.encoder_ffn == config->encoder_ffn && again.num_banned == config->num_banned);
    if (config->rope != FT_ROPE_NONE && config->head_size <= 128)
        check_frequencies(config);
    ft_weight_spec *spec;
    size_t count;
    if (origin->config.layers > 20)
        return; /* nothing new, only slow */
    require(ft_family_weights(origin->family, origin->architecture, &origin->config, &spec, &count,
                              &err) == FT_OK);
    for (size_t i = 0; i < count; i++)
        require(spec[i].source[0] != '\0' && spec[i].dim[0] > 0);
    free(spec);
}

static void read_origin(const uint8_t *data, size_t size)
{
    static const char *const ignored[] = { "mystery", NULL };
    ft_messages problems = { .count = 0 };
    ft_hf_model origin;
    ft_status status = ft_hf_model_read(&origin, data, size, "fuzz", ignored, &problems);
    check_problems(&problems, "fuzz: ");
    require((status == FT_OK) == (problems.count == 0));
    if (status != FT_OK)
        return;
    check_origin(&origin);
    if (!ft_config_is_encoder_decoder(&origin.config))
        return;
    const ft_text_source file = { "fuzz", (const char *) data, size };
    ft_generation_config_read(&origin, &file, &file, ignored, &problems);
    check_problems(&problems, "fuzz: ");
    if (problems.count == 0)
        check_origin(&origin);
}

static void read_sentence(const uint8_t *data, size_t size)
{
    ft_messages problems = { .count = 0 };
    ft_modules modules;
    ft_modules_parse(&modules, data, size, &problems);
    check_problems(&problems, "modules.json: ");
    require(problems.count > 0 || (modules.pooling[0] != '\0' && modules.pooling[0] != '.' &&
                                   strchr(modules.pooling, '/') == NULL));

    problems.count = 0;
    ft_config config = { .hidden = 8 };
    ft_pooling_parse(&config, data, size, "fuzz", &problems);
    check_problems(&problems, "fuzz: ");
    require(problems.count > 0 || config.embedding != FT_EMBEDDING_NONE);

    ft_embedding_prompts prompts;
    ft_error err;
    if (ft_embedding_prompts_parse(&prompts, "fuzz", (const char *) data, size, &err) == FT_OK)
        require(prompts.default_text != NULL);
    else
        require(strncmp(err.text, "fuzz: ", 6) == 0);
    ft_embedding_prompts_fini(&prompts);

    problems.count = 0;
    config = (ft_config){ .hidden = 8, .embedding = FT_EMBEDDING_MEAN };
    ft_dense_parse(&config, data, size, "fuzz", &problems);
    check_problems(&problems, "fuzz: ");
    require(problems.count > 0 || ft_config_embedding_size(&config) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_origin(data, size);
    read_sentence(data, size);
    return 0;
}
