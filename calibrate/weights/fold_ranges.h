/*
 * fold_ranges.h - divide what linears multiply, and multiply their columns: the same results, other codes.
 *
 * Columns whose inputs are large deserve finer codes.  Multiplying a column by a factor gives it
 * those, and is undone where its input comes from: in the weights of a norm, or in the rows of the
 * linear before.  That is exact only where nothing stands in between that the factor does not pass
 * through, and where nobody else reads the value; the graph of a model tells.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_FOLD_RANGES_H
#define FT_CALIBRATE_WEIGHTS_FOLD_RANGES_H

#include "calibrate/weights/quantized.h"

/* A value of a graph that may be divided, by changing what makes it.  Weights are indices. */
typedef struct ft_fold {
    int value;
    size_t cols;
    int norm[2]; /* weight and bias of the norm that makes it; -1: none */
    int maker;   /* or the linear whose rows are divided; else -1 ... */
    int bias;    /* ... and its bias; or -1 */

    /* Of attention: heads of queries and of values.  Queries share the latter, so several columns
     * come from one row. */
    size_t heads, kv_heads;
} ft_fold;

/*
 * Whether `value` of a graph may be divided; in_blocks[weight] says which matrices may be changed,
 * those that become codes in blocks.  All its readers are linears of such matrices, and it is made
 * by a norm; or comes from one such linear by a gate, as its second operand, by relu, or by
 * attention, as its values.
 */
bool ft_fold_find(ft_fold *out, const ft_plan *graph, int value, const bool *in_blocks);

/* The element of the norm, or the row of the maker, that a column comes from. */
size_t ft_fold_row(const ft_fold *fold, size_t col);

/* What a model's weights are multiplied by, each [nweight] of the model; NULL: nothing. */
typedef struct ft_scaling {
    const ft_model *model;
    float **row, **col; /* of matrices: a factor for each */
    float **vector;     /* what becomes of a norm or a bias, instead of a factor */
} ft_scaling;

/* No factors yet.  FT_ENOMEM.  fini takes a zeroed or failed one too. */
FT_MUST_USE ft_status ft_scaling_init(ft_scaling *scaling, const ft_model *model, ft_error *err);
void ft_scaling_fini(ft_scaling *scaling);

/*
 * Divide the value of a fold by factors, [fold->cols], above 0, which are the same for columns that
 * come from one row.  A value is divided once.  FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_scaling_add(ft_scaling *scaling, const ft_fold *fold, const float *factor,
                                     ft_error *err);

#endif
