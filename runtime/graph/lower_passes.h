/*
 * lower_passes.h - the passes of lower.c that have files of their own, and what they share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_LOWER_PASSES_H
#define FT_RUNTIME_GRAPH_LOWER_PASSES_H

#include "runtime/graph/lower.h"

/* ---- Lists of operations ------------------------------------------------------------------ */

bool ft_op_reads(const ft_op *op, int value);

/* Whether a value is stored as codes, or as floats that are faked from codes. */
bool ft_value_is_quantized(const ft_value *value);

/* The operation that makes `value`, if it is of this kind; else NULL. */
ft_op *ft_lower_producer(ft_plan *plan, int value, ft_op_kind kind);

void ft_lower_remove(ft_plan *plan, int index);

/*
 * What is inserted follows the operation whose result it reads, and belongs to the same run.  False
 * without memory.
 */
bool ft_lower_insert(ft_plan *plan, int index, const ft_op *op);

/* "NAME.float" from "NAME"; graphs leave room for it. */
void ft_value_append_suffix(ft_value *value, const char *suffix);

/* ---- Codes -------------------------------------------------------------------------------- */

void ft_lower_approx_gelu(ft_plan *plan);
FT_MUST_USE bool ft_lower_quantize(ft_plan *plan,
                                   const ft_lower_options *options); /* false: no memory */
void ft_lower_fold_quantize(ft_plan *plan);

/* ---- Fusion groups ------------------------------------------------------------------------ */

/* Whether the plan has a KV cache: its steps have few rows, and continue what others began. */
bool ft_lower_is_decoder(const ft_plan *plan);

/* ---- Types -------------------------------------------------------------------------------- */

/* `fused` is the plan itself, or the fused one of the same graph: their values correspond. */
void ft_lower_assign_dtypes(ft_plan *plan, const ft_plan *fused, ft_dtype float_dtype);

/* Of plans without codes. */
void ft_lower_set_float_dtype(ft_plan *plan, ft_dtype float_dtype);

/* Keys and values become codes in the cache; false without memory. */
FT_MUST_USE bool ft_lower_int8_kv_cache(ft_plan *plan);
void ft_lower_f16_kv_cache(ft_plan *plan);

#endif
