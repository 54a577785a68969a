/*
 * lower.h - lowers the graph of a model to the plan for one mode.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_LOWER_H
#define FT_RUNTIME_GRAPH_LOWER_H

#include "kernels/op.h"

typedef enum ft_mode {
    FT_MODE_FLOAT,         /* compute in float */
    FT_MODE_OBSERVE,       /* compute in float and count the values of every calibration point */
    FT_MODE_FAKE_QUANTIZE, /* quantize as INT8 does, but hold the quantized values in float */
    FT_MODE_INT8,          /* compute on int8 values */
} ft_mode;

typedef struct ft_lower_options {
    ft_mode mode;
    bool fuse;
    bool int8_residual;   /* quantize residual streams too (FasterTransformer's int8_mode 2) */
    bool f16_kv_cache;    /* an F16 KV cache instead of F32 */
    bool int8_kv_cache;   /* an int8 KV cache with one scale per token and head */
    /*
     * [graph->nvalue], FAKE and INT8 only: the static scale of each point; 0: every forward pass
     * computes a scale per row (dynamic).
     */
    const float *scale;
    ft_dtype float_dtype; /* FLOAT: all values; FAKE and INT8: see below; OBSERVE: F32 */
} ft_lower_options;

/*
 * Lower `graph`.  In FAKE and INT8 mode the linears whose weights have scales read quantized
 * values.  Both modes quantize to the same values; only the GEMM differs, float or integer.
 *
 * Bidirectional attention reads quantized queries, keys and values if all three have static
 * scales, else floats.
 *
 * Values that are not quantized, mainly the residual stream, cost more time to move than to
 * compute.  Those with one row per token have the dtype `float_dtype`, F16 or F32, with two
 * exceptions that stay F32:
 *   - values that the fused plan does not store, so that fused and unfused plans give the same
 *     bits;
 *   - values that bidirectional attention or a float GEMM reads or writes, because their kernels
 *     require one dtype for all float operands.
 * Arithmetic is in float32 in any case; a value is rounded when it is stored.
 *
 * Decoders differ.  The magnitude of their residual stream is unbounded (values in the thousands
 * are common), so it stays F32.  The values that attention and gates read and write have the dtype
 * `float_dtype`, and so does the KV cache unless it is int8.  Logits are F32.
 *
 * Without `fuse` no operations are merged, but fusion groups are still formed: a batched GEMM of
 * the float library may give other bits than single GEMMs, and fused and unfused plans must agree.
 * All other group kernels give the same bits as their operations run one by one.
 *
 * FT_ENOMEM: out of memory; then *out is empty.  Free *out with ft_plan_fini().
 */
FT_MUST_USE ft_status ft_lower(ft_plan *out, const ft_plan *graph, const ft_lower_options *options,
                               ft_error *err);

/*
 * Form the fusion groups of a plan (kernels/fused_ops.h).  ft_lower() does it last.  Call it again
 * after marking values of the plan as kept, because a group need not write a value that only the
 * group reads.
 */
FT_MUST_USE ft_status ft_lower_groups(ft_plan *plan, ft_error *err);

#endif
