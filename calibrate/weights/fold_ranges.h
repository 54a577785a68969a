/*
 * fold_ranges.h - folds AWQ factors into the model: inputs are divided, columns multiplied, outputs
 * unchanged.
 *
 * Columns with large inputs deserve finer quantization. Multiplying a column by a factor achieves
 * that, and the inverse is folded into the producer of its input: the weights of a norm, or the
 * rows of the linear before. That is exact only if every operation in between commutes with the
 * factor and no other operation reads the value; the graph of the model decides.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_FOLD_RANGES_H
#define FT_CALIBRATE_WEIGHTS_FOLD_RANGES_H

#include "calibrate/weights/quantized.h"

/* A value of a graph that can be scaled through its producer. Weights are indices. */
typedef struct ft_scale_fold {
    int value;
    size_t cols;
    int norm[2];  /* weight and bias of the norm that produces it; -1: none */
    int producer; /* or the linear whose rows are divided; else -1 ... */
    int bias;     /* ... and its bias; or -1 */

    /*
     * For attention: query heads and KV heads. With grouped-query attention several columns map to
     * one row.
     */
    size_t heads, kv_heads;
} ft_scale_fold;

/*
 * Whether `value` of a graph can be scaled; is_groupwise[weight] tells which matrices may be
 * changed, those with group-wise quantization. All readers of the value must be linears with such
 * matrices, and its producer a norm; or it comes from one such linear through a gate as its second
 * operand, through ReLU, or through attention as its values.
 */
bool ft_scale_fold_find(ft_scale_fold *out, const ft_plan *graph, int value,
                        const bool *is_groupwise);

/* The element of the norm, or the row of the producing linear, that a column comes from. */
size_t ft_scale_fold_row(const ft_scale_fold *fold, size_t col);

/* Factors of a model's weights, each [nweight] of the model; NULL: none. */
typedef struct ft_folded_scales {
    const ft_model *model;
    float **row, **col; /* of matrices: a factor per row, and per column */
    float **vector;     /* of norms and biases: the new values instead of factors */
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

#endif
