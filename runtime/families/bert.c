/*
 * bert.c - the BERT family (weights, graph) and the architecture "bert".
 *
 * The graph has post-norm encoder layers and learned position embeddings.  The related
 * architectures (roberta.c, distilbert.c) differ in tensor names, in the numbering of positions
 * and in the head.
 *
 * Source: Devlin et al. 2018; the checkpoints' own configuration classes in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/bert.h"
#include "runtime/families/embedding.h"

#include "runtime/mem.h"

/* ---- Weights ------------------------------------------------------------------------------ */

#define ATTENTION "heads*head_size, hidden"

/* clang-format off */
static const ft_weight_rule weights[] = {
    { "embed.word", "vocabulary, hidden", .role = FT_ROLE_TABLE },
    { "embed.position", "positions, hidden", .role = FT_ROLE_TABLE },
    { "embed.type", "types, hidden", .role = FT_ROLE_TABLE, .when = "types" },
    { "embed.norm", "hidden", .role = FT_ROLE_VECTOR, .bias = FT_ALWAYS },

    { "layer.*.attn.q", ATTENTION, .role = FT_ROLE_LINEAR, .bias = FT_ALWAYS },
    { "layer.*.attn.k", ATTENTION, .role = FT_ROLE_LINEAR, .bias = FT_ALWAYS },
    { "layer.*.attn.v", ATTENTION, .role = FT_ROLE_LINEAR, .bias = FT_ALWAYS },
    { "layer.*.attn.out", "hidden, heads*head_size", .role = FT_ROLE_LINEAR, .bias = FT_ALWAYS },
    { "layer.*.attn.norm", "hidden", .role = FT_ROLE_VECTOR, .bias = FT_ALWAYS },
    { "layer.*.ffn.up", "ffn, hidden", .role = FT_ROLE_LINEAR, .bias = FT_ALWAYS },
    { "layer.*.ffn.down", "hidden, ffn", .role = FT_ROLE_LINEAR, .bias = FT_ALWAYS },
    { "layer.*.ffn.norm", "hidden", .role = FT_ROLE_VECTOR, .bias = FT_ALWAYS },

    { "pooler", "hidden, hidden", .role = FT_ROLE_DENSE, .bias = FT_ALWAYS, .when = "pooler" },
    { "head.dense", "hidden, hidden", .role = FT_ROLE_DENSE, .bias = FT_ALWAYS,
      .when = "dense_head" },
    { "classifier", "labels, hidden", .role = FT_ROLE_DENSE, .bias = FT_ALWAYS,
      .when = "class_head" },
    { "tokens.classifier", "labels, hidden", .role = FT_ROLE_DENSE, .bias = FT_ALWAYS,
      .when = "token_head" },
    { "span", "2, hidden", .role = FT_ROLE_DENSE, .bias = FT_ALWAYS, .when = "span_head" },
    { "lm.dense", "hidden, hidden", .role = FT_ROLE_DENSE, .bias = FT_ALWAYS, .when = "lm_head" },
    { "lm.norm", "hidden", .role = FT_ROLE_VECTOR, .bias = FT_ALWAYS, .when = "lm_head" },
    { "lm.decoder.weight", "vocabulary, hidden", .role = FT_ROLE_DENSE, .when = "lm_untied" },
    { "lm.decoder.bias", "vocabulary", .role = FT_ROLE_VECTOR, .when = "lm_head" },
    FT_DENSE_LAYERS,
};
/* clang-format on */

/* ---- Graph -------------------------------------------------------------------------------- */

static int build_layer(ft_graph *g, const ft_config *c, int x)
{
    int q = ft_linear(g, "attn.q", x);
    int k = ft_linear(g, "attn.k", x);
    int v = ft_linear(g, "attn.v", x);
    int a = ft_linear(g, "attn.out", ft_attention(g, "attn", q, k, v, c->heads));
    x = ft_layer_norm(g, "attn.norm", ft_add_residual(g, "attn.sum", a, x), c->eps);
    int f = ft_apply_activation(g, "ffn.act", ft_linear(g, "ffn.up", x), c->activation);
    f = ft_linear(g, "ffn.down", f);
    return ft_layer_norm(g, "ffn.norm", ft_add_residual(g, "ffn.sum", f, x), c->eps);
}

/* The input [S, hidden] of the classifier. */
static int build_class_features(ft_graph *g, const ft_config *c, int first, int pooled)
{
    if (c->head == FT_HEAD_POOLED)
        return pooled;
    ft_activation activation = c->head == FT_HEAD_DENSE ? FT_ACT_TANH : FT_ACT_RELU;
    return ft_apply_activation(g, "head.act", ft_linear(g, "head.dense", first), activation);
}

/* Pooled output and classifier: one row per sequence. */
static void build_sequence_outputs(ft_graph *g, const ft_config *c, int x)
{
    if (!c->pooler && !ft_head_is_classifier(c->head))
        return;
    int first = ft_pool(g, "first", x, FT_POOL_FIRST), pooled = first;
    if (c->pooler) {
        pooled = ft_apply_activation(g, "pooled", ft_linear(g, "pooler", first), FT_ACT_TANH);
        ft_graph_output(g, "pooled", pooled);
    }
    if (ft_head_is_classifier(c->head))
        ft_graph_output(g, "logits",
                        ft_linear(g, "classifier", build_class_features(g, c, first, pooled)));
}

/* Scores [T, vocabulary] of the masked language model. */
static int build_lm(ft_graph *g, const ft_config *c, int x)
{
    x = ft_apply_activation(g, "lm.act", ft_linear(g, "lm.dense", x), c->activation);
    x = ft_layer_norm(g, "lm.norm", x, c->eps);
    return c->tied ? ft_linear_shared_weight(g, "lm.decoder", x, "embed.word")
                   : ft_linear(g, "lm.decoder", x);
}

/* Heads with one row per token. */
static void build_token_outputs(ft_graph *g, const ft_config *c, int x)
{
    if (c->head == FT_HEAD_TOKENS)
        ft_graph_output(g, "logits", ft_linear(g, "tokens.classifier", x));
    if (c->head == FT_HEAD_LM)
        ft_graph_output(g, "logits", build_lm(g, c, x));
    if (c->head != FT_HEAD_SPAN)
        return;
    int span = ft_linear(g, "span", x);
    ft_graph_output_column(g, "start_logits", span, 0);
    ft_graph_output_column(g, "end_logits", span, 1);
}

static void build_outputs(ft_graph *g, const ft_config *c, int x)
{
    ft_graph_output(g, "last_hidden_state", x);
    build_sequence_outputs(g, c, x);
    build_token_outputs(g, c, x);
    if (c->embedding != FT_EMBEDDING_NONE)
        ft_build_embedding(g, c, x);
}

static void build(ft_graph *g, const ft_config *c)
{
    int ids = ft_graph_input(g, "input_ids", FT_BATCH_IDS);
    int positions = ft_graph_input(g, "positions", FT_BATCH_POSITIONS);
    int types = c->types > 0 ? ft_graph_input(g, "token_type_ids", FT_BATCH_TYPES) : -1;
    int x = ft_layer_norm(g, "embed.norm", ft_embed(g, "embed", ids, positions, types), c->eps);
    for (int i = 0; i < c->layers; i++) {
        ft_graph_scope(g, "layer.%d", i);
        x = build_layer(g, c, x);
    }
    ft_graph_scope(g, "%s", "");
    ft_calibration_point(g, x);
    build_outputs(g, c, x);
}

const ft_family ft_family_bert = {
    .name = "bert",
    .kind = FT_KIND_ENCODER,
    .weight = weights,
    .nweight = FT_COUNT(weights),
    .build = build,
};

/* ---- Checkpoints -------------------------------------------------------------------------- */

/* Keys that would change the graph. */
static const ft_config_rule encoder_rules[] = {
    { "position_embedding_type", FT_KEY_FIXED, 0, "\"absolute\"" },
    { "is_decoder", FT_KEY_FIXED, 0, "false" },
    { "is_encoder_decoder", FT_KEY_FIXED, 0, "false" },
    { "add_cross_attention", FT_KEY_FIXED, 0, "false" },
    { "pruned_heads", FT_KEY_FIXED, 0, "{}" },
};

const ft_architecture ft_bert_encoder = {
    .rule = encoder_rules,
    .nrule = FT_COUNT(encoder_rules),
};

#define LAYER(source) "~encoder.layer.*." source

static const ft_weight_source sources[] = {
    { "embed.word", "~embeddings.word_embeddings.weight" },
    { "embed.position", "~embeddings.position_embeddings.weight" },
    { "embed.type", "~embeddings.token_type_embeddings.weight" },
    { "embed.norm", "~embeddings.LayerNorm" },
    { "layer.*.attn.q", LAYER("attention.self.query") },
    { "layer.*.attn.k", LAYER("attention.self.key") },
    { "layer.*.attn.v", LAYER("attention.self.value") },
    { "layer.*.attn.out", LAYER("attention.output.dense") },
    { "layer.*.attn.norm", LAYER("attention.output.LayerNorm") },
    { "layer.*.ffn.up", LAYER("intermediate.dense") },
    { "layer.*.ffn.down", LAYER("output.dense") },
    { "layer.*.ffn.norm", LAYER("output.LayerNorm") },
    { "pooler", "~pooler.dense" },
    { "classifier", "classifier" },
    { "tokens.classifier", "classifier" },
    { "span", "qa_outputs" },
    { "lm.dense", "cls.predictions.transform.dense" },
    { "lm.norm", "cls.predictions.transform.LayerNorm" },
    { "lm.decoder.weight", "cls.predictions.decoder.weight" },
    { "lm.decoder.bias", "cls.predictions.decoder.bias|cls.predictions.bias" },
};

static const ft_config_rule rules[] = {
    { "num_hidden_layers", FT_KEY_COUNT, FT_FIELD(layers), NULL },
    { "hidden_size", FT_KEY_COUNT, FT_FIELD(hidden), NULL },
    { "num_attention_heads", FT_KEY_COUNT, FT_FIELD(heads), NULL },
    { "intermediate_size", FT_KEY_COUNT, FT_FIELD(ffn), NULL },
    { "vocab_size", FT_KEY_COUNT, FT_FIELD(vocabulary), NULL },
    { "max_position_embeddings", FT_KEY_COUNT, FT_FIELD(positions), NULL },
    { "type_vocab_size", FT_KEY_COUNT, FT_FIELD(types), "2" },
    { "layer_norm_eps", FT_KEY_EPS, FT_FIELD(eps), "1e-12" },
    { "hidden_act", FT_KEY_ACTIVATION, FT_FIELD(activation), "\"gelu\"" },
    { "pad_token_id", FT_KEY_IGNORED, 0, NULL },
};

static const char *const classes[] = {
    "BertModel",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertForQuestionAnswering",
    "BertForMaskedLM",
    "BertForPreTraining",
    NULL,
};

const ft_architecture ft_architecture_bert = {
    .model_type = "bert",
    .family = &ft_family_bert,
    .base = &ft_bert_encoder,
    .rule = rules,
    .nrule = FT_COUNT(rules),
    .source = sources,
    .nsource = FT_COUNT(sources),
    .classes = classes,
    .prefix = "bert.",
    .head = FT_HEAD_POOLED,
};
