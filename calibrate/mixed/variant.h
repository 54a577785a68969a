/*
 * variant.h - a model in which every unit has a precision of its own, made from weights in memory.
 *
 * The weights are quantized once; a variant borrows them, so that making one takes little time.
 * Group-wise weights are made for the first variant that has them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIXED_VARIANT_H
#define FT_CALIBRATE_MIXED_VARIANT_H

#include "calibrate/mixed/units.h"
#include "calibrate/weights/groupwise.h"

typedef struct ft_variant_options {
    const char *path;             /* the float artifact */
    const ft_quant_config *quant; /* of the plan in which all units have their initial precision */
    ft_groupwise_options groupwise; /* of units with scales per group */
    const ft_unit *unit;            /* [units] of this artifact */
    size_t units;
    const char *device; /* where variants run */
    int threads;
} ft_variant_options;

typedef struct ft_variants {
    ft_variant_options options; /* what it points to is borrowed */
    ft_quant_config quant;      /* *options.quant */
    ft_model *real, *int8; /* on the CPU, in float and with this configuration */

    /* Of units with scales per token; NULL: none. */
    const ft_smoothing *smoothing; /* [n_smoothing], borrowed */
    size_t n_smoothing;
    ft_model *smoothed;     /* int8 with all of them */
    ft_smoothing *selected; /* [n_smoothing] of the next variant */

    ft_weight *weight;  /* [weights] of the next variant */
    ft_weight *grouped; /* [weights]: group-wise quantized; data NULL: not yet */
    void **bytes;       /* [weights]: of `grouped`, or NULL */
    size_t weights;
} ft_variants;

/*
 * Opens the artifact in float and quantized.  The options are copied.  fini also accepts a zeroed
 * or failed one.  Errors of ft_model_open_with_config(); FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_variants_init(ft_variants *variants, const ft_variant_options *options,
                                       ft_error *err);
void ft_variants_fini(ft_variants *variants);

/* Units with scales per token are smoothed with these factors from now on. */
FT_MUST_USE ft_status ft_variants_smooth(ft_variants *variants, const ft_smoothing *smoothing,
                                         size_t count, ft_error *err);

/* The smoothing of a unit, or NULL. */
const ft_smoothing *ft_variants_smoothing(const ft_variants *variants, const ft_unit *unit);

/*
 * The model with these precisions, [units]; it must not outlive the variants.  Errors of
 * ft_model_from_weights() and of quantizing group-wise.
 */
FT_MUST_USE ft_status ft_variant_open(ft_model **out, ft_variants *variants,
                                      const ft_precision *precision, ft_error *err);

/* The float model on the device. */
FT_MUST_USE ft_status ft_variant_open_float(ft_model **out, const ft_variants *variants,
                                            ft_error *err);

#endif
