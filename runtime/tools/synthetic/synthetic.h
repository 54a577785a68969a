/*
 * synthetic.h - models of a given shape with random weights in memory, for benchmarks in which only
 * the shape matters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_SYNTHETIC_SYNTHETIC_H
#define FT_RUNTIME_TOOLS_SYNTHETIC_SYNTHETIC_H

#include "runtime/model/model.h"

typedef enum ft_synthetic_scheme {
    FT_SYNTHETIC_FLOAT,         /* everything in F32 */
    FT_SYNTHETIC_F16,           /* matrices in F16 */
    FT_SYNTHETIC_BF16,          /* matrices in BF16 */
    FT_SYNTHETIC_INT8,          /* int8 linears, other matrices in F16 */
    FT_SYNTHETIC_INT8_RESIDUAL, /* int8 residual streams too */
    FT_SYNTHETIC_W8A8_DYNAMIC,  /* as INT8 with dynamic activation scales per row */
    FT_SYNTHETIC_W4A16,         /* group-wise quantized linears, other matrices in F16 */
    FT_SYNTHETIC_W8A16,
    FT_SYNTHETIC_W8A8_BLOCK, /* as W8A16 with int8 activations */
    FT_NUM_SYNTHETIC_SCHEMES
} ft_synthetic_scheme;

/*
 * "float", "f16", "bf16", "int8", "int8-residual", "w8a8-dynamic", "w4a16", "w8a16", "w8a8-block";
 * parse is false for other words.
 */
const char *ft_synthetic_scheme_name(ft_synthetic_scheme scheme);
bool ft_synthetic_scheme_parse(const char *name, ft_synthetic_scheme *out);

/* Whether linears are group-wise quantized. */
bool ft_synthetic_scheme_is_groupwise(ft_synthetic_scheme scheme);

/* Named shapes: "bert-base" etc., from index 0; NULL after the last one. */
const char *ft_shape_name(size_t index);
bool ft_shape_parse(const char *name, ft_config *out);

/*
 * Fill `weight`, whose shape, dtype, layout and group size are set, with normal random data,
 * quantized per row or per group if its dtype is quantized.  The data depend on `key` and on the
 * backend that generates them only: the device's, or where it has no fill_normal(), counter_rng.h.
 * Free with ft_synthetic_weight_free().
 */
typedef struct ft_distribution {
    uint64_t key;
    float mean, deviation;
    const ft_backend *backend; /* NULL: counter_rng.h */
    ft_device *device;
} ft_distribution;

FT_MUST_USE ft_status ft_synthetic_weight_fill(ft_weight *weight, const ft_distribution *how,
                                               int threads, ft_error *err);
void ft_synthetic_weight_free(ft_weight *weight);

/* A zeroed structure is empty. */
typedef struct ft_synthetic {
    const ft_family *family;
    ft_config config;
    ft_weight *weight; /* shared layers point to the data of the first layer */
    size_t nweight;
    bool share_layers;
    ft_amax_table *amax; /* int8 schemes only */
    ft_quant_config quant;
} ft_synthetic;

typedef struct ft_synthetic_options {
    ft_synthetic_scheme scheme;
    int32_t group;     /* group size; 0: one group per row */
    bool share_layers; /* all decoder layers share the data of the first one, and so do all
                   layers of an encoder before it */
    int threads;
    const ft_backend *backend; /* generates the weights: see ft_distribution */
    ft_device *device;
    const ft_family *family; /* of the configuration; NULL: the one of its architecture type */
} ft_synthetic_options;

/*
 * Weights like those of an untrained model: linears and embeddings with mean 0 and standard
 * deviation 0.02, norm weights around 1.  The int8 ranges are calibrated on one float layer of the
 * same shape with 64 random tokens (encoder-decoders: one layer of each stack, with a source and a
 * target) or an image of noise, and used for all layers, since all layers have the same
 * distribution.  In bert-base the int8 values then have standard deviations of 16 to 38 at every
 * calibration point.
 *
 * On failure nothing needs to be freed.  FT_EUNSUPPORTED: no such scheme for this shape.
 */
FT_MUST_USE ft_status ft_synthetic_make(ft_synthetic *out, const ft_config *config,
                                        const ft_synthetic_options *how, ft_error *err);
void ft_synthetic_fini(ft_synthetic *made);

/* Set `count` images of normal noise as input. */
FT_MUST_USE ft_status ft_synthetic_images(ft_session *session, size_t count, ft_error *err);

/* Open the model; `made` must outlive it. */
FT_MUST_USE ft_status ft_synthetic_open(ft_model **out, const ft_synthetic *made, const char *name,
                                        const ft_model_options *options, ft_error *err);

#endif
