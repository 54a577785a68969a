/*
 * qwen2.c - Qwen2: Llama with biases of the Q, K and V projections, and a sliding window in the
 * last layers.
 *
 * Source: Yang et al. 2024; the checkpoints' own configuration class in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/llama.h"

#include "runtime/mem.h"

static const ft_config_rule rules[] = {
    { "num_key_value_heads", FT_KEY_OPTIONAL, FT_FIELD(kv_heads), "32" },
    { "use_sliding_window", FT_KEY_WINDOW, 0, NULL },
    { "sliding_window", FT_KEY_WINDOW, 0, NULL },
    { "max_window_layers", FT_KEY_WINDOW, 0, NULL },
    { "layer_types", FT_KEY_WINDOW, 0, NULL },
    { "attention_bias", FT_KEY_FIXED, 0, "true" },
    { "mlp_bias", FT_KEY_FIXED, 0, "false" },
};

static const char *const classes[] = { "Qwen2ForCausalLM", NULL };

const ft_architecture ft_architecture_qwen2 = {
    .model_type = "qwen2",
    .family = &ft_family_llama,
    .base = &ft_llama_decoder,
    .rule = rules,
    .nrule = FT_COUNT(rules),
    .classes = classes,
    .base_model = "Qwen2Model",
    .prefix = "model.",
    .qkv_bias = true,
};
