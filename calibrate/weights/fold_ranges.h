/*
 * fold_ranges.h - folds factors of AWQ and SmoothQuant into the model: inputs are divided, columns
 * multiplied, outputs unchanged.
 *
 * Columns with large inputs deserve finer quantization. Multiplying a column by a factor achieves
 * that, and the inverse is folded into the producer of its input, where the graph allows it:
 * runtime/graph/scale_fold.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_FOLD_RANGES_H
#define FT_CALIBRATE_WEIGHTS_FOLD_RANGES_H

#include "calibrate/weights/quantized.h"
#include "runtime/graph/scale_fold.h"

/* The factors by which a value was divided. */
typedef struct ft_folded_value {
    const char *name; /* the model's */
    size_t cols;
    float *factor;    /* [cols] */
    size_t delivered; /* bytes, while it is written */
} ft_folded_value;

/* Factors of a model's weights, each [nweight] of the model; NULL: none. */
typedef struct ft_folded_scales {
    const ft_model *model;
    float **row, **col; /* of matrices: a factor per row, and per column */
    float **vector;     /* of norms and biases: the new values instead of factors */
    ft_folded_value *value; /* [count] */
    size_t count;
} ft_folded_scales;

/* No factors yet. FT_ENOMEM. fini also accepts a zeroed or failed one. */
FT_MUST_USE ft_status ft_folded_scales_init(ft_folded_scales *scaling, const ft_model *model,
                                            ft_error *err);
void ft_folded_scales_fini(ft_folded_scales *scaling);

/*
 * Divides the value of a fold by factors, [fold->cols], positive and equal for columns that come
 * from one row. At most once per value. FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_folded_scales_add(ft_folded_scales *scaling, const ft_scale_fold *fold,
                                           const float *factor, ft_error *err);

/*
 * Announces a tensor for each value, with its factors (runtime/model/folded.h); the scales must
 * outlive the writing. Errors: those of ft_artifact_add_tensor().
 */
FT_MUST_USE ft_status ft_folded_scales_write(ft_folded_scales *scaling, ft_artifact_writer *writer,
                                             ft_error *err);

/*
 * Replaces what the model requires of its reader, borrowed or NULL, by a new reference to what the
 * artifact with these tensors requires. `scaling` NULL: none. FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_folded_scales_require(json_t **required, const ft_folded_scales *scaling,
                                               ft_error *err);

#endif
