/*
 * pack.h - writes the quantized artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_PACK_H
#define FT_CALIBRATE_PACK_H

#include "calibrate/weights/quantized.h"
#include "calibrate/weights/refine.h"

typedef struct ft_packing {
    const ft_model *model; /* float */
    ft_quantized *quantized;
    size_t count;
    const ft_amax *amax;   /* calibrated activation ranges, or NULL */
    json_t *recipe;        /* borrowed */
    int threads;           /* for group-wise quantization */
    ft_refining *refining; /* data-driven quantization, or NULL */
} ft_packing;

/*
 * Writes the quantized artifact to `writer`, up to but not including ft_artifact_commit(). Weights
 * are quantized piece by piece while the file is written; the error of group-wise quantized ones is
 * stored with each.
 */
FT_MUST_USE ft_status ft_pack(ft_artifact_writer *writer, const ft_packing *what, ft_error *err);

#endif
