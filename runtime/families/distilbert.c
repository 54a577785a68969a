/*
 * distilbert.c - DistilBERT: the graph of BERT without token types and pooler, with other tensor
 * names.
 *
 * Source: Sanh et al. 2019; the checkpoints' own configuration class in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/bert.h"

#include "runtime/mem.h"

#define LAYER(source) "~transformer.layer.*." source

static const ft_weight_source sources[] = {
    { "embed.word", "~embeddings.word_embeddings.weight" },
    { "embed.position", "~embeddings.position_embeddings.weight" },
    { "embed.norm", "~embeddings.LayerNorm" },
    { "layer.*.attn.q", LAYER("attention.q_lin") },
    { "layer.*.attn.k", LAYER("attention.k_lin") },
    { "layer.*.attn.v", LAYER("attention.v_lin") },
    { "layer.*.attn.out", LAYER("attention.out_lin") },
    { "layer.*.attn.norm", LAYER("sa_layer_norm") },
    { "layer.*.ffn.up", LAYER("ffn.lin1") },
    { "layer.*.ffn.down", LAYER("ffn.lin2") },
    { "layer.*.ffn.norm", LAYER("output_layer_norm") },
    { "head.dense", "pre_classifier" },
    { "classifier", "classifier" },
    { "tokens.classifier", "classifier" },
    { "span", "qa_outputs" },
    { "lm.dense", "vocab_transform" },
    { "lm.norm", "vocab_layer_norm" },
    { "lm.decoder.weight", "vocab_projector.weight" },
    { "lm.decoder.bias", "vocab_projector.bias" },
};

/*
 * Checkpoints store sinusoidal positions like learned ones.  The model class of transformers
 * hard-codes the epsilon of layer norms and ignores the configuration.
 */
static const ft_config_rule rules[] = {
    { "n_layers", FT_KEY_COUNT, FT_FIELD(layers), NULL },
    { "dim", FT_KEY_COUNT, FT_FIELD(hidden), NULL },
    { "n_heads", FT_KEY_COUNT, FT_FIELD(heads), NULL },
    { "hidden_dim", FT_KEY_COUNT, FT_FIELD(ffn), NULL },
    { "vocab_size", FT_KEY_COUNT, FT_FIELD(vocabulary), NULL },
    { "max_position_embeddings", FT_KEY_COUNT, FT_FIELD(positions), NULL },
    { "layer_norm_eps", FT_KEY_EPS, FT_FIELD(eps), "1e-12" },
    { "layer_norm_eps", FT_KEY_FIXED, 0, "1e-12" },
    { "activation", FT_KEY_ACTIVATION, FT_FIELD(activation), "\"gelu\"" },
    { "pad_token_id", FT_KEY_IGNORED, 0, NULL },
    { "sinusoidal_pos_embds", FT_KEY_IGNORED, 0, NULL },
    { "dropout", FT_KEY_IGNORED, 0, NULL },
    { "attention_dropout", FT_KEY_IGNORED, 0, NULL },
    { "qa_dropout", FT_KEY_IGNORED, 0, NULL },
    { "seq_classif_dropout", FT_KEY_IGNORED, 0, NULL },
    { "tie_weights_", FT_KEY_IGNORED, 0, NULL },
};

static const char *const classes[] = {
    "DistilBertModel",
    "DistilBertForSequenceClassification",
    "DistilBertForTokenClassification",
    "DistilBertForQuestionAnswering",
    "DistilBertForMaskedLM",
    NULL,
};

const ft_architecture ft_architecture_distilbert = {
    .model_type = "distilbert",
    .family = &ft_family_bert,
    .base = &ft_bert_encoder,
    .rule = rules,
    .nrule = FT_COUNT(rules),
    .source = sources,
    .nsource = FT_COUNT(sources),
    .classes = classes,
    .prefix = "distilbert.",
    .head = FT_HEAD_RELU,
};
