/*
 * lower_passes.h - the lowering passes outside lower.c, and their shared helpers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_LOWER_PASSES_H
#define FT_RUNTIME_GRAPH_LOWER_PASSES_H

#include "runtime/graph/lower.h"

/* ---- Lists of operations ------------------------------------------------------------------ */

bool ft_op_reads(const ft_op *op, int value);

/* Whether a value is quantized or fake-quantized. */
bool ft_value_is_quantized(const ft_value *value);

/* The operation of this kind that produces `value`, or NULL. */
ft_op *ft_lower_producer(ft_plan *plan, int value, ft_op_kind kind);

void ft_lower_remove(ft_plan *plan, int index);

/*
 * Insert an operation at `index`, right behind the one whose result it reads.  It belongs to the
 * same stack, encoder or decoder, as that one.  False: out of memory.
 */
bool ft_lower_insert(ft_plan *plan, int index, const ft_op *op);

/* "NAME.float" from "NAME"; the graph builder reserves space for the suffix. */
void ft_value_append_suffix(ft_value *value, const char *suffix);

/* ---- Quantization ------------------------------------------------------------------------- */

void ft_lower_approx_gelu(ft_plan *plan);
FT_MUST_USE bool ft_lower_quantize(ft_plan *plan,
                                   const ft_lower_options *options); /* false: out of memory */
void ft_lower_fold_quantize(ft_plan *plan);

/* ---- Fusion groups ------------------------------------------------------------------------ */

/* Whether the plan has a KV cache, so that its decode steps have few rows. */
bool ft_lower_is_decoder(const ft_plan *plan);

/* ---- Dtypes ------------------------------------------------------------------------------- */

/* For quantized plans.  `fused` is the plan itself or the fused plan of the same graph; both have
 * the same values. */
void ft_lower_assign_dtypes(ft_plan *plan, const ft_plan *fused, ft_dtype float_dtype);

/* For plans without quantized values. */
void ft_lower_set_float_dtype(ft_plan *plan, ft_dtype float_dtype);

/* Make the KV cache int8 and add its scales; false: out of memory. */
FT_MUST_USE bool ft_lower_int8_kv_cache(ft_plan *plan);
void ft_lower_f16_kv_cache(ft_plan *plan);

#endif
