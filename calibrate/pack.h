/*
 * pack.h - writes the quantized artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_PACK_H
#define FT_CALIBRATE_PACK_H

#include "calibrate/weights/quantized.h"
#include "calibrate/weights/refine.h"

typedef struct ft_pack_options {
    const ft_model *model; /* float */
    ft_quantized_weight *quantized;
    size_t count;
    const ft_amax_table *amax; /* calibrated activation ranges, or NULL */
    const ft_smoothing *smoothing; /* [n_smoothing] smoothed points */
    size_t n_smoothing;
    json_t *recipe;            /* borrowed */
    json_t *provenance;        /* borrowed; NULL: that of the model */
    const char *selftest;      /* the entry of that name, borrowed, or NULL */
    size_t selftest_bytes;
    int threads;               /* for group-wise quantization */
    ft_refinement *refining;   /* data-driven quantization, or NULL */
} ft_pack_options;

/*
 * Writes the quantized artifact to `writer`, up to but not including ft_artifact_commit(). Weights
 * are quantized piece by piece while the file is written; the error of group-wise quantized ones is
 * stored with each.
 */
FT_MUST_USE ft_status ft_pack(ft_artifact_writer *writer, const ft_pack_options *options,
                              ft_error *err);

#endif
