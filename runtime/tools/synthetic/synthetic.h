/*
 * synthetic.h - models of a given shape with random weights, made in memory: what is timed when
 * only the shape matters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_SYNTHETIC_SYNTHETIC_H
#define FT_RUNTIME_TOOLS_SYNTHETIC_SYNTHETIC_H

#include "runtime/model/model.h"

typedef enum ft_synthetic_scheme {
    FT_SYNTHETIC_FLOAT,         /* everything in F32 */
    FT_SYNTHETIC_F16,           /* matrices in F16 */
    FT_SYNTHETIC_INT8,          /* linears as codes, other matrices in F16 */
    FT_SYNTHETIC_INT8_RESIDUAL, /* residual streams as codes too */
    FT_SYNTHETIC_DYNAMIC,       /* as INT8, activations scaled by row in the run: decoders */
    FT_SYNTHETIC_W4A16,         /* linears in blocks, other matrices in F16 */
    FT_SYNTHETIC_W8A16,
    FT_SYNTHETIC_W8A8_BLOCK, /* as W8A16, multiplied by codes */
    FT_SYNTHETIC_SCHEMES
} ft_synthetic_scheme;

/*
 * "float", "f16", "int8", "int8-residual", "w8a8-dynamic", "w4a16", "w8a16", "w8a8-block"; parse is
 * false for other words.
 */
const char *ft_synthetic_scheme_name(ft_synthetic_scheme scheme);
bool ft_synthetic_scheme_parse(const char *name, ft_synthetic_scheme *out);

/* Whether linears are in blocks. */
bool ft_synthetic_scheme_is_blocks(ft_synthetic_scheme scheme);

/* Shapes that have a name: "bert-base" and so on, from index 0; NULL past the last one. */
const char *ft_shape_name(size_t index);
bool ft_shape_parse(const char *name, ft_config *out);

/*
 * Give `weight`, whose sizes, dtype, layout and group are set, normal random data; codes are
 * quantized row by row, or group by group, and have scales.  The numbers depend on `key` alone.
 * Free with ft_weight_clear().
 */
typedef struct ft_distribution {
    uint64_t key;
    float mean, deviation;
} ft_distribution;

FT_MUST_USE ft_status ft_weight_fill(ft_weight *weight, const ft_distribution *how, int threads,
                                     ft_error *err);
void ft_weight_clear(ft_weight *weight);

/* All zero: nothing made yet. */
typedef struct ft_synthetic {
    const ft_family *family;
    ft_config config;
    ft_weight *weight; /* of layers that are alike, the first owns the data */
    size_t nweight;
    bool alike;
    ft_amax *amax; /* int8 schemes only */
    ft_purpose purpose;
} ft_synthetic;

typedef struct ft_synthetic_options {
    ft_synthetic_scheme scheme;
    int32_t group; /* of blocks: inputs that share a scale, 0: all of a row */
    bool alike;    /* layers of a decoder have the numbers of the first, those of an encoder
                      before it the numbers of its own first */
    int threads;
} ft_synthetic_options;

/*
 * Make weights as a model has them before it is trained: linears and tables of deviation 0.02 about
 * 0, gains of the norms about 1.  The ranges of int8 are measured: one layer of the same shape, in
 * float, is observed on 64 random tokens (of a translator, one of each half, on a source and a
 * target) or an image of noise, and every layer gets its ranges, since all layers are alike.  In
 * bert-base codes then have deviations of 16 to 38 at every point.
 *
 * On failure nothing needs to be freed.  FT_EUNSUPPORTED: no such scheme for this shape.
 */
FT_MUST_USE ft_status ft_synthetic_make(ft_synthetic *out, const ft_config *config,
                                        const ft_synthetic_options *how, ft_error *err);
void ft_synthetic_fini(ft_synthetic *made);

/* Set so many images of normal noise. */
FT_MUST_USE ft_status ft_synthetic_images(ft_session *session, size_t count, ft_error *err);

/* The model; `made` must outlive it. */
FT_MUST_USE ft_status ft_synthetic_open(ft_model **out, const ft_synthetic *made, const char *name,
                                        const ft_model_options *options, ft_error *err);

#endif
