/*
 * model_config.h - the configuration of a model, as the manifest stores it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_MODEL_CONFIG_H
#define FT_RUNTIME_GRAPH_MODEL_CONFIG_H

#include "kernels/op.h"

#include <jansson.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

typedef enum ft_head {
    FT_HEAD_NONE,
    FT_HEAD_POOLED, /* classifier on the pooler's output (BERT) */
    FT_HEAD_DENSE,  /* dense + tanh + projection on the first token (RoBERTa) */
    FT_HEAD_RELU,   /* dense + relu + projection on the first token (DistilBERT) */
    FT_HEAD_FIRST,  /* projection on the first token (ViT) */
    FT_HEAD_TOKENS, /* projection on every token: token classification */
    FT_HEAD_SPAN,   /* scores of every token as start and end: extractive question answering */
    FT_HEAD_LM,     /* scores of the vocabulary for every token: masked language model */
} ft_head;

typedef enum ft_embedding {
    FT_EMBEDDING_NONE,
    FT_EMBEDDING_FIRST, /* these in the order of ft_pooling */
    FT_EMBEDDING_MEAN,
    FT_EMBEDDING_LAST,
    FT_EMBEDDING_MAX,
    FT_EMBEDDING_MEAN_SQRT_LEN,
    FT_EMBEDDING_WEIGHTED_MEAN,
} ft_embedding;

/* A Dense layer of sentence-transformers: it projects what pooling, or another layer, gives. */
typedef struct ft_dense {
    int32_t size;               /* columns of the result */
    bool bias, normalize_input; /* its input is scaled to unit L2 norm first */
    ft_activation activation;
} ft_dense;

enum { FT_MAX_DENSE = 4 };

/* How the logits of a classifier are interpreted: problem_type of transformers. */
typedef enum ft_problem {
    FT_PROBLEM_SINGLE,     /* exactly one label applies: softmax */
    FT_PROBLEM_MULTI,      /* each label applies or not: sigmoid, even for a single label */
    FT_PROBLEM_REGRESSION, /* the logits are the predicted quantities */
} ft_problem;

/* RoPE scaling; runtime/graph/rope.h has the formulas. */
typedef enum ft_rope {
    FT_ROPE_NONE,    /* no RoPE */
    FT_ROPE_DEFAULT, /* no scaling */
    FT_ROPE_LINEAR,  /* divides all frequencies by the factor */
    FT_ROPE_LLAMA3,  /* divides low frequencies, keeps high ones, interpolates */
    FT_ROPE_DYNAMIC, /* theta depends on lengths above rope_positions */
} ft_rope;

/* Sinusoidal position embeddings; runtime/graph/sinusoids.h has the formulas. */
typedef enum ft_sinusoids {
    FT_SINUSOIDS_NONE,   /* none: not an encoder-decoder */
    FT_SINUSOIDS_M2M100, /* M2M100: the last frequency is 1/10000 */
    FT_SINUSOIDS_MARIAN, /* Marian: the one after the last would be 1/10000 */
} ft_sinusoids;

enum { FT_MAX_BANNED = 8 };

/* What a model reads and generates. */
typedef enum ft_kind {
    FT_KIND_ENCODER,         /* reads text */
    FT_KIND_DECODER,         /* generates text */
    FT_KIND_ENCODER_DECODER, /* reads a source text and generates a target text */
    FT_KIND_VISION,          /* reads images */
} ft_kind;

typedef struct ft_config {
    ft_kind kind; /* that of the family; not in the manifest */
    int32_t layers, hidden, heads, ffn, vocabulary, positions;
    int32_t max_seq_length;  /* tokens to which texts are truncated; 0 = positions */
    int32_t types;           /* rows of the token type table; 0 = none */
    int32_t labels;          /* outputs of a classifier of texts, images or tokens; 0 = none */
    int32_t position_offset; /* position of the first token (RoBERTa, M2M100: padding id + 1) */
    int32_t padding_id;      /* RoBERTa, M2M100: positions skip this token; -1 = none */
    float eps;
    ft_activation activation;
    bool pooler;
    ft_head head;
    ft_problem problem_type; /* of classifiers */
    ft_embedding embedding;  /* the pooling of the output "embedding" */
    bool normalize;          /* scale the embedding to unit L2 norm, after the Dense layers */
    ft_dense dense[FT_MAX_DENSE]; /* between the pooling and the embedding, in this order */
    int32_t num_dense;

    /* Vision models; all 0 in others.  positions = prefix_tokens + the number of patches. */
    int32_t channels, image_height, image_width;
    int32_t patch_height, patch_width;
    int32_t prefix_tokens; /* tokens before the patches: class and, in DeiT, distillation */

    int32_t head_size; /* columns per head; 0 in encoders: hidden / heads */

    /* Decoders; all 0 and false in encoders. */
    int32_t kv_heads;           /* key/value heads, each shared by heads / kv_heads query heads */
    int32_t window;             /* tokens that a token attends to, itself included; 0 = all */
    int32_t window_first_layer; /* first layer with the window */
    int32_t rope_positions;     /* llama3, dynamic: length of the original context in tokens */
    ft_rope rope;
    double rope_theta, rope_factor;
    double rope_low, rope_high;        /* llama3: bounds of low and high frequencies */
    bool qkv_bias, out_bias, ffn_bias; /* attn.q, k, v (ViT too); attn.out; ffn.* */
    bool qk_norm;                      /* RMS norms of query and key heads: attn.q_norm, k_norm */
    bool rotated;                      /* the residual stream is rotated: ft-convert --rotate */
    bool tied; /* the LM head shares its weight with embed.word; encoders with FT_HEAD_LM, too */

    /*
     * Encoder-decoders; all 0 and false in others.  The members above (layers, heads, ffn,
     * kv_heads, head_size) describe the decoder.
     */
    ft_sinusoids sinusoids;
    int32_t encoder_layers, encoder_heads, encoder_ffn;
    int32_t encoder_head_size;        /* 0: hidden / encoder_heads */
    int32_t decoder_start_id, pad_id; /* first decoder token; padding after the end */
    int32_t forced_bos_id;            /* forced after the start token; -1 = none */
    int32_t forced_eos_id;            /* forced at the maximum length; -1 = none */
    int32_t banned[FT_MAX_BANNED];    /* ids that are never generated */
    int32_t num_banned;
    bool scale_embeddings; /* multiply embed.word by sqrt(hidden) */
    bool head_bias;        /* the LM head has a bias */
} ft_config;

/* "a text encoder", "a decoder", "an encoder-decoder", "an image encoder". */
const char *ft_kind_name(ft_kind kind);

/* Whether the model generates text; and whether it does so from a source text. */
bool ft_config_is_decoder(const ft_config *config);
bool ft_config_is_encoder_decoder(const ft_config *config);

/* Whether the model reads images; and the convolution that embeds their patches. */
bool ft_config_is_vision(const ft_config *config);
ft_conv ft_config_patches(const ft_config *config);

/* Columns per attention head: the explicit size, or else hidden / heads; 0 without heads. */
int32_t ft_config_head_size(const ft_config *config);
int32_t ft_config_encoder_head_size(const ft_config *config);

/*
 * Evaluate a product such as "heads*head_size", up to the end of the string, a ',' or a '/'.
 * Factors are integers, the names of int32 and bool members, head_size and encoder_head_size as
 * above, and flags, which are 0 or 1: "untied" (the LM head has its own weight), "dense_head" (a
 * dense layer before the classifier), "class_head", "token_head", "span_head", "lm_head" and
 * "lm_untied" (heads of encoders), "distillation" (a distillation token).  "dense_size_I",
 * "dense_input_I" and "dense_bias_I" are 0 without Dense layer I.  -1: a factor is unknown.
 */
int64_t ft_config_size(const ft_config *config, const char *expression);

/*
 * "none", "pooled", "dense", "relu", "first", "tokens", "span", "lm";
 * "single_label_classification", "multi_label_classification", "regression"; "none", "first",
 * "mean", "last", "max", "mean_sqrt_len", "weighted_mean"; "none", "default", "linear", "llama3",
 * "dynamic"; "none", "closed", "open".  The parsers return false for other strings and for NULL.
 */
const char *ft_head_name(ft_head head);
bool ft_head_parse(const char *name, ft_head *out);
const char *ft_problem_name(ft_problem problem_type);
bool ft_problem_parse(const char *name, ft_problem *out);
const char *ft_embedding_name(ft_embedding embedding);
bool ft_embedding_parse(const char *name, ft_embedding *out);
const char *ft_rope_name(ft_rope rope);
bool ft_rope_parse(const char *name, ft_rope *out);
const char *ft_sinusoids_name(ft_sinusoids sinusoids);
bool ft_sinusoids_parse(const char *name, ft_sinusoids *out);

/* Whether a head gives each text or image one row of logits; and whether it has labels. */
bool ft_head_is_classifier(ft_head head);
bool ft_head_has_labels(ft_head head);

/* The problem type if the configuration has none: multi-label for one label, else single-label. */
ft_problem ft_problem_default(int32_t labels);

/* The members that a kind of RoPE scaling uses; the others are 0. */
typedef struct ft_rope_use {
    bool factor, band, positions; /* rope_factor; rope_low and rope_high; rope_positions */
} ft_rope_use;
ft_rope_use ft_rope_uses(ft_rope rope);

/* Columns of the embedding; 0 without one. */
int32_t ft_config_embedding_size(const ft_config *config);

/* Minimum and maximum of the int32 member at offset `field` of a configuration. */
void ft_config_int_bounds(size_t field, int32_t *low, int32_t *high);

/* The same for its double members. */
void ft_config_real_bounds(size_t field, double *low, double *high);

/* Check that the members, each within its bounds, are consistent.  `label` names the file in
 * errors. FT_EFORMAT: they are not. */
FT_MUST_USE ft_status ft_config_check(const ft_config *config, const char *label, ft_error *err);

/*
 * Convert between configuration and manifest; `label` names the file in errors.  Members of
 * decoders are omitted if they are 0; members of encoder-decoders are written for these only, and
 * always. ft_config_to_json() returns NULL when out of memory.  ft_config_from_json() checks
 * everything; FT_EFORMAT: a member is missing, out of bounds or inconsistent.
 */
json_t *ft_config_to_json(const ft_config *config);
FT_MUST_USE ft_status ft_config_from_json(ft_config *out, const json_t *json, ft_kind kind,
                                          const char *label, ft_error *err);

/* Describe the configuration in words, without a newline: "6 layers, hidden 256, 4 heads, ..." */
void ft_config_write(const ft_config *config, FILE *file);

#pragma GCC visibility pop

#endif
