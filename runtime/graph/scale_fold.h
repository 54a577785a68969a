/*
 * scale_fold.h - which values of a graph can be scaled through their producer.
 *
 * AWQ and SmoothQuant divide the columns of a value by factors and multiply those of the matrices
 * that read it.  Folding puts the division into the producer of the value: the weights of a norm,
 * or the rows of the linear before.  That is exact only if every operation in between commutes
 * with the factors and no other operation reads the value.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_SCALE_FOLD_H
#define FT_RUNTIME_GRAPH_SCALE_FOLD_H

#include "kernels/backend.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* A value of a graph that can be scaled through its producer.  Weights are indices. */
typedef struct ft_scale_fold {
    int value;
    size_t cols;
    int norm[2];  /* weight and bias of the norm that produces it; -1: none */
    int producer; /* or the linear whose rows are divided; else -1 ... */
    int bias;     /* ... and its bias; or -1 */
    int produced; /* the value that `producer` writes; -1: none */

    /*
     * For attention: query heads and KV heads.  With grouped-query attention several columns map to
     * one row.
     */
    size_t heads, kv_heads;
} ft_scale_fold;

/*
 * Whether `value` of a graph can be scaled; may_change[weight] tells which matrices may be changed,
 * NULL: all.  All readers of the value must be linears with such matrices, and its producer a norm;
 * or it comes from one such linear through a gate as its second operand, through ReLU, or through
 * attention as its values.
 */
bool ft_scale_fold_find(ft_scale_fold *out, const ft_plan *graph, int value,
                        const bool *may_change);

/* The element of the norm, or the row of the producing linear, that a column comes from. */
size_t ft_scale_fold_row(const ft_scale_fold *fold, size_t col);

/* The first of the columns that come from the same one. */
size_t ft_scale_fold_first(const ft_scale_fold *fold, size_t col);

#pragma GCC visibility pop

#endif
