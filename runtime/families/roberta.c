/*
 * roberta.c - RoBERTa: the tensor names of BERT, positions from the padding id + 1 on, and another
 * classification head.
 *
 * Source: Liu et al. 2019; the checkpoints' own configuration class in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/bert.h"

#include "runtime/mem.h"

static const ft_weight_source sources[] = {
    { "head.dense", "classifier.dense" },
    { "classifier", "classifier.out_proj" },
    { "lm.dense", "lm_head.dense" },
    { "lm.norm", "lm_head.layer_norm" },
    { "lm.decoder.weight", "lm_head.decoder.weight" },
    { "lm.decoder.bias", "lm_head.decoder.bias|lm_head.bias" },
};

/* Positions start at the padding id + 1, so the padding id affects the result. */
static const ft_config_rule rules[] = {
    { "pad_token_id", FT_KEY_COUNT, FT_FIELD(padding_id), "1" },
};

static const char *const classes[] = {
    "RobertaModel",
    "RobertaForSequenceClassification",
    "RobertaForTokenClassification",
    "RobertaForQuestionAnswering",
    "RobertaForMaskedLM",
    NULL,
};

const ft_architecture ft_architecture_roberta = {
    .model_type = "roberta",
    .family = &ft_family_bert,
    .base = &ft_architecture_bert,
    .rule = rules,
    .nrule = FT_COUNT(rules),
    .source = sources,
    .nsource = FT_COUNT(sources),
    .classes = classes,
    .prefix = "roberta.",
    .head = FT_HEAD_DENSE,
};
