/*
 * model.h - an open artifact, its graph and its plan: what the tools see of a model.
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

/* The matrix that makes logits. */
#define FT_HEAD_WEIGHT "head.weight"

/* What a float artifact is opened for; ft_model_open() chooses by the artifact's state. */
typedef struct ft_purpose {
    ft_mode mode;
    bool int8_residual;
    bool dynamic;        /* activations are scaled row by row in the run; there is no amax */
    bool coded_head;     /* the matrix that makes logits is made codes like the others */
    const ft_amax *amax; /* of every point; FAKE from a float artifact, and ft_model_make() */

    /* Of float linears, whether one becomes int8; asked while the model is opened.  NULL: all do.
     */
    bool (*is_int8)(const void *user, const char *weight);
    const void *user;
} ft_purpose;

struct ft_model {
    char *path;            /* owned, as everything here; what error texts begin with */
    ft_artifact *artifact; /* NULL: made from weights in memory */
    const ft_family *family;
    ft_config config;
    ft_purpose purpose;
    bool fuse, has_cache, int8_cache, half_cache;
    bool borrows_head; /* of a float artifact that shares it with embeddings, for a head of codes */
    ft_weight *weight;
    bool *quantizable; /* [nweight]: is int8, or may become that */
    void **faked;      /* [nweight]: codes and scales made for FAKE mode, or NULL */
    int nweight;
    float *positions; /* made: rotary frequencies or a table of sinusoids; or NULL */
    ft_plan graph;    /* as the family wrote it */
    ft_plan plan;     /* lowered; sessions lay out copies */
    const ft_backend *backend;
    ft_device *device;
    json_t *labels; /* names of classes by number, or NULL */
};

/* ft_model_open() for a purpose of the caller's; `purpose` NULL lets the artifact decide. */
FT_MUST_USE ft_status ft_model_open_for(ft_model **out, const char *path,
                                        const ft_model_options *options, const ft_purpose *purpose,
                                        ft_error *err);

/* A model whose weights somebody else made, in memory. */
typedef struct ft_model_parts {
    const char *name; /* for error texts */
    const ft_family *family;
    const ft_config *config;
    const ft_weight *weight; /* [nweight], in the order of ft_family_weights() */
    size_t nweight;
} ft_model_parts;

/*
 * Plan these weights for a purpose: vectors in F32; linears in floats, in blocks, or as int8 codes,
 * which FAKE makes itself if need be.  Their data stay the caller's and must outlive the model,
 * which has neither labels nor a tokenizer.
 */
FT_MUST_USE ft_status ft_model_make(ft_model **out, const ft_model_parts *parts,
                                    const ft_model_options *options, const ft_purpose *purpose,
                                    ft_error *err);

#endif
