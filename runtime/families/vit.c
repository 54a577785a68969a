/*
 * vit.c - ViT and DeiT: images in patches, read by an encoder.
 *
 * A patch is a row like a token's: the convolution that makes it, whose kernel is its stride, is a
 * product.  Behind it stand pre-norm encoder layers over learned positions.  A sequence begins with
 * rows that belong to no patch: the class's, and in DeiT the distillation's.
 *
 * Source: Dosovitskiy et al. 2020; Touvron et al. 2020; the checkpoints' own configuration classes
 * in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/families.h"

#include "runtime/mem.h"

#include <stddef.h>

/* ---- Names -------------------------------------------------------------------------------- */

/* Sources by dialect: ViT, DeiT. */
/* clang-format off */
#define BOTH(source) { source, source }
#define LAYER(source) BOTH("~encoder.layer.*." source)

static const ft_weight_rule weights[] = {
    { "embed.patch", "H,X/H,c,h,w", FT_ROLE_LINEAR, true, 0,
      BOTH("~embeddings.patch_embeddings.projection") },
    { "embed.position", "P,H/1,P,H", FT_ROLE_TABLE, false, 0,
      BOTH("~embeddings.position_embeddings") },
    { "embed.class", "H/1,1,H", FT_ROLE_VECTOR, false, 0, BOTH("~embeddings.cls_token") },
    { "embed.distillation", "H/1,1,H", FT_ROLE_VECTOR, false, 'S',
      { NULL, "~embeddings.distillation_token" } },

    { "layer.*.attn.norm", "H", FT_ROLE_VECTOR, true, 0, LAYER("layernorm_before") },
    { "layer.*.attn.q", "H,H", FT_ROLE_LINEAR, 'B', 0, LAYER("attention.attention.query") },
    { "layer.*.attn.k", "H,H", FT_ROLE_LINEAR, 'B', 0, LAYER("attention.attention.key") },
    { "layer.*.attn.v", "H,H", FT_ROLE_LINEAR, 'B', 0, LAYER("attention.attention.value") },
    { "layer.*.attn.out", "H,H", FT_ROLE_LINEAR, true, 0, LAYER("attention.output.dense") },
    { "layer.*.ffn.norm", "H", FT_ROLE_VECTOR, true, 0, LAYER("layernorm_after") },
    { "layer.*.ffn.up", "F,H", FT_ROLE_LINEAR, true, 0, LAYER("intermediate.dense") },
    { "layer.*.ffn.down", "H,F", FT_ROLE_LINEAR, true, 0, LAYER("output.dense") },

    { "norm", "H", FT_ROLE_VECTOR, true, 0, BOTH("~layernorm") },
    { "pooler", "H,H", FT_ROLE_DENSE, true, 'K', BOTH("~pooler.dense") },
    { "classifier", "C,H", FT_ROLE_DENSE, true, 'C', BOTH("classifier") },
};
/* clang-format on */

/* ---- Configuration ------------------------------------------------------------------------ */

#define FIELD(member) offsetof(ft_config, member)

static const ft_config_rule rules[] = {
    { "num_hidden_layers", FT_KEY_COUNT, FIELD(layers), "12" },
    { "hidden_size", FT_KEY_COUNT, FIELD(hidden), "768" },
    { "num_attention_heads", FT_KEY_COUNT, FIELD(heads), "12" },
    { "intermediate_size", FT_KEY_COUNT, FIELD(ffn), "3072" },
    { "num_channels", FT_KEY_COUNT, FIELD(channels), "3" },
    { "image_size", FT_KEY_PAIR, FIELD(image_height), "224" },
    { "patch_size", FT_KEY_PAIR, FIELD(patch_height), "16" },
    { "qkv_bias", FT_KEY_FLAG, FIELD(qkv_bias), "true" },
    { "layer_norm_eps", FT_KEY_EPS, FIELD(eps), "1e-12" },
    { "hidden_act", FT_KEY_ACTIVATION, FIELD(activation), "\"gelu\"" },
    { "pooler_output_size", FT_KEY_ALIAS, FIELD(hidden), "hidden_size" },
    { "pooler_act", FT_KEY_FIXED, 0, "\"tanh\"" },
    { "encoder_stride", FT_KEY_IGNORED, 0, NULL },
    { "is_decoder", FT_KEY_FIXED, 0, "false" },
    { "is_encoder_decoder", FT_KEY_FIXED, 0, "false" },
    { "add_cross_attention", FT_KEY_FIXED, 0, "false" },
    { "pruned_heads", FT_KEY_FIXED, 0, "{}" },
};

static const char *const vit_architectures[] = { "ViTModel", "ViTForImageClassification", NULL };
static const char *const deit_architectures[] = { "DeiTModel", "DeiTForImageClassification", NULL };

static const ft_hf_arch hf_archs[] = {
    {
        .model_type = "vit",
        .prefix = "vit.",
        .head = FT_HEAD_FIRST,
        .architectures = vit_architectures,
        .rule = rules,
        .nrule = FT_COUNT(rules),
        .prefix_tokens = 1,
    },
    {
        .model_type = "deit",
        .prefix = "deit.",
        .head = FT_HEAD_FIRST,
        .architectures = deit_architectures,
        .rule = rules,
        .nrule = FT_COUNT(rules),
        .prefix_tokens = 2,
    },
};

/* ---- Graph -------------------------------------------------------------------------------- */

static int build_patches(ft_graph *g, const ft_config *c)
{
    const ft_conv conv = ft_config_patches(c);
    int images = ft_graph_input_images(g, "pixel_values", &conv);
    int patches = ft_patchify(g, "embed.patches", images, &conv, c->prefix_tokens);
    return ft_add_class_token(g, "embed", ft_linear(g, "embed.patch", patches));
}

/* What the layers have added up is a point: how large it is decides what it may be stored in. */
static int build_layer(ft_graph *g, const ft_config *c, int x)
{
    int from = ft_layer_norm(g, "attn.norm", x, c->eps);
    int q = ft_linear(g, "attn.q", from);
    int k = ft_linear(g, "attn.k", from);
    int v = ft_linear(g, "attn.v", from);
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
    .hf_arch = hf_archs,
    .num_hf_archs = FT_COUNT(hf_archs),
    .weight = weights,
    .nweight = FT_COUNT(weights),
    .build = build,
};
