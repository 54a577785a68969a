/*
 * m2m100.c - M2M100 and NLLB: translation between many languages.
 *
 * Pre-norm layers, a final norm of both stacks, and one embedding table for both, which usually is
 * the weight of the LM head too.  Sinusoidal positions count the non-padding tokens, starting at
 * the padding id + 1.
 *
 * Source: Fan et al. 2020; the checkpoints' own configuration class in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/encoder_decoder.h"

#include "runtime/mem.h"

/* ---- Weights -------------------------------------------------------------------------------- */

static const ft_weight_rule weights[] = {
    FT_SHARED_EMBEDDING, FT_ENCODER_LAYERS,         FT_VECTOR("encoder.norm"),
    FT_DECODER_LAYERS,   FT_VECTOR("decoder.norm"), FT_UNTIED_HEAD,
};

static const ft_weight_source sources[] = {
    { "encoder.norm", "model.encoder.layer_norm" },
    { "decoder.norm", "model.decoder.layer_norm" },
};

static const char *const tied_embeddings[] = {
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    NULL,
};

/* ---- Configuration ------------------------------------------------------------------------ */

static const ft_config_rule rules[] = {
    FT_ENCODER_DECODER_RULES("\"relu\"", "true"),
    { "pad_token_id", FT_KEY_COUNT, FT_FIELD(pad_id), "1" },
    { "pad_token_id", FT_KEY_COUNT, FT_FIELD(padding_id), "1" },
    { "decoder_start_token_id", FT_KEY_COUNT, FT_FIELD(decoder_start_id), "2" },
    { "forced_bos_token_id", FT_KEY_ID, FT_FIELD(forced_bos_id), "null" },
    { "forced_eos_token_id", FT_KEY_ID, FT_FIELD(forced_eos_id), "null" },
};

static const char *const classes[] = { "M2M100ForConditionalGeneration", NULL };

const ft_architecture ft_architecture_m2m100 = {
    .model_type = "m2m_100",
    .family = &ft_family_m2m100,
    .base = &ft_encoder_decoder,
    .rule = rules,
    .nrule = FT_COUNT(rules),
    .source = sources,
    .nsource = FT_COUNT(sources),
    .classes = classes,
    .base_model = "M2M100Model",
    .sinusoids = FT_SINUSOIDS_M2M100,
    .tied_embeddings = tied_embeddings,
};

/* ---- Graph -------------------------------------------------------------------------------- */

static void build(ft_graph *g, const ft_config *c)
{
    ft_build_encoder_decoder(g, c, true);
}

const ft_family ft_family_m2m100 = {
    .name = "m2m100",
    .kind = FT_KIND_ENCODER_DECODER,
    .weight = weights,
    .nweight = FT_COUNT(weights),
    .build = build,
};
