/*
 * smooth.h - SmoothQuant for a whole model: factors of every input that can be scaled, folded into
 * the model.
 *
 * The outputs of the model stay what they are, up to float rounding:
 * runtime/graph/scale_fold.h says where that is exact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_SMOOTH_SMOOTH_H
#define FT_CALIBRATE_SMOOTH_SMOOTH_H

#include "calibrate/smooth/factors.h"
#include "calibrate/smooth/rewrite.h"
#include "calibrate/weights/quantized.h"

enum {
    FT_SMOOTH_ROWS = 512,    /* rows of each input by which factors are judged */
    FT_SMOOTH_SAMPLES = 128, /* samples they come from, at most */
};

typedef struct ft_smooth_options {
    ft_quantized_weight *quantized; /* [count]; int8 ones may be changed; borrowed */
    size_t count;
    ft_activation_stats_options stats; /* its kept_rows and moments are ignored */
    double alpha;                      /* of all factors; negative: search */

    /*
     * Keeps factors beside the model instead of folding them, for inputs with scales per row: those
     * that cannot be folded or, unless `is_folded`, all.
     */
    bool keeps, is_folded;
} ft_smooth_options;

typedef struct ft_smoothquant {
    ft_folded_scales scales;
    size_t inputs;        /* that can be scaled */
    size_t scaled_inputs; /* that are scaled */
    double error_ratio;   /* geometric mean of error / error without; NaN for a given alpha */
    ft_smoothing *kept;   /* [n_kept] if the options keep factors; names are the model's */
    size_t n_kept;
} ft_smoothquant;

/*
 * Chooses the factors. Inputs whose readers are all of scheme w8a8-dynamic are judged with scales
 * per row, others with one scale. fini also accepts a zeroed or failed one.
 *
 * Errors: those of ft_activation_stats_collect(), FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_smoothquant_init(ft_smoothquant *smoothing,
                                          const ft_smooth_options *options, ft_error *err);
void ft_smoothquant_fini(ft_smoothquant *smoothing);

/* The options of the statistics that it collects. */
ft_activation_stats_options ft_smooth_stats_options(const ft_smooth_options *options);

/* Hands the statistics that it would collect to a sink, over the samples of a shard. */
FT_MUST_USE ft_status ft_smoothquant_collect_shard(const ft_smooth_options *options, ft_shard shard,
                                                   const ft_stats_sink *sink, ft_error *err);

/* The model with the factors applied, for ft_rewrite_artifact(). Borrows `smoothing`. */
ft_rewrite ft_smoothquant_rewrite(ft_smoothquant *smoothing);

#endif
