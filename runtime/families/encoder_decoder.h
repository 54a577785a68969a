/*
 * encoder_decoder.h - shared tables and graph of encoder-decoder models for translation.
 *
 * Their classes in transformers derive from BART, so tensors and keys have the same names in all of
 * them, whether layers are pre-norm or post-norm.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_FAMILIES_ENCODER_DECODER_H
#define FT_RUNTIME_FAMILIES_ENCODER_DECODER_H

#include "runtime/families/families.h"

/* ---- Weights ------------------------------------------------------------------------------ */

/* clang-format off */
#define FT_VECTOR(name)                                                                            \
    { name, "hidden", .role = FT_ROLE_VECTOR, .bias = FT_ALWAYS }
#define FT_LINEAR(name, shape)                                                                     \
    { name, shape, .role = FT_ROLE_LINEAR, .bias = FT_ALWAYS }
#define FT_ATTENTION(name, columns)                                                                \
    FT_LINEAR(name ".q", columns ", hidden"),                                                      \
    FT_LINEAR(name ".k", columns ", hidden"),                                                      \
    FT_LINEAR(name ".v", columns ", hidden"),                                                      \
    FT_LINEAR(name ".out", "hidden, " columns),                                                    \
    FT_VECTOR(name ".norm")

/* Encoder and decoder share one embedding table. */
#define FT_SHARED_EMBEDDING { "embed.word", "vocabulary, hidden", .role = FT_ROLE_TABLE }

#define FT_ENCODER_LAYERS                                                                          \
    FT_ATTENTION("encoder.layer.#.attn", "encoder_heads*encoder_head_size"),                       \
    FT_LINEAR("encoder.layer.#.ffn.up", "encoder_ffn, hidden"),                                    \
    FT_LINEAR("encoder.layer.#.ffn.down", "hidden, encoder_ffn"),                                  \
    FT_VECTOR("encoder.layer.#.ffn.norm")

#define FT_DECODER_LAYERS                                                                          \
    FT_ATTENTION("decoder.layer.*.attn", "heads*head_size"),                                       \
    FT_ATTENTION("decoder.layer.*.cross", "heads*head_size"),                                      \
    FT_LINEAR("decoder.layer.*.ffn.up", "ffn, hidden"),                                            \
    FT_LINEAR("decoder.layer.*.ffn.down", "hidden, ffn"),                                          \
    FT_VECTOR("decoder.layer.*.ffn.norm")

#define FT_UNTIED_HEAD                                                                             \
    { "head.weight", "vocabulary, hidden", .role = FT_ROLE_DENSE, .when = "untied" }
/* clang-format on */

/* A base without a model_type: the checkpoint names of these tensors. */
extern const ft_architecture ft_encoder_decoder;

/* ---- Configuration ------------------------------------------------------------------------ */

/*
 * num_hidden_layers, num_attention_heads and hidden_size are aliases of encoder_layers,
 * encoder_attention_heads and d_model; the converter checks that they agree.  The epsilon of layer
 * norms is the default of torch; no key changes it.
 */
/* clang-format off */
#define FT_ENCODER_DECODER_RULES(activation_, scale)                                                          \
    { "encoder_layers", FT_KEY_COUNT, FT_FIELD(encoder_layers), NULL },                            \
    { "encoder_attention_heads", FT_KEY_COUNT, FT_FIELD(encoder_heads), NULL },                    \
    { "encoder_ffn_dim", FT_KEY_COUNT, FT_FIELD(encoder_ffn), NULL },                              \
    { "decoder_layers", FT_KEY_COUNT, FT_FIELD(layers), NULL },                                    \
    { "decoder_attention_heads", FT_KEY_COUNT, FT_FIELD(heads), NULL },                            \
    { "decoder_ffn_dim", FT_KEY_COUNT, FT_FIELD(ffn), NULL },                                      \
    { "d_model", FT_KEY_COUNT, FT_FIELD(hidden), NULL },                                           \
    { "vocab_size", FT_KEY_COUNT, FT_FIELD(vocabulary), NULL },                                    \
    { "max_position_embeddings", FT_KEY_COUNT, FT_FIELD(positions), NULL },                        \
    { "activation_function", FT_KEY_ACTIVATION, FT_FIELD(activation), activation_ },               \
    { "scale_embedding", FT_KEY_FLAG, FT_FIELD(scale_embeddings), scale },                              \
    { "tie_word_embeddings", FT_KEY_FLAG, FT_FIELD(tied), "true" },                                \
    { "layer_norm_eps", FT_KEY_EPS, FT_FIELD(eps), "1e-5" },                                       \
    { "layer_norm_eps", FT_KEY_FIXED, 0, "1e-5" },                                               \
    { "is_encoder_decoder", FT_KEY_FIXED, 0, "true" },                                           \
    { "is_decoder", FT_KEY_FIXED, 0, "false" },                                                  \
    { "num_hidden_layers", FT_KEY_ALIAS, FT_FIELD(encoder_layers), "encoder_layers" },              \
    { "num_attention_heads", FT_KEY_ALIAS, FT_FIELD(encoder_heads),                                 \
      "encoder_attention_heads" },                                                                 \
    { "hidden_size", FT_KEY_ALIAS, FT_FIELD(hidden), "d_model" },                                   \
    { "dropout", FT_KEY_IGNORED, 0, NULL },                                                            \
    { "attention_dropout", FT_KEY_IGNORED, 0, NULL },                                                  \
    { "activation_dropout", FT_KEY_IGNORED, 0, NULL },                                                 \
    { "encoder_layerdrop", FT_KEY_IGNORED, 0, NULL },                                                  \
    { "decoder_layerdrop", FT_KEY_IGNORED, 0, NULL },                                                  \
    { "init_std", FT_KEY_IGNORED, 0, NULL }
/* clang-format on */

/* ---- Graph -------------------------------------------------------------------------------- */

/*
 * Build the encoder and the decoder.  norm_first: pre-norm layers and a final norm of both stacks;
 * else post-norm layers.
 */
void ft_build_encoder_decoder(ft_graph *graph, const ft_config *config, bool norm_first);

#endif
