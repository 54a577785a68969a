/*
 * encoder_decoder.h - what the tables of translation models have in common.
 *
 * Their checkpoints descend from one class, BART's, and kept its names: tensors and keys are spelt
 * alike, however the layers are put together.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_FAMILIES_ENCODER_DECODER_H
#define FT_RUNTIME_FAMILIES_ENCODER_DECODER_H

#include "runtime/families/family.h"

#include <stddef.h>

/* ---- Weights ------------------------------------------------------------------------------ */

/* clang-format off */
#define FT_ENCODER(part, shape, role, source)                                                      \
    { "encoder.layer.#." part, shape, role, true, 0, { "model.encoder.layers.#." source } }
#define FT_DECODER(part, shape, role, source)                                                      \
    { "decoder.layer.*." part, shape, role, true, 0, { "model.decoder.layers.*." source } }

/* One table of words for both halves. */
#define FT_WORDS                                                                                   \
    { "embed.word", "V,H", FT_ROLE_TABLE, false, 0, { "model.shared.weight" } }

#define FT_ENCODER_LAYERS                                                                          \
    FT_ENCODER("attn.q", "H,H", FT_ROLE_LINEAR, "self_attn.q_proj"),                               \
    FT_ENCODER("attn.k", "H,H", FT_ROLE_LINEAR, "self_attn.k_proj"),                               \
    FT_ENCODER("attn.v", "H,H", FT_ROLE_LINEAR, "self_attn.v_proj"),                               \
    FT_ENCODER("attn.out", "H,H", FT_ROLE_LINEAR, "self_attn.out_proj"),                           \
    FT_ENCODER("attn.norm", "H", FT_ROLE_VECTOR, "self_attn_layer_norm"),                          \
    FT_ENCODER("ffn.up", "I,H", FT_ROLE_LINEAR, "fc1"),                                            \
    FT_ENCODER("ffn.down", "H,I", FT_ROLE_LINEAR, "fc2"),                                          \
    FT_ENCODER("ffn.norm", "H", FT_ROLE_VECTOR, "final_layer_norm")

#define FT_DECODER_LAYERS                                                                          \
    FT_DECODER("attn.q", "H,H", FT_ROLE_LINEAR, "self_attn.q_proj"),                               \
    FT_DECODER("attn.k", "H,H", FT_ROLE_LINEAR, "self_attn.k_proj"),                               \
    FT_DECODER("attn.v", "H,H", FT_ROLE_LINEAR, "self_attn.v_proj"),                               \
    FT_DECODER("attn.out", "H,H", FT_ROLE_LINEAR, "self_attn.out_proj"),                           \
    FT_DECODER("attn.norm", "H", FT_ROLE_VECTOR, "self_attn_layer_norm"),                          \
    FT_DECODER("cross.q", "H,H", FT_ROLE_LINEAR, "encoder_attn.q_proj"),                           \
    FT_DECODER("cross.k", "H,H", FT_ROLE_LINEAR, "encoder_attn.k_proj"),                           \
    FT_DECODER("cross.v", "H,H", FT_ROLE_LINEAR, "encoder_attn.v_proj"),                           \
    FT_DECODER("cross.out", "H,H", FT_ROLE_LINEAR, "encoder_attn.out_proj"),                       \
    FT_DECODER("cross.norm", "H", FT_ROLE_VECTOR, "encoder_attn_layer_norm"),                      \
    FT_DECODER("ffn.up", "F,H", FT_ROLE_LINEAR, "fc1"),                                            \
    FT_DECODER("ffn.down", "H,F", FT_ROLE_LINEAR, "fc2"),                                          \
    FT_DECODER("ffn.norm", "H", FT_ROLE_VECTOR, "final_layer_norm")

#define FT_HEAD_WEIGHT                                                                             \
    { "head.weight", "V,H", FT_ROLE_DENSE, false, 'U', { "lm_head.weight" } }

/* ---- Configuration ------------------------------------------------------------------------ */

/*
 * num_hidden_layers and its kin are other names of encoder_layers and its kin, which the converter
 * compares.  The norms' epsilon is torch's, and no key says another.
 */
#define FT_TRANSLATOR(activation_, scale)                                                          \
    { "encoder_layers", FT_KEY_COUNT, offsetof(ft_config, encoder_layers), NULL },                 \
    { "encoder_attention_heads", FT_KEY_COUNT, offsetof(ft_config, encoder_heads), NULL },         \
    { "encoder_ffn_dim", FT_KEY_COUNT, offsetof(ft_config, encoder_ffn), NULL },                   \
    { "decoder_layers", FT_KEY_COUNT, offsetof(ft_config, layers), NULL },                         \
    { "decoder_attention_heads", FT_KEY_COUNT, offsetof(ft_config, heads), NULL },                 \
    { "decoder_ffn_dim", FT_KEY_COUNT, offsetof(ft_config, ffn), NULL },                           \
    { "d_model", FT_KEY_COUNT, offsetof(ft_config, hidden), NULL },                                \
    { "vocab_size", FT_KEY_COUNT, offsetof(ft_config, vocabulary), NULL },                         \
    { "max_position_embeddings", FT_KEY_COUNT, offsetof(ft_config, positions), NULL },             \
    { "activation_function", FT_KEY_ACTIVATION, offsetof(ft_config, activation), activation_ },    \
    { "scale_embedding", FT_KEY_FLAG, offsetof(ft_config, scale_embeddings), scale },                   \
    { "tie_word_embeddings", FT_KEY_FLAG, offsetof(ft_config, tied), "true" },                     \
    { "layer_norm_eps", FT_KEY_EPS, offsetof(ft_config, eps), "1e-5" },                            \
    { "layer_norm_eps", FT_KEY_FIXED, 0, "1e-5" },                                               \
    { "is_encoder_decoder", FT_KEY_FIXED, 0, "true" },                                           \
    { "is_decoder", FT_KEY_FIXED, 0, "false" },                                                  \
    { "num_hidden_layers", FT_KEY_ALIAS, offsetof(ft_config, encoder_layers), "encoder_layers" },   \
    { "num_attention_heads", FT_KEY_ALIAS, offsetof(ft_config, encoder_heads),                      \
      "encoder_attention_heads" },                                                                 \
    { "hidden_size", FT_KEY_ALIAS, offsetof(ft_config, hidden), "d_model" },                        \
    { "dropout", FT_KEY_IGNORED, 0, NULL },                                                            \
    { "attention_dropout", FT_KEY_IGNORED, 0, NULL },                                                  \
    { "activation_dropout", FT_KEY_IGNORED, 0, NULL },                                                 \
    { "encoder_layerdrop", FT_KEY_IGNORED, 0, NULL },                                                  \
    { "decoder_layerdrop", FT_KEY_IGNORED, 0, NULL },                                                  \
    { "init_std", FT_KEY_IGNORED, 0, NULL }
/* clang-format on */

/* ---- Graph -------------------------------------------------------------------------------- */

/* Norms come before each part of a layer and behind the last one, or behind each part's sum. */
void ft_build_encoder_decoder(ft_graph *graph, const ft_config *config, bool norm_first);

#endif
