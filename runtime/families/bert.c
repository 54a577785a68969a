/*
 * bert.c - BERT and its near kin: RoBERTa, DistilBERT, sentence-transformers MiniLM.
 *
 * One graph serves all: post-norm encoder layers over learned positions.  The kin differ in the
 * names of their tensors, in how positions are numbered, and in what stands on top.
 *
 * Source: Devlin et al. 2018; the checkpoints' own configuration classes in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/families.h"

#include "runtime/mem.h"

#include <stddef.h>

/* ---- Names -------------------------------------------------------------------------------- */

#define LAYER "~encoder.layer.*."
#define DISTIL "~transformer.layer.*."

/* Sources by dialect: BERT, RoBERTa, DistilBERT. */
/* clang-format off */
static const ft_weight_rule weights[] = {
    { "embed.word", "V,H", FT_ROLE_TABLE, false, 0,
      { "~embeddings.word_embeddings.weight",
        "~embeddings.word_embeddings.weight",
        "~embeddings.word_embeddings.weight" } },
    { "embed.position", "P,H", FT_ROLE_TABLE, false, 0,
      { "~embeddings.position_embeddings.weight",
        "~embeddings.position_embeddings.weight",
        "~embeddings.position_embeddings.weight" } },
    { "embed.type", "T,H", FT_ROLE_TABLE, false, 'T',
      { "~embeddings.token_type_embeddings.weight",
        "~embeddings.token_type_embeddings.weight",
        NULL } },
    { "embed.norm", "H", FT_ROLE_VECTOR, true, 0,
      { "~embeddings.LayerNorm", "~embeddings.LayerNorm", "~embeddings.LayerNorm" } },

    { "layer.*.attn.q", "H,H", FT_ROLE_LINEAR, true, 0,
      { LAYER "attention.self.query", LAYER "attention.self.query", DISTIL "attention.q_lin" } },
    { "layer.*.attn.k", "H,H", FT_ROLE_LINEAR, true, 0,
      { LAYER "attention.self.key", LAYER "attention.self.key", DISTIL "attention.k_lin" } },
    { "layer.*.attn.v", "H,H", FT_ROLE_LINEAR, true, 0,
      { LAYER "attention.self.value", LAYER "attention.self.value", DISTIL "attention.v_lin" } },
    { "layer.*.attn.out", "H,H", FT_ROLE_LINEAR, true, 0,
      { LAYER "attention.output.dense",
        LAYER "attention.output.dense",
        DISTIL "attention.out_lin" } },
    { "layer.*.attn.norm", "H", FT_ROLE_VECTOR, true, 0,
      { LAYER "attention.output.LayerNorm",
        LAYER "attention.output.LayerNorm",
        DISTIL "sa_layer_norm" } },
    { "layer.*.ffn.up", "F,H", FT_ROLE_LINEAR, true, 0,
      { LAYER "intermediate.dense", LAYER "intermediate.dense", DISTIL "ffn.lin1" } },
    { "layer.*.ffn.down", "H,F", FT_ROLE_LINEAR, true, 0,
      { LAYER "output.dense", LAYER "output.dense", DISTIL "ffn.lin2" } },
    { "layer.*.ffn.norm", "H", FT_ROLE_VECTOR, true, 0,
      { LAYER "output.LayerNorm", LAYER "output.LayerNorm", DISTIL "output_layer_norm" } },

    { "pooler", "H,H", FT_ROLE_DENSE, true, 'K',
      { "~pooler.dense", "~pooler.dense", NULL } },
    { "head.dense", "H,H", FT_ROLE_DENSE, true, 'D',
      { NULL, "classifier.dense", "pre_classifier" } },
    { "classifier", "C,H", FT_ROLE_DENSE, true, 'C',
      { "classifier", "classifier.out_proj", "classifier" } },
};
/* clang-format on */

/* ---- Configuration ------------------------------------------------------------------------ */

#define FIELD(member) offsetof(ft_config, member)

/* What would make another model of it. */
/* clang-format off */
#define ENCODER_ONLY                                                                               \
    { "position_embedding_type", FT_KEY_FIXED, 0, "\"absolute\"" },                              \
    { "is_decoder", FT_KEY_FIXED, 0, "false" },                                                  \
    { "is_encoder_decoder", FT_KEY_FIXED, 0, "false" },                                          \
    { "add_cross_attention", FT_KEY_FIXED, 0, "false" },                                         \
    { "pruned_heads", FT_KEY_FIXED, 0, "{}" }
/* clang-format on */

static const ft_config_rule bert_rules[] = {
    { "num_hidden_layers", FT_KEY_COUNT, FIELD(layers), NULL },
    { "hidden_size", FT_KEY_COUNT, FIELD(hidden), NULL },
    { "num_attention_heads", FT_KEY_COUNT, FIELD(heads), NULL },
    { "intermediate_size", FT_KEY_COUNT, FIELD(ffn), NULL },
    { "vocab_size", FT_KEY_COUNT, FIELD(vocabulary), NULL },
    { "max_position_embeddings", FT_KEY_COUNT, FIELD(positions), NULL },
    { "type_vocab_size", FT_KEY_COUNT, FIELD(types), "2" },
    { "layer_norm_eps", FT_KEY_EPS, FIELD(eps), "1e-12" },
    { "hidden_act", FT_KEY_ACTIVATION, FIELD(activation), "\"gelu\"" },
    { "pad_token_id", FT_KEY_IGNORED, 0, NULL },
    ENCODER_ONLY,
};

/* Positions count from the padding id + 1, so the padding id is part of the arithmetic. */
static const ft_config_rule roberta_rules[] = {
    { "num_hidden_layers", FT_KEY_COUNT, FIELD(layers), NULL },
    { "hidden_size", FT_KEY_COUNT, FIELD(hidden), NULL },
    { "num_attention_heads", FT_KEY_COUNT, FIELD(heads), NULL },
    { "intermediate_size", FT_KEY_COUNT, FIELD(ffn), NULL },
    { "vocab_size", FT_KEY_COUNT, FIELD(vocabulary), NULL },
    { "max_position_embeddings", FT_KEY_COUNT, FIELD(positions), NULL },
    { "type_vocab_size", FT_KEY_COUNT, FIELD(types), "2" },
    { "layer_norm_eps", FT_KEY_EPS, FIELD(eps), "1e-12" },
    { "hidden_act", FT_KEY_ACTIVATION, FIELD(activation), "\"gelu\"" },
    { "pad_token_id", FT_KEY_COUNT, FIELD(padding_id), "1" },
    ENCODER_ONLY,
};

/*
 * Sinusoidal positions are stored in the checkpoint like learned ones.  The layer norms' epsilon is
 * written into the family's code: a configuration that names another one would be obeyed by nobody.
 */
static const ft_config_rule distilbert_rules[] = {
    { "n_layers", FT_KEY_COUNT, FIELD(layers), NULL },
    { "dim", FT_KEY_COUNT, FIELD(hidden), NULL },
    { "n_heads", FT_KEY_COUNT, FIELD(heads), NULL },
    { "hidden_dim", FT_KEY_COUNT, FIELD(ffn), NULL },
    { "vocab_size", FT_KEY_COUNT, FIELD(vocabulary), NULL },
    { "max_position_embeddings", FT_KEY_COUNT, FIELD(positions), NULL },
    { "layer_norm_eps", FT_KEY_EPS, FIELD(eps), "1e-12" },
    { "layer_norm_eps", FT_KEY_FIXED, 0, "1e-12" },
    { "activation", FT_KEY_ACTIVATION, FIELD(activation), "\"gelu\"" },
    { "pad_token_id", FT_KEY_IGNORED, 0, NULL },
    { "sinusoidal_pos_embds", FT_KEY_IGNORED, 0, NULL },
    { "dropout", FT_KEY_IGNORED, 0, NULL },
    { "attention_dropout", FT_KEY_IGNORED, 0, NULL },
    { "qa_dropout", FT_KEY_IGNORED, 0, NULL },
    { "seq_classif_dropout", FT_KEY_IGNORED, 0, NULL },
    { "tie_weights_", FT_KEY_IGNORED, 0, NULL },
    ENCODER_ONLY,
};

static const char *const bert_architectures[] = {
    "BertModel", "BertForSequenceClassification", "BertForMaskedLM", "BertForPreTraining", NULL,
};
static const char *const roberta_architectures[] = {
    "RobertaModel",
    "RobertaForSequenceClassification",
    "RobertaForMaskedLM",
    NULL,
};
static const char *const distilbert_architectures[] = {
    "DistilBertModel",
    "DistilBertForSequenceClassification",
    "DistilBertForMaskedLM",
    NULL,
};

static const ft_hf_arch hf_archs[] = {
    {
        .model_type = "bert",
        .prefix = "bert.",
        .head = FT_HEAD_POOLED,
        .architectures = bert_architectures,
        .rule = bert_rules,
        .nrule = FT_COUNT(bert_rules),
    },
    {
        .model_type = "roberta",
        .prefix = "roberta.",
        .head = FT_HEAD_DENSE,
        .architectures = roberta_architectures,
        .rule = roberta_rules,
        .nrule = FT_COUNT(roberta_rules),
    },
    {
        .model_type = "distilbert",
        .prefix = "distilbert.",
        .head = FT_HEAD_RELU,
        .architectures = distilbert_architectures,
        .rule = distilbert_rules,
        .nrule = FT_COUNT(distilbert_rules),
    },
};

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

/* The row that a classifier reads. */
static int build_head(ft_graph *g, const ft_config *c, int first, int pooled)
{
    switch (c->head) {
    case FT_HEAD_POOLED:
        return pooled;
    case FT_HEAD_DENSE:
        return ft_apply_activation(g, "head.act", ft_linear(g, "head.dense", first), FT_ACT_TANH);
    case FT_HEAD_RELU:
        return ft_apply_activation(g, "head.act", ft_linear(g, "head.dense", first), FT_ACT_RELU);
    case FT_HEAD_NONE:
    case FT_HEAD_FIRST:
        break;
    }
    return first;
}

static void build_outputs(ft_graph *g, const ft_config *c, int x)
{
    ft_graph_output(g, "last_hidden_state", x);
    if (c->pooler || c->labels > 0) {
        int first = ft_pool(g, "first", x, FT_POOL_FIRST);
        int pooled = first;
        if (c->pooler) {
            pooled = ft_apply_activation(g, "pooled", ft_linear(g, "pooler", first), FT_ACT_TANH);
            ft_graph_output(g, "pooled", pooled);
        }
        if (c->labels > 0)
            ft_graph_output(g, "logits",
                            ft_linear(g, "classifier", build_head(g, c, first, pooled)));
    }
    if (c->embedding != FT_EMBEDDING_NONE) {
        ft_pooling pooling = c->embedding == FT_EMBEDDING_MEAN ? FT_POOL_MEAN : FT_POOL_FIRST;
        int e = ft_pool(g, "embedding.pool", x, pooling);
        ft_graph_output(g, "embedding", c->normalize ? ft_l2_normalize(g, "embedding", e) : e);
    }
}

static void build(ft_graph *g, const ft_config *c)
{
    int ids = ft_graph_input(g, "input_ids");
    int positions = ft_graph_input(g, "positions");
    int types = c->types > 0 ? ft_graph_input(g, "token_type_ids") : -1;
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
    .hf_arch = hf_archs,
    .num_hf_archs = FT_COUNT(hf_archs),
    .weight = weights,
    .nweight = FT_COUNT(weights),
    .build = build,
};
