/*
 * pack.h - a float artifact becomes one of codes.
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
    const ft_amax *amax;   /* where activations have calibrated ranges; else NULL */
    json_t *recipe;        /* borrowed */
    int threads;           /* that make blocks */
    ft_refining *refining; /* where sample data choose codes; else NULL */
} ft_packing;

/*
 * Write the artifact to a writer that has been created for it, up to ft_artifact_commit().  Weights
 * become codes piece by piece while the file is written; what blocks cost is noted with each.
 */
FT_MUST_USE ft_status ft_pack(ft_artifact_writer *writer, const ft_packing *what, ft_error *err);

#endif
