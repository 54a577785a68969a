/*
 * llama.c - the Llama family (weights, graph) and the architecture "llama" of Llama 2 and 3.
 *
 * The graph has pre-norm decoder layers with RoPE, grouped-query attention and a gated feed-forward
 * network.  The related architectures (mistral.c, qwen2.c, qwen3.c) differ in the biases of
 * linears, in sliding windows, and in norms of query and key heads.
 *
 * Source: Touvron et al. 2023; the checkpoints' own configuration classes in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/embedding.h"
#include "runtime/families/llama.h"

#include "runtime/mem.h"
#include "runtime/graph/rope.h"

/* ---- Weights ------------------------------------------------------------------------------ */

#define QUERIES "heads*head_size"
#define KEYS "kv_heads*head_size"

/* clang-format off */
static const ft_weight_rule weights[] = {
    { "embed.word", "vocabulary, hidden", .role = FT_ROLE_TABLE },

    { "layer.*.attn.norm.weight", "hidden", .role = FT_ROLE_VECTOR },
    { "layer.*.attn.q", QUERIES ", hidden", .role = FT_ROLE_LINEAR, .bias = "qkv_bias" },
    { "layer.*.attn.k", KEYS ", hidden", .role = FT_ROLE_LINEAR, .bias = "qkv_bias" },
    { "layer.*.attn.v", KEYS ", hidden", .role = FT_ROLE_LINEAR, .bias = "qkv_bias" },
    { "layer.*.attn.q_norm.weight", "head_size", .role = FT_ROLE_VECTOR, .when = "qk_norm" },
    { "layer.*.attn.k_norm.weight", "head_size", .role = FT_ROLE_VECTOR, .when = "qk_norm" },
    { "layer.*.attn.out", "hidden, " QUERIES, .role = FT_ROLE_LINEAR, .bias = "out_bias" },
    { "layer.*.ffn.norm.weight", "hidden", .role = FT_ROLE_VECTOR },
    { "layer.*.ffn.gate", "ffn, hidden", .role = FT_ROLE_LINEAR, .bias = "ffn_bias" },
    { "layer.*.ffn.up", "ffn, hidden", .role = FT_ROLE_LINEAR, .bias = "ffn_bias" },
    { "layer.*.ffn.down", "hidden, ffn", .role = FT_ROLE_LINEAR, .bias = "ffn_bias" },

    { "norm.weight", "hidden", .role = FT_ROLE_VECTOR },
    { "head.weight", "vocabulary, hidden", .role = FT_ROLE_DENSE, .when = "untied" },
    FT_DENSE_LAYERS,
};
/* clang-format on */

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
    if (c->qk_norm) {
        q = ft_head_norm(g, "attn.q_norm", q, c->heads, c->eps);
        k = ft_head_norm(g, "attn.k_norm", k, c->kv_heads, c->eps);
    }
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

/* The LM head and the sampled token. */
static void build_tokens(ft_graph *g, const ft_config *c, int x, int ids)
{
    x = ft_gather_rows(g, "selected", x);
    x = c->tied ? ft_linear_shared_weight(g, "head", x, "embed.word") : ft_linear(g, "head", x);
    ft_graph_output(g, "logits", x);
    ft_sample(g, "token", x, ids);
}

static void build(ft_graph *g, const ft_config *c)
{
    int ids = ft_graph_input(g, "input_ids", FT_BATCH_IDS);
    int x = ft_embed_tokens(g, "embed", ids);
    for (int i = 0; i < c->layers; i++) {
        ft_graph_scope(g, "layer.%d", i);
        x = build_layer(g, c, i, x);
    }
    ft_graph_scope(g, "%s", "");
    x = ft_rms_norm(g, "norm", x, c->eps);
    ft_graph_output(g, c->rotated ? "rotated_hidden_state" : "last_hidden_state", x);
    if (c->embedding != FT_EMBEDDING_NONE)
        ft_build_embedding(g, c, x);
    else
        build_tokens(g, c, x, ids);
}

const ft_family ft_family_llama = {
    .name = "llama",
    .kind = FT_KIND_DECODER,
    .weight = weights,
    .nweight = FT_COUNT(weights),
    .build = build,
};

/* ---- Checkpoints -------------------------------------------------------------------------- */

#define LAYER(source) "~layers.*." source

static const ft_weight_source sources[] = {
    { "embed.word", "~embed_tokens.weight" },
    { "layer.*.attn.norm.weight", LAYER("input_layernorm.weight") },
    { "layer.*.attn.q", LAYER("self_attn.q_proj") },
    { "layer.*.attn.k", LAYER("self_attn.k_proj") },
    { "layer.*.attn.v", LAYER("self_attn.v_proj") },
    { "layer.*.attn.out", LAYER("self_attn.o_proj") },
    { "layer.*.ffn.norm.weight", LAYER("post_attention_layernorm.weight") },
    { "layer.*.ffn.gate", LAYER("mlp.gate_proj") },
    { "layer.*.ffn.up", LAYER("mlp.up_proj") },
    { "layer.*.ffn.down", LAYER("mlp.down_proj") },
    { "norm.weight", "~norm.weight" },
    { "head.weight", "lm_head.weight" },
};

/* A null num_key_value_heads means num_attention_heads. */
static const ft_config_rule decoder_rules[] = {
    { "num_hidden_layers", FT_KEY_COUNT, FT_FIELD(layers), NULL },
    { "hidden_size", FT_KEY_COUNT, FT_FIELD(hidden), NULL },
    { "num_attention_heads", FT_KEY_COUNT, FT_FIELD(heads), NULL },
    { "num_key_value_heads", FT_KEY_OPTIONAL, FT_FIELD(kv_heads), "null" },
    { "head_dim", FT_KEY_OPTIONAL, FT_FIELD(head_size), "null" },
    { "intermediate_size", FT_KEY_COUNT, FT_FIELD(ffn), NULL },
    { "vocab_size", FT_KEY_COUNT, FT_FIELD(vocabulary), NULL },
    { "max_position_embeddings", FT_KEY_COUNT, FT_FIELD(positions), NULL },
    { "rms_norm_eps", FT_KEY_EPS, FT_FIELD(eps), "1e-6" },
    { "hidden_act", FT_KEY_ACTIVATION, FT_FIELD(activation), "\"silu\"" },
    { "tie_word_embeddings", FT_KEY_FLAG, FT_FIELD(tied), "false" },
    { "rope_parameters", FT_KEY_ROPE, 0, NULL },
    { "rope_scaling", FT_KEY_ROPE, 0, NULL },
    { "rope_theta", FT_KEY_ROPE, 0, NULL },
    { "partial_rotary_factor", FT_KEY_FIXED, 0, "1" },
    { "is_encoder_decoder", FT_KEY_FIXED, 0, "false" },
    { "add_cross_attention", FT_KEY_FIXED, 0, "false" },
    { "pruned_heads", FT_KEY_FIXED, 0, "{}" },
    { "attention_dropout", FT_KEY_IGNORED, 0, NULL },
    { "max_sequence_length", FT_KEY_IGNORED, 0, NULL },
    { "pad_token_id", FT_KEY_IGNORED, 0, NULL },
};

const ft_architecture ft_llama_decoder = {
    .rule = decoder_rules,
    .nrule = FT_COUNT(decoder_rules),
    .source = sources,
    .nsource = FT_COUNT(sources),
};

/*
 * pretraining_tp split GEMMs into slices in old versions of transformers, with the same sum.
 */
static const ft_config_rule rules[] = {
    { "attention_bias", FT_KEY_FLAG, FT_FIELD(out_bias), "false" },
    { "mlp_bias", FT_KEY_FLAG, FT_FIELD(ffn_bias), "false" },
    { "sliding_window", FT_KEY_FIXED, 0, "null" },
    { "layer_types", FT_KEY_FIXED, 0, "null" },
    { "pretraining_tp", FT_KEY_IGNORED, 0, NULL },
    { "is_llama_config", FT_KEY_IGNORED, 0, NULL },
};

static const char *const classes[] = { "LlamaForCausalLM", NULL };

const ft_architecture ft_architecture_llama = {
    .model_type = "llama",
    .family = &ft_family_llama,
    .base = &ft_llama_decoder,
    .rule = rules,
    .nrule = FT_COUNT(rules),
    .classes = classes,
    .base_model = "LlamaModel",
    .prefix = "model.",
};
