/*
 * model_config.h - the configuration of a model in our own terms; the manifest stores exactly this.
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
} ft_head;

typedef enum ft_embedding {
    FT_EMBEDDING_NONE,
    FT_EMBEDDING_FIRST, /* the first token's row */
    FT_EMBEDDING_MEAN,  /* mean over the sequence's rows */
} ft_embedding;

/* What the labels of a classifier are to each other: problem_type of transformers. */
typedef enum ft_problem {
    FT_PROBLEM_SINGLE,     /* one of them holds; logits become probabilities by softmax */
    FT_PROBLEM_MULTI,      /* each holds or does not: by sigmoid, also where there is only one */
    FT_PROBLEM_REGRESSION, /* they are quantities: logits are the result */
} ft_problem;

/* How rotary positions are scaled; runtime/graph/rope.h has the formulas. */
typedef enum ft_rope {
    FT_ROPE_NONE,    /* no rotary positions: an encoder */
    FT_ROPE_DEFAULT, /* not scaled */
    FT_ROPE_LINEAR,  /* all frequencies divided by the factor */
    FT_ROPE_LLAMA3,  /* low ones divided, high ones not, those between by and by */
    FT_ROPE_DYNAMIC, /* by the length of the sequence, once it is longer than rope_positions */
} ft_rope;

/* How positions are turned into rows of sines and cosines; runtime/graph/sinusoids.h has the
 * formulas. */
typedef enum ft_sinusoids {
    FT_SINUSOIDS_NONE,   /* none: no encoder-decoder */
    FT_SINUSOIDS_M2M100, /* the last frequency is 1/10000 (M2M100) */
    FT_SINUSOIDS_MARIAN, /* the one behind the last would be (Marian) */
} ft_sinusoids;

enum { FT_MAX_BANNED = 8 };

/* What a model reads and writes: its family states it, no member stands for it. */
typedef enum ft_kind {
    FT_KIND_ENCODER,         /* reads texts */
    FT_KIND_DECODER,         /* writes texts */
    FT_KIND_ENCODER_DECODER, /* reads a text and writes another */
    FT_KIND_VISION,          /* reads images */
} ft_kind;

typedef struct ft_config {
    ft_kind kind; /* the family's; the manifest does not repeat it */
    int32_t layers, hidden, heads, ffn, vocabulary, positions;
    int32_t max_seq_length;  /* tokens to which a text is cut, if it is cut; 0 = positions */
    int32_t types;           /* rows of the token type table; 0 = none */
    int32_t labels;          /* outputs of the classifier; 0 = none */
    int32_t position_offset; /* first position of a sequence (RoBERTa, M2M100: padding id + 1) */
    int32_t
        padding_id; /* RoBERTa and M2M100 number positions over tokens that differ from it; -1 */
    float eps;
    ft_activation activation;
    bool pooler;
    ft_head head;
    ft_problem problem_type; /* of a classifier */
    ft_embedding embedding;  /* what the output "embedding" is */
    bool normalize;          /* scale the embedding to unit length */

    /* Of images; all 0 elsewhere.  Positions are those of the rows that an image becomes. */
    int32_t channels, image_height, image_width;
    int32_t patch_height, patch_width;
    int32_t
        prefix_tokens; /* rows before those of the patches: the class's, and the distillation's */

    int32_t head_size; /* columns of a head; 0 in encoders: hidden / heads */

    /* Decoders; all 0 and false in encoders. */
    int32_t kv_heads;           /* heads of keys and values, each for heads / kv_heads of queries */
    int32_t window;             /* a token sees itself and window - 1 before it; 0 = all */
    int32_t window_first_layer; /* first layer where that is so */
    int32_t rope_positions;     /* of llama3 and dynamic: positions that need no scaling */
    ft_rope rope;
    double rope_theta, rope_factor;
    double rope_low, rope_high;        /* of llama3: where "low" ends and "high" begins */
    bool qkv_bias, out_bias, ffn_bias; /* of attn.q, k, v (ViT too); of attn.out; of ffn.* */
    bool qk_norm;                      /* queries and keys have norms: attn.q_norm, attn.k_norm */
    bool tied;                         /* the head's matrix is embed.word */

    /*
     * Encoder-decoders; all 0 and false elsewhere.  What other models have one of (layers, heads,
     * ffn, kv_heads, head_size) is the decoder's.
     */
    ft_sinusoids sinusoids;
    int32_t encoder_layers, encoder_heads, encoder_ffn;
    int32_t encoder_head_size;        /* 0: hidden / encoder_heads */
    int32_t decoder_start_id, pad_id; /* with which a text begins; that stands behind its end */
    int32_t forced_bos_id,
        forced_eos_id;             /* forced: behind the start; at the greatest length; -1 = none */
    int32_t banned[FT_MAX_BANNED]; /* that are never chosen */
    int32_t num_banned;
    bool scale_embeddings; /* rows of embed.word are multiplied by the root of `hidden` */
    bool head_bias;        /* logits have one */
} ft_config;

/* "a text encoder", "a decoder", "an encoder-decoder", "an image encoder". */
const char *ft_kind_name(ft_kind kind);

/* Whether it writes text, token after token; and whether it does so of a source that it reads. */
bool ft_config_is_decoder(const ft_config *config);
bool ft_config_is_encoder_decoder(const ft_config *config);

/* Whether it reads images; and the convolution that cuts them into patches. */
bool ft_config_is_vision(const ft_config *config);
ft_conv ft_config_patches(const ft_config *config);

/* Columns of a head of attention, the stated ones or those that heads share; 0 without heads. */
int32_t ft_config_head_size(const ft_config *config);
int32_t ft_config_encoder_head_size(const ft_config *config);

/*
 * A product such as "heads*head_size", up to the end of the text, a ',' or a '/'.  Factors are
 * whole numbers, the names of int32 and bool members, head_size and encoder_head_size as above, and
 * switches, which are 0 or 1: "untied" (the head has a matrix of its own), "dense_head" (a dense
 * layer below the classifier), "distillation" (a second leading row).  -1: a factor is unknown.
 */
int64_t ft_config_size(const ft_config *config, const char *expression);

/*
 * "none", "pooled", "dense", "relu", "first"; "single_label_classification",
 * "multi_label_classification", "regression"; "none", "first", "mean"; "none", "default", "linear",
 * "llama3", "dynamic"; "none", "closed", "open".  Parse is false for other words, and for NULL.
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

/* What so many labels are where nothing says it: one may hold or not, of several one does. */
ft_problem ft_problem_default(int32_t labels);

/* What a kind of scaling is described by; other members are 0. */
typedef struct ft_rope_use {
    bool factor, band, positions; /* rope_factor; rope_low and rope_high; rope_positions */
} ft_rope_use;
ft_rope_use ft_rope_uses(ft_rope rope);

/* Least and greatest value of the int32 at offset `field` of a configuration. */
void ft_config_int_bounds(size_t field, int32_t *low, int32_t *high);

/* The same for its doubles. */
void ft_config_real_bounds(size_t field, double *low, double *high);

/* What members within their bounds must be to each other; `what` names the file in errors. */
FT_MUST_USE ft_status ft_config_check(const ft_config *config, const char *label, ft_error *err);

/*
 * Between manifest and configuration; `what` names the file in errors.  All is checked.  What only
 * decoders have is written where it is not 0, and is 0 where it is not written; what only
 * encoder-decoders have is written for these, all of it.
 */
json_t *ft_config_to_json(const ft_config *config);
FT_MUST_USE ft_status ft_config_from_json(ft_config *out, const json_t *json, ft_kind kind,
                                          const char *label, ft_error *err);

/* For people, without an end of line: "6 layers, hidden 256, 4 heads, ..." */
void ft_config_write(const ft_config *config, FILE *file);

#pragma GCC visibility pop

#endif
