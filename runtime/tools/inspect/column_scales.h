/*
 * column_scales.h - how the columns of a quantized model's values differ from the float model's.
 *
 * Factors that are folded divide a value and multiply the columns of the matrices that read it
 * (runtime/model/folded.h).  Smoothing multiplies a value when it is quantized, by reciprocals
 * (runtime/model/smoothing.h), with the same effect on these matrices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_INSPECT_COLUMN_SCALES_H
#define FT_RUNTIME_TOOLS_INSPECT_COLUMN_SCALES_H

#include "runtime/model/folded.h"
#include "runtime/tools/inspect/weight_error.h"

/* By what the columns of the values of a model's graph were divided, [cols]; NULL: they were not.
 */
typedef struct ft_column_scales {
    const ft_model *model;
    ft_folded folded;  /* of the float value */
    float **quantized; /* [nvalue of the graph], of the value that is quantized; owned */
} ft_column_scales;

/* Free with ft_column_scales_fini(), also after a failure.  FT_ENOMEM. */
FT_MUST_USE ft_status ft_column_scales_init(ft_column_scales *out, const ft_model *model,
                                            ft_error *err);
void ft_column_scales_fini(ft_column_scales *scales);

/*
 * Divisors of the value `name` of the plan as sessions return it, which undo smoothing but not
 * folding.  NAME.float and NAME.back have those of NAME.
 */
const float *ft_column_scales_of_value(const ft_column_scales *scales, const char *name);

/* Divisors of the calibration point `name` before it was quantized. */
const float *ft_column_scales_of_point(const ft_column_scales *scales, const char *name);

/* How matrix `index` of the model differs from the float matrix. */
ft_weight_rescaling ft_column_scales_of_matrix(const ft_column_scales *scales, int index);

#endif
