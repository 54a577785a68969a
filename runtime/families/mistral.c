/*
 * mistral.c - Mistral: Llama without biases, with the same sliding window in all layers.
 *
 * Source: Jiang et al. 2023; the checkpoints' own configuration class in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/llama.h"

#include "runtime/mem.h"

static const ft_config_rule rules[] = {
    { "num_key_value_heads", FT_KEY_OPTIONAL, FT_FIELD(kv_heads), "8" },
    { "sliding_window", FT_KEY_OPTIONAL, FT_FIELD(window), "4096" },
    { "layer_types", FT_KEY_FIXED, 0, "null" },
    { "attention_bias", FT_KEY_FIXED, 0, "false" },
    { "mlp_bias", FT_KEY_FIXED, 0, "false" },
};

static const char *const classes[] = { "MistralForCausalLM", NULL };

const ft_architecture ft_architecture_mistral = {
    .model_type = "mistral",
    .family = &ft_family_llama,
    .base = &ft_llama_decoder,
    .rule = rules,
    .nrule = FT_COUNT(rules),
    .classes = classes,
    .base_model = "MistralModel",
    .prefix = "model.",
};
