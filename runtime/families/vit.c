/*
 * vit.c - ViT and DeiT: encoders of image patches.
 *
 * Each patch becomes a token.  The patch embedding is a convolution whose stride equals its kernel,
 * computed as a GEMM.  Pre-norm encoder layers with learned position embeddings follow.  A sequence
 * starts with the class token and, in DeiT, the distillation token.
 *
 * Source: Dosovitskiy et al. 2020; Touvron et al. 2020; the checkpoints' own configuration classes
 * in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/families.h"

#include "runtime/mem.h"

/* ---- Weights -------------------------------------------------------------------------------- */

#define ATTENTION "heads*head_size, hidden"
#define PATCH "channels*patch_height*patch_width"

/* clang-format off */
static const ft_weight_rule weights[] = {
    { "embed.patch", "hidden, " PATCH " / hidden, channels, patch_height, patch_width",
      .role = FT_ROLE_LINEAR, .bias = FT_ALWAYS },
    { "embed.position", "positions, hidden / 1, positions, hidden", .role = FT_ROLE_TABLE },
    { "embed.class", "hidden / 1, 1, hidden", .role = FT_ROLE_VECTOR },
    { "embed.distillation", "hidden / 1, 1, hidden", .role = FT_ROLE_VECTOR,
      .when = "distillation" },

    { "layer.*.attn.norm", "hidden", .role = FT_ROLE_VECTOR, .bias = FT_ALWAYS },
    { "layer.*.attn.q", ATTENTION, .role = FT_ROLE_LINEAR, .bias = "qkv_bias" },
    { "layer.*.attn.k", ATTENTION, .role = FT_ROLE_LINEAR, .bias = "qkv_bias" },
    { "layer.*.attn.v", ATTENTION, .role = FT_ROLE_LINEAR, .bias = "qkv_bias" },
    { "layer.*.attn.out", "hidden, heads*head_size", .role = FT_ROLE_LINEAR, .bias = FT_ALWAYS },
    { "layer.*.ffn.norm", "hidden", .role = FT_ROLE_VECTOR, .bias = FT_ALWAYS },
    { "layer.*.ffn.up", "ffn, hidden", .role = FT_ROLE_LINEAR, .bias = FT_ALWAYS },
    { "layer.*.ffn.down", "hidden, ffn", .role = FT_ROLE_LINEAR, .bias = FT_ALWAYS },

    { "norm", "hidden", .role = FT_ROLE_VECTOR, .bias = FT_ALWAYS },
    { "pooler", "hidden, hidden", .role = FT_ROLE_DENSE, .bias = FT_ALWAYS, .when = "pooler" },
    { "classifier", "labels, hidden", .role = FT_ROLE_DENSE, .bias = FT_ALWAYS, .when = "labels" },
};
/* clang-format on */

#define LAYER(source) "~encoder.layer.*." source

static const ft_weight_source sources[] = {
    { "embed.patch", "~embeddings.patch_embeddings.projection" },
    { "embed.position", "~embeddings.position_embeddings" },
    { "embed.class", "~embeddings.cls_token" },
    { "layer.*.attn.norm", LAYER("layernorm_before") },
    { "layer.*.attn.q", LAYER("attention.attention.query") },
    { "layer.*.attn.k", LAYER("attention.attention.key") },
    { "layer.*.attn.v", LAYER("attention.attention.value") },
    { "layer.*.attn.out", LAYER("attention.output.dense") },
    { "layer.*.ffn.norm", LAYER("layernorm_after") },
    { "layer.*.ffn.up", LAYER("intermediate.dense") },
    { "layer.*.ffn.down", LAYER("output.dense") },
    { "norm", "~layernorm" },
    { "pooler", "~pooler.dense" },
    { "classifier", "classifier" },
};

static const ft_weight_source deit_sources[] = {
    { "embed.distillation", "~embeddings.distillation_token" },
};

/* ---- Configuration ------------------------------------------------------------------------ */

static const ft_config_rule rules[] = {
    { "num_hidden_layers", FT_KEY_COUNT, FT_FIELD(layers), "12" },
    { "hidden_size", FT_KEY_COUNT, FT_FIELD(hidden), "768" },
    { "num_attention_heads", FT_KEY_COUNT, FT_FIELD(heads), "12" },
    { "intermediate_size", FT_KEY_COUNT, FT_FIELD(ffn), "3072" },
    { "num_channels", FT_KEY_COUNT, FT_FIELD(channels), "3" },
    { "image_size", FT_KEY_PAIR, FT_FIELD(image_height), "224" },
    { "patch_size", FT_KEY_PAIR, FT_FIELD(patch_height), "16" },
    { "qkv_bias", FT_KEY_FLAG, FT_FIELD(qkv_bias), "true" },
    { "layer_norm_eps", FT_KEY_EPS, FT_FIELD(eps), "1e-12" },
    { "hidden_act", FT_KEY_ACTIVATION, FT_FIELD(activation), "\"gelu\"" },
    { "pooler_output_size", FT_KEY_ALIAS, FT_FIELD(hidden), "hidden_size" },
    { "pooler_act", FT_KEY_FIXED, 0, "\"tanh\"" },
    { "encoder_stride", FT_KEY_IGNORED, 0, NULL },
    { "is_decoder", FT_KEY_FIXED, 0, "false" },
    { "is_encoder_decoder", FT_KEY_FIXED, 0, "false" },
    { "add_cross_attention", FT_KEY_FIXED, 0, "false" },
    { "pruned_heads", FT_KEY_FIXED, 0, "{}" },
};

static const char *const classes[] = { "ViTModel", "ViTForImageClassification", NULL };
static const char *const deit_classes[] = { "DeiTModel", "DeiTForImageClassification", NULL };

const ft_architecture ft_architecture_vit = {
    .model_type = "vit",
    .family = &ft_family_vit,
    .rule = rules,
    .nrule = FT_COUNT(rules),
    .source = sources,
    .nsource = FT_COUNT(sources),
    .classes = classes,
    .prefix = "vit.",
    .head = FT_HEAD_FIRST,
    .prefix_tokens = 1,
};

const ft_architecture ft_architecture_deit = {
    .model_type = "deit",
    .family = &ft_family_vit,
    .base = &ft_architecture_vit,
    .source = deit_sources,
    .nsource = FT_COUNT(deit_sources),
    .classes = deit_classes,
    .prefix = "deit.",
    .head = FT_HEAD_FIRST,
    .prefix_tokens = 2,
};

/* ---- Graph -------------------------------------------------------------------------------- */

static int build_patches(ft_graph *g, const ft_config *c)
{
    const ft_conv conv = ft_config_patches(c);
    int images = ft_graph_input_images(g, "pixel_values", &conv);
    int patches = ft_patchify(g, "embed.patches", images, &conv, c->prefix_tokens);
    return ft_add_class_token(g, "embed", ft_linear(g, "embed.patch", patches));
}

/* The residual stream is a calibration point, because its range determines its storage type. */
static int build_layer(ft_graph *g, const ft_config *c, int x)
{
    int input = ft_layer_norm(g, "attn.norm", x, c->eps);
    int q = ft_linear(g, "attn.q", input);
    int k = ft_linear(g, "attn.k", input);
    int v = ft_linear(g, "attn.v", input);
    int a = ft_linear(g, "attn.out", ft_attention(g, "attn", q, k, v, c->heads));
    x = ft_add_residual(g, "attn.sum", a, x);
    int f = ft_linear(g, "ffn.up", ft_layer_norm(g, "ffn.norm", x, c->eps));
    f = ft_linear(g, "ffn.down", ft_apply_activation(g, "ffn.act", f, c->activation));
    x = ft_add_residual(g, "ffn.sum", f, x);
    ft_calibration_point(g, x);
    return x;
}

static void build_outputs(ft_graph *g, const ft_config *c, int x)
{
    ft_graph_output(g, "last_hidden_state", x);
    if (!c->pooler && c->labels == 0)
        return;
    int first = ft_pool(g, "first", x, FT_POOL_FIRST);
    if (c->pooler)
        ft_graph_output(
            g, "pooled",
            ft_apply_activation(g, "pooled", ft_linear(g, "pooler", first), FT_ACT_TANH));
    if (c->labels > 0)
        ft_graph_output(g, "logits", ft_linear(g, "classifier", first));
}

static void build(ft_graph *g, const ft_config *c)
{
    int x = build_patches(g, c);
    for (int i = 0; i < c->layers; i++) {
        ft_graph_scope(g, "layer.%d", i);
        x = build_layer(g, c, x);
    }
    ft_graph_scope(g, "%s", "");
    build_outputs(g, c, ft_layer_norm(g, "norm", x, c->eps));
}

const ft_family ft_family_vit = {
    .name = "vit",
    .kind = FT_KIND_VISION,
    .weight = weights,
    .nweight = FT_COUNT(weights),
    .build = build,
};
