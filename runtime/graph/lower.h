/*
 * lower.h - from a family's graph to the plan for one purpose.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_LOWER_H
#define FT_RUNTIME_GRAPH_LOWER_H

#include "kernels/op.h"

typedef enum ft_mode {
    FT_MODE_FLOAT,         /* compute in float */
    FT_MODE_OBSERVE,       /* compute in float, and count the values of every point */
    FT_MODE_FAKE_QUANTIZE, /* quantize every point as int8 does, but hold the codes in float */
    FT_MODE_INT8,          /* compute on int8 codes */
} ft_mode;

typedef struct ft_lower_options {
    ft_mode mode;
    bool fuse;
    bool int8_residual;   /* residual streams are codes too (FasterTransformer's int8_mode 2) */
    bool dynamic;         /* points are scaled row by row in the run: there is no `scale` */
    bool f16_kv_cache;    /* keys and values are cached in F16, where they would be in F32 */
    bool int8_kv_cache;   /* keys and values are cached as codes, with a scale a token and head */
    const float *scale;   /* [graph->nvalue]: of each point; FAKE and INT8 only */
    ft_dtype float_dtype; /* FLOAT: of all values; FAKE and INT8: of those below; OBSERVE: F32 */
} ft_lower_options;

/*
 * Make the plan.  In FAKE and INT8 mode the linears whose weight has scales read codes; the plan's
 * arithmetic is the same in both, so their codes are equal: they differ in who multiplies.
 *
 * Beside the codes there are real values, the residual stream above all, which cost a device more
 * time to move than to compute.  Those that have a row for each token have the dtype `real`, F16 or
 * F32, with two exceptions that stay F32:
 *   - what the fused plan does not store, also in the unfused one: so both give the same bits;
 *   - what attention or a product of floats reads or writes: those compute in one precision.
 * Arithmetic is in float all the same; a value is rounded where it is stored.
 *
 * Decoders differ.  Their residual stream knows no bounds (single values of thousands are common),
 * so it stays F32; what attention and gates read and write has the dtype `real`, and so has the
 * cache, unless it is int8.  Logits are F32.
 *
 * Without `fuse` no operation swallows another one.  Fusion groups are found all the same: a batch
 * of the float library may give other bits than single GEMMs, and fused and unfused plans must
 * agree.  All other kernels of groups give the bits of their operations.
 *
 * On failure *out is empty; free it with ft_plan_fini().
 */
FT_MUST_USE ft_status ft_lower(ft_plan *out, const ft_plan *graph, const ft_lower_options *options,
                               ft_error *err);

/*
 * Find the fusion groups of a plan (kernels/fused_ops.h) anew.  ft_lower() does it last; whoever
 * marks values of the plan as kept does it again, because a group need not write what only it
 * reads.
 */
FT_MUST_USE ft_status ft_lower_groups(ft_plan *plan, ft_error *err);

#endif
