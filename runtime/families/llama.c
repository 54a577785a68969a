/*
 * llama.c - Llama 2 and 3, and its near kin: Mistral, Qwen2.
 *
 * One graph serves all: pre-norm decoder layers with rotary positions, queries that share keys and
 * values, and a gated feed-forward.  The kin differ in which products have a bias and in how far
 * back a token sees.
 *
 * Source: Touvron et al. 2023; the checkpoints' own configuration classes in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/families.h"

#include "runtime/mem.h"
#include "runtime/graph/rope.h"

#include <stddef.h>

/* ---- Names -------------------------------------------------------------------------------- */

/* The same in checkpoints of Llama, Mistral and Qwen2. */
/* clang-format off */
#define ALIKE(name) { name, name, name }
#define LAYER(name) ALIKE("model.layers.*." name)

static const ft_weight_rule weights[] = {
    { "embed.word", "V,H", FT_ROLE_TABLE, false, 0, ALIKE("model.embed_tokens.weight") },

    { "layer.*.attn.norm.weight", "H", FT_ROLE_VECTOR, false, 0, LAYER("input_layernorm.weight") },
    { "layer.*.attn.q", "Q,H", FT_ROLE_LINEAR, 'B', 0, LAYER("self_attn.q_proj") },
    { "layer.*.attn.k", "G,H", FT_ROLE_LINEAR, 'B', 0, LAYER("self_attn.k_proj") },
    { "layer.*.attn.v", "G,H", FT_ROLE_LINEAR, 'B', 0, LAYER("self_attn.v_proj") },
    { "layer.*.attn.out", "H,Q", FT_ROLE_LINEAR, 'O', 0, LAYER("self_attn.o_proj") },
    { "layer.*.ffn.norm.weight", "H", FT_ROLE_VECTOR, false, 0,
      LAYER("post_attention_layernorm.weight") },
    { "layer.*.ffn.gate", "F,H", FT_ROLE_LINEAR, 'M', 0, LAYER("mlp.gate_proj") },
    { "layer.*.ffn.up", "F,H", FT_ROLE_LINEAR, 'M', 0, LAYER("mlp.up_proj") },
    { "layer.*.ffn.down", "H,F", FT_ROLE_LINEAR, 'M', 0, LAYER("mlp.down_proj") },

    { "norm.weight", "H", FT_ROLE_VECTOR, false, 0, ALIKE("model.norm.weight") },
    { "head.weight", "V,H", FT_ROLE_DENSE, false, 'U', ALIKE("lm_head.weight") },
};
/* clang-format on */

/* ---- Configuration ------------------------------------------------------------------------ */

#define FIELD(member) offsetof(ft_config, member)

/*
 * What all of them have.  `kv` is what the class assumes where the checkpoint does not say how many
 * heads keys and values have; null is as many as queries have.
 */
/* clang-format off */
#define DECODER(kv)                                                                                \
    { "num_hidden_layers", FT_KEY_COUNT, FIELD(layers), NULL },                                    \
    { "hidden_size", FT_KEY_COUNT, FIELD(hidden), NULL },                                          \
    { "num_attention_heads", FT_KEY_COUNT, FIELD(heads), NULL },                                   \
    { "num_key_value_heads", FT_KEY_OPTIONAL, FIELD(kv_heads), kv },                               \
    { "head_dim", FT_KEY_OPTIONAL, FIELD(head_size), "null" },                                     \
    { "intermediate_size", FT_KEY_COUNT, FIELD(ffn), NULL },                                       \
    { "vocab_size", FT_KEY_COUNT, FIELD(vocabulary), NULL },                                       \
    { "max_position_embeddings", FT_KEY_COUNT, FIELD(positions), NULL },                           \
    { "rms_norm_eps", FT_KEY_EPS, FIELD(eps), "1e-6" },                                            \
    { "hidden_act", FT_KEY_ACTIVATION, FIELD(activation), "\"silu\"" },                            \
    { "tie_word_embeddings", FT_KEY_FLAG, FIELD(tied), "false" },                                  \
    { "rope_parameters", FT_KEY_ROPE, 0, NULL },                                                   \
    { "rope_scaling", FT_KEY_ROPE, 0, NULL },                                                      \
    { "rope_theta", FT_KEY_ROPE, 0, NULL },                                                        \
    { "partial_rotary_factor", FT_KEY_FIXED, 0, "1" },                                           \
    { "is_encoder_decoder", FT_KEY_FIXED, 0, "false" },                                          \
    { "add_cross_attention", FT_KEY_FIXED, 0, "false" },                                         \
    { "pruned_heads", FT_KEY_FIXED, 0, "{}" },                                                   \
    { "attention_dropout", FT_KEY_IGNORED, 0, NULL },                                                  \
    { "max_sequence_length", FT_KEY_IGNORED, 0, NULL },                                                \
    { "pad_token_id", FT_KEY_IGNORED, 0, NULL }
/* clang-format on */

/* pretraining_tp cut products into slices in old versions of transformers; their sum is the same.
 */
static const ft_config_rule llama_rules[] = {
    DECODER("null"),
    { "attention_bias", FT_KEY_FLAG, FIELD(out_bias), "false" },
    { "mlp_bias", FT_KEY_FLAG, FIELD(ffn_bias), "false" },
    { "sliding_window", FT_KEY_FIXED, 0, "null" },
    { "layer_types", FT_KEY_FIXED, 0, "null" },
    { "pretraining_tp", FT_KEY_IGNORED, 0, NULL },
    { "is_llama_config", FT_KEY_IGNORED, 0, NULL },
};

/* Its code has no biases, and the same window in every layer. */
static const ft_config_rule mistral_rules[] = {
    DECODER("8"),
    { "sliding_window", FT_KEY_OPTIONAL, FIELD(window), "4096" },
    { "layer_types", FT_KEY_FIXED, 0, "null" },
    { "attention_bias", FT_KEY_FIXED, 0, "false" },
    { "mlp_bias", FT_KEY_FIXED, 0, "false" },
};

static const ft_config_rule qwen2_rules[] = {
    DECODER("32"),
    { "use_sliding_window", FT_KEY_WINDOW, 0, NULL },
    { "sliding_window", FT_KEY_WINDOW, 0, NULL },
    { "max_window_layers", FT_KEY_WINDOW, 0, NULL },
    { "layer_types", FT_KEY_WINDOW, 0, NULL },
    { "attention_bias", FT_KEY_FIXED, 0, "true" },
    { "mlp_bias", FT_KEY_FIXED, 0, "false" },
};

static const char *const llama_architectures[] = { "LlamaForCausalLM", NULL };
static const char *const mistral_architectures[] = { "MistralForCausalLM", NULL };
static const char *const qwen2_architectures[] = { "Qwen2ForCausalLM", NULL };

static const ft_hf_arch hf_archs[] = {
    {
        .model_type = "llama",
        .prefix = "",
        .architectures = llama_architectures,
        .rule = llama_rules,
        .nrule = FT_COUNT(llama_rules),
        .base_model = "LlamaModel",
    },
    {
        .model_type = "mistral",
        .prefix = "",
        .architectures = mistral_architectures,
        .rule = mistral_rules,
        .nrule = FT_COUNT(mistral_rules),
        .base_model = "MistralModel",
    },
    {
        .model_type = "qwen2",
        .prefix = "",
        .architectures = qwen2_architectures,
        .rule = qwen2_rules,
        .nrule = FT_COUNT(qwen2_rules),
        .base_model = "Qwen2Model",
        .qkv_bias = true,
    },
};

/* ---- Graph -------------------------------------------------------------------------------- */

static int build_attention(ft_graph *g, const ft_config *c, int layer, int x)
{
    bool is_dynamic = c->rope == FT_ROPE_DYNAMIC;
    const ft_attention_params heads = {
        .heads = c->heads,
        .kv_heads = c->kv_heads,
        .window = layer >= c->window_first_layer ? c->window : 0,
        .frequencies = FT_ROPE_WEIGHT,
        .rope_positions = is_dynamic ? c->rope_positions : 0,
        .rope_theta = is_dynamic ? (float) c->rope_theta : 0.0f,
        .rope_factor = is_dynamic ? (float) c->rope_factor : 0.0f,
    };
    int q = ft_linear(g, "attn.q", x);
    int k = ft_linear(g, "attn.k", x);
    int v = ft_linear(g, "attn.v", x);
    return ft_linear(g, "attn.out", ft_cached_attention(g, "attn", q, k, v, &heads));
}

static int build_layer(ft_graph *g, const ft_config *c, int layer, int x)
{
    int a = build_attention(g, c, layer, ft_rms_norm(g, "attn.norm", x, c->eps));
    x = ft_add_residual(g, "attn.sum", a, x);
    int f = ft_rms_norm(g, "ffn.norm", x, c->eps);
    int gate = ft_linear(g, "ffn.gate", f);
    int up = ft_linear(g, "ffn.up", f);
    f = ft_gated_activation(g, "ffn.act", gate, up, c->activation);
    return ft_add_residual(g, "ffn.sum", ft_linear(g, "ffn.down", f), x);
}

static void build(ft_graph *g, const ft_config *c)
{
    int ids = ft_graph_input(g, "input_ids");
    int x = ft_embed_tokens(g, "embed", ids);
    for (int i = 0; i < c->layers; i++) {
        ft_graph_scope(g, "layer.%d", i);
        x = build_layer(g, c, i, x);
    }
    ft_graph_scope(g, "%s", "");
    x = ft_rms_norm(g, "norm", x, c->eps);
    ft_graph_output(g, "last_hidden_state", x);
    x = ft_gather_rows(g, "selected", x);
    x = c->tied ? ft_linear_shared_weight(g, "head", x, "embed.word") : ft_linear(g, "head", x);
    ft_graph_output(g, "logits", x);
    ft_sample(g, "token", x, ids);
}

const ft_family ft_family_llama = {
    .name = "llama",
    .kind = FT_KIND_DECODER,
    .hf_arch = hf_archs,
    .num_hf_archs = FT_COUNT(hf_archs),
    .weight = weights,
    .nweight = FT_COUNT(weights),
    .build = build,
};
