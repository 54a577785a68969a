/*
 * m2m100.c - M2M100 and NLLB: translation between many languages.
 *
 * Pre-norm layers, a last norm on both halves, one table of words for both and most often for the
 * head too.  Positions are sinusoids, numbered over the tokens that are not padding and from the
 * padding's id + 1 on.
 *
 * Source: Fan et al. 2020; the checkpoints' own configuration class in transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/encoder_decoder.h"
#include "runtime/families/families.h"

#include "runtime/mem.h"

/* ---- Names -------------------------------------------------------------------------------- */

/* clang-format off */
static const ft_weight_rule weights[] = {
    FT_WORDS,
    FT_ENCODER_LAYERS,
    { "encoder.norm", "H", FT_ROLE_VECTOR, true, 0, { "model.encoder.layer_norm" } },
    FT_DECODER_LAYERS,
    { "decoder.norm", "H", FT_ROLE_VECTOR, true, 0, { "model.decoder.layer_norm" } },
    FT_HEAD_WEIGHT,
};
/* clang-format on */

static const char *const words[] = {
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    NULL,
};

/* ---- Configuration ------------------------------------------------------------------------ */

static const ft_config_rule rules[] = {
    FT_TRANSLATOR("\"relu\"", "true"),
    { "pad_token_id", FT_KEY_COUNT, offsetof(ft_config, pad_id), "1" },
    { "pad_token_id", FT_KEY_COUNT, offsetof(ft_config, padding_id), "1" },
    { "decoder_start_token_id", FT_KEY_COUNT, offsetof(ft_config, decoder_start_id), "2" },
    { "forced_bos_token_id", FT_KEY_ID, offsetof(ft_config, forced_bos_id), "null" },
    { "forced_eos_token_id", FT_KEY_ID, offsetof(ft_config, forced_eos_id), "null" },
};

static const char *const architectures[] = { "M2M100ForConditionalGeneration", NULL };

static const ft_hf_arch hf_archs[] = {
    {
        .model_type = "m2m_100",
        .prefix = "",
        .architectures = architectures,
        .rule = rules,
        .nrule = FT_COUNT(rules),
        .base_model = "M2M100Model",
        .sinusoids = FT_SINUSOIDS_M2M100,
        .words = words,
    },
};

/* ---- Graph -------------------------------------------------------------------------------- */

static void build(ft_graph *g, const ft_config *c)
{
    ft_build_encoder_decoder(g, c, true);
}

const ft_family ft_family_m2m100 = {
    .name = "m2m100",
    .kind = FT_KIND_ENCODER_DECODER,
    .hf_arch = hf_archs,
    .num_hf_archs = FT_COUNT(hf_archs),
    .weight = weights,
    .nweight = FT_COUNT(weights),
    .build = build,
};
