/*
 * weight_variants.h - the float model with some matrices quantized in memory, each to a scheme of
 * its own, to measure what that costs at the output.
 *
 * Memory keeps what was quantized to 4 bits, 0.56 bytes a weight in groups of 32, because that is
 * used again and again; and the matrices that have 8 bits now, 1.06 bytes a weight.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_BUDGET_WEIGHT_VARIANTS_H
#define FT_CALIBRATE_BUDGET_WEIGHT_VARIANTS_H

#include "calibrate/mixed/loss.h"
#include "calibrate/weights/prefix.h"
#include "calibrate/weights/refine.h"

typedef struct ft_weight_variants_options {
    const char *path; /* the float artifact, borrowed like all pointers */
    bool quantized_head;
    const ft_recipe *recipe;              /* group-wise options of both widths */
    const ft_quantized_weight *quantized; /* [count] */
    size_t count;

    /*
     * The samples that imatrix, GPTQ and GPTAQ use.  GPTAQ is replaced by GPTQ, which needs no
     * order of the matrices, and AWQ is left out: it rescales pairs of them.  A device that rounds
     * all matrices at once rounds to nearest here.  NULL where the recipe uses no data.
     */
    const ft_activation_stats_options *stats;
    const char *device;
    int threads;
} ft_weight_variants_options;

/* A weight in 4 bits that was computed before; bytes NULL: none. */
typedef struct ft_kept_weight {
    void *bytes;
    ft_weight weight;
} ft_kept_weight;

typedef struct ft_weight_variants {
    ft_weight_variants_options options;
    ft_recipe recipe;               /* a shallow copy with other methods */
    ft_quantized_weight *quantized; /* [count]: with the schemes that they have now */
    int *weight;                    /* [count]: index in the model */
    ft_model *real;                 /* in float */
    ft_folded_scales unscaled;
    ft_refinement refining;
    ft_prefix prefix;
    ft_weight *original;  /* [weights of the model] */
    ft_kept_weight *kept; /* [count] */
} ft_weight_variants;

/*
 * Opens the float model, all of whose matrices stay float.  fini also accepts a zeroed or failed
 * one.  Errors of ft_model_open_with_config() and ft_refinement_init(); FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_weight_variants_init(ft_weight_variants *variants,
                                              const ft_weight_variants_options *options,
                                              ft_error *err);
void ft_weight_variants_fini(ft_weight_variants *variants);

/* Gives matrix number `index` a group-wise scheme, or float.  Errors of ft_prefix_quantize(). */
FT_MUST_USE ft_status ft_weight_variants_set(ft_weight_variants *variants, size_t index,
                                             ft_scheme scheme, ft_error *err);

/* The loss of the model as it is now.  Errors of opening and running it. */
FT_MUST_USE ft_status ft_weight_variants_measure(double *loss, const ft_weight_variants *variants,
                                                 const ft_reference *reference, ft_error *err);

/* Bytes that a matrix takes in the artifact: values, scales and zero points. */
uint64_t ft_scheme_bytes(const ft_recipe *recipe, const ft_weight_matrix *weights,
                         ft_scheme scheme);

#endif
