/*
 * lower.h - from a family's graph to the plan for one purpose.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_LOWER_H
#define FT_RUNTIME_LOWER_H

#include "kernels/op.h"

typedef enum ft_mode {
    FT_MODE_FLOAT,   /* compute in float */
    FT_MODE_OBSERVE, /* compute in float, and count the values of every point */
    FT_MODE_FAKE,    /* quantize every point as int8 does, but hold the codes in float */
    FT_MODE_INT8,    /* compute on int8 codes */
} ft_mode;

typedef struct ft_lowering {
    ft_mode mode;
    bool fuse;
    bool int8_residual; /* residual streams are codes too (FasterTransformer's int8_mode 2) */
    const float *scale; /* [graph->nvalue]: of each point; FAKE and INT8 only */
    ft_dtype real;      /* of the values of a FLOAT plan; F32 in all others */
} ft_lowering;

/*
 * Make the plan.  In FAKE and INT8 mode the linears whose weight has scales read codes; the plan's
 * arithmetic is the same in both, so their codes are equal: they differ in who multiplies.
 * On failure *out is empty; free it with ft_plan_fini().
 */
FT_MUST_USE ft_status ft_lower(ft_plan *out, const ft_plan *graph, const ft_lowering *how,
                               ft_error *err);

#endif
