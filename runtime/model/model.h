/*
 * model.h - an open model: artifact, weights, graph and plan; internal to the library and its
 * tools.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_MODEL_H
#define FT_RUNTIME_MODEL_MODEL_H

#include "kernels/backend.h"
#include "runtime/container/amax.h"
#include "runtime/container/artifact.h"
#include "runtime/families/family.h"
#include "runtime/graph/lower.h"
#include "runtime/tuning/tuning.h"
#include "runtime/text/embedding_prompts.h"
#include "runtime/text/translator.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* The matrix that makes logits. */
#define FT_HEAD_WEIGHT "head.weight"

/* Role of the vectors that smooth calibration points: runtime/model/smoothing.h. */
#define FT_SMOOTHING_ROLE "smoothing"

/* The smallest factor or reciprocal; the largest is its inverse. */
#define FT_SMOOTHING_MIN 1e-6f

/* Smoothing factors of a calibration point, by which the columns of its readers are multiplied. */
typedef struct ft_smoothing {
    const char *point;
    size_t cols;
    const float *factor; /* [cols] */
} ft_smoothing;

/* The vector that an artifact stores: out[i] = 1 / factor[i]. */
void ft_smoothing_reciprocals(float *out, const float *factor, size_t count);

/* How to quantize a model when it is opened; ft_model_open() derives this from the artifact. */
typedef struct ft_quant_config {
    ft_mode mode;
    bool int8_residual;
    bool dynamic;              /* there is no amax: all activations have a scale per row */
    bool quantized_head;       /* the LM head is quantized like the other linears */
    const ft_amax_table *amax; /* of every calibration point; for FAKE on a float artifact, and
                                  ft_model_from_weights() */

    /* Selects the float linears to quantize, called while the model is opened.  NULL: all. */
    bool (*is_int8)(const void *user, const char *weight);
    const void *user;

    const ft_smoothing *smoothing; /* of float artifacts and weights in memory */
    size_t n_smoothing;
} ft_quant_config;

struct ft_model {
    char *path;            /* owned like all members; prefix of error messages */
    ft_artifact *artifact; /* NULL: built from weights in memory */
    const ft_family *family;
    ft_config config;
    ft_quant_config quant;
    bool fuse, has_cache, int8_kv_cache, f16_kv_cache;
    bool shares_embedding; /* the quantized head is made from the tied embedding of a float artifact
                            */
    ft_weight *weight;
    bool *quantizable;     /* [nweight]: is int8 or can be quantized to int8 */
    void **quantized;      /* [nweight]: data of weights that opening quantized, or NULL */
    int nweight;
    float *positions; /* computed RoPE frequencies or sinusoidal table, or NULL */
    ft_plan graph;    /* as built by the family */
    ft_plan plan;     /* lowered; each session lays out a copy */
    const ft_backend *backend;
    ft_device *device;
    char tuning_note[FT_TUNING_NOTE]; /* why the tuning file is ignored, or empty */
    json_t *labels; /* id2label of the checkpoint, or NULL */
};

/* Whether the model generates text: a decoder that embeds has no LM head. */
bool ft_model_generates(const ft_model *model);

/* ft_model_open() with the caller's quantization; NULL: as the artifact says. */
FT_MUST_USE ft_status ft_model_open_with_config(ft_model **out, const char *path,
                                                const ft_model_options *options,
                                                const ft_quant_config *quant, ft_error *err);

/*
 * Open the tokenizers of a model for a pair of languages. FT_EUNSUPPORTED: the artifact has no
 * tokenizer. The errors of ft_translator_init().
 */
FT_MUST_USE ft_status ft_translator_open_model(ft_translator *out, const ft_model *model,
                                               const ft_language_pair *pair, ft_error *err);

/* The token that is generated first: the target language, else the model's forced BOS; -1: none. */
int32_t ft_translator_first_token(const ft_translator *translator, const ft_model *model);

/*
 * ft_model_open() for embeddings: a decoder that has none gets the last token's row of the last
 * hidden state, scaled to unit L2 norm, and generates no text. FT_EUNSUPPORTED: another model
 * without an embedding.
 */
FT_MUST_USE ft_status ft_model_open_for_embedding(ft_model **out, const char *path,
                                                  const ft_model_options *options, ft_error *err);

/*
 * Open the prompts of a model and find one by its name, or the default one if `name` is NULL, which
 * may be empty; *prompt is part of *out. FT_EARG: there is no such prompt; the text lists all.
 * Free with ft_embedding_prompts_fini(), also after a failure.
 */
FT_MUST_USE ft_status ft_embedding_prompts_open_model(ft_embedding_prompts *out,
                                                      const char **prompt, const ft_model *model,
                                                      const char *name, ft_error *err);

/* A model built from weights in memory. */
typedef struct ft_model_parts {
    const char *name; /* for error messages */
    const ft_family *family;
    const ft_config *config;
    const ft_weight *weight; /* [nweight], in the order of ft_family_weights() */
    size_t nweight;
} ft_model_parts;

/*
 * Build a model from weights in memory: vectors in F32; linears in float, group-wise quantized or
 * int8 (FAKE quantizes float linears itself).  The caller keeps ownership of the data, which must
 * outlive the model.  The model has no labels and no tokenizer.
 */
FT_MUST_USE ft_status ft_model_from_weights(ft_model **out, const ft_model_parts *parts,
                                            const ft_model_options *options,
                                            const ft_quant_config *quant, ft_error *err);

/* The index of the label with that name in id2label, at least `first`; -1: none has it. */
int32_t ft_model_find_label(const ft_model *model, const char *name, int32_t first);

#pragma GCC visibility pop

#endif
