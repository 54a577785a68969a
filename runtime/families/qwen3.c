/*
 * qwen3.c - Qwen3: Llama with RMS norms of query and key heads before RoPE, an explicit head size,
 * and a sliding window in the last layers.
 *
 * Source: Yang et al. 2025; the checkpoints' own configuration class in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/llama.h"

#include "runtime/mem.h"

static const ft_weight_source sources[] = {
    { "layer.*.attn.q_norm.weight", "~layers.*.self_attn.q_norm.weight" },
    { "layer.*.attn.k_norm.weight", "~layers.*.self_attn.k_norm.weight" },
};

static const ft_config_rule rules[] = {
    { "num_key_value_heads", FT_KEY_OPTIONAL, FT_FIELD(kv_heads), "32" },
    { "head_dim", FT_KEY_OPTIONAL, FT_FIELD(head_size), "128" },
    { "attention_bias", FT_KEY_FLAG, FT_FIELD(out_bias), "false" },
    { "mlp_bias", FT_KEY_FIXED, 0, "false" },
    { "use_sliding_window", FT_KEY_WINDOW, 0, NULL },
    { "sliding_window", FT_KEY_WINDOW, 0, NULL },
    { "max_window_layers", FT_KEY_WINDOW, 0, NULL },
    { "layer_types", FT_KEY_WINDOW, 0, NULL },
};

static const char *const classes[] = { "Qwen3ForCausalLM", NULL };

const ft_architecture ft_architecture_qwen3 = {
    .model_type = "qwen3",
    .family = &ft_family_llama,
    .base = &ft_llama_decoder,
    .rule = rules,
    .nrule = FT_COUNT(rules),
    .source = sources,
    .nsource = FT_COUNT(sources),
    .classes = classes,
    .base_model = "Qwen3Model",
    .prefix = "model.",
    .qk_norm = true,
};
