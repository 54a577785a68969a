/*
 * marian.c - the OPUS-MT translation models, trained with Marian.
 *
 * Post-norm layers without a final norm, sinusoidal positions from 0 on, and a bias of the LM head.
 *
 * Source: Junczys-Dowmunt et al. 2018; the checkpoints' own configuration class in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/encoder_decoder.h"

#include "runtime/mem.h"

/* ---- Weights -------------------------------------------------------------------------------- */

static const ft_weight_rule weights[] = {
    FT_SHARED_EMBEDDING,
    FT_ENCODER_LAYERS,
    FT_DECODER_LAYERS,
    FT_UNTIED_HEAD,
    { "head.bias", "vocabulary", .role = FT_ROLE_VECTOR, .when = "head_bias" },
};

static const ft_weight_source sources[] = {
    { "head.bias", "final_logits_bias" },
};

static const char *const tied_embeddings[] = {
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    NULL,
};

static const char *const positions[] = {
    "model.encoder.embed_positions.weight",
    "model.decoder.embed_positions.weight",
    NULL,
};

/* ---- Configuration ------------------------------------------------------------------------ */

/* The FIXED keys are options of Marian that the class of transformers does not implement. */
static const ft_config_rule rules[] = {
    FT_ENCODER_DECODER_RULES("\"gelu\"", "false"),
    { "pad_token_id", FT_KEY_COUNT, FT_FIELD(pad_id), "58100" },
    { "decoder_start_token_id", FT_KEY_COUNT, FT_FIELD(decoder_start_id), "58100" },
    { "forced_bos_token_id", FT_KEY_ID, FT_FIELD(forced_bos_id), "null" },
    { "forced_eos_token_id", FT_KEY_ID, FT_FIELD(forced_eos_id), "0" },
    { "decoder_vocab_size", FT_KEY_ALIAS, FT_FIELD(vocabulary), "vocab_size" },
    { "share_encoder_decoder_embeddings", FT_KEY_FIXED, 0, "true" },
    { "static_position_embeddings", FT_KEY_FIXED, 0, "true" },
    { "normalize_before", FT_KEY_FIXED, 0, "false" },
    { "normalize_embedding", FT_KEY_FIXED, 0, "false" },
    { "add_final_layer_norm", FT_KEY_FIXED, 0, "false" },
    { "add_bias_logits", FT_KEY_FIXED, 0, "false" },
    { "extra_pos_embeddings", FT_KEY_IGNORED, 0, NULL },
    { "classif_dropout", FT_KEY_IGNORED, 0, NULL },
};

static const char *const classes[] = { "MarianMTModel", NULL };

const ft_architecture ft_architecture_marian = {
    .model_type = "marian",
    .family = &ft_family_marian,
    .base = &ft_encoder_decoder,
    .rule = rules,
    .nrule = FT_COUNT(rules),
    .source = sources,
    .nsource = FT_COUNT(sources),
    .classes = classes,
    .base_model = "MarianModel",
    .sinusoids = FT_SINUSOIDS_MARIAN,
    .tied_embeddings = tied_embeddings,
    .stored_sinusoids = positions,
};

/* ---- Graph -------------------------------------------------------------------------------- */

static void build(ft_graph *g, const ft_config *c)
{
    ft_build_encoder_decoder(g, c, false);
}

const ft_family ft_family_marian = {
    .name = "marian",
    .kind = FT_KIND_ENCODER_DECODER,
    .weight = weights,
    .nweight = FT_COUNT(weights),
    .build = build,
};
