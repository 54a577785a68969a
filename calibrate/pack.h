/*
 * pack.h - a float artifact, ranges and scales become an int8 artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_PACK_H
#define FT_CALIBRATE_PACK_H

#include "calibrate/weights.h"
#include "runtime/model.h"

/* One weight that is to be quantized. */
typedef struct ft_quantized {
    ft_weights weights; /* of the float artifact, borrowed */
    float *scale;       /* [rows], owned */
} ft_quantized;

/*
 * Find the scales of all weights that int8 quantizes, in the order of the model's tensors.
 * *out is an array of *count, to be freed with ft_quantized_free(), also after a failure.
 */
FT_MUST_USE ft_status ft_quantized_new(ft_quantized **out, size_t *count, const ft_model *model,
                                       ft_error *err);
void ft_quantized_free(ft_quantized *quantized, size_t count);

/*
 * Write the int8 artifact to a writer that has been created for it.  `recipe` is taken over.
 * Weights are quantized block by block while the file is written.
 */
FT_MUST_USE ft_status ft_pack(ft_artifact_writer *writer, const ft_model *model,
                              const ft_amax *amax, const ft_quantized *quantized, size_t count,
                              json_t *recipe, ft_error *err);

#endif
