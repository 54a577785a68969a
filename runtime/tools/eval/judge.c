/*
 * judge.c - scores of one prediction, and their accumulation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/math/elementary.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/scores/divergence.h"
#include "runtime/tools/eval/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- One prediction ----------------------------------------------------------------------- */

ft_prediction_score ft_score_prediction(const float *logits, const float *other, size_t n,
                                        int32_t right)
{
    size_t best = ft_argmax(logits, n);
    double all = ft_log_sum_exp(logits, n, (double) logits[best]);
    ft_prediction_score prediction = {
        .nll = right >= 0 ? all - (double) logits[right] : (double) NAN,
        .right = right >= 0 && best == (size_t) right,
    };
    if (other == NULL)
        return prediction;
    size_t other_best = ft_argmax(other, n);
    double other_all = ft_log_sum_exp(other, n, (double) other[other_best]);
    prediction.kl = ft_softmax_divergence(logits, all, other, other_all, n);
    prediction.agrees = best == other_best;
    return prediction;
}

ft_prediction_score ft_score_multi_label(const float *logits, const float *other, size_t n)
{
    return (ft_prediction_score){
        .nll = (double) NAN,
        .kl = ft_sigmoid_divergence(logits, other, n),
        .agrees = ft_predictions_agree(FT_PROBLEM_MULTI, logits, other, n),
    };
}

/* ---- Accumulation ------------------------------------------------------------------------- */

ft_status ft_eval_result_init(ft_eval_result *out, size_t rows, bool compares, ft_error *err)
{
    *out = (ft_eval_result){ .rows = rows, .compares = compares };
    out->nll = ft_calloc(rows, sizeof *out->nll);
    out->predictions = ft_calloc(rows, sizeof *out->predictions);
    if (out->nll != NULL && out->predictions != NULL)
        return FT_OK;
    ft_eval_result_fini(out);
    return ft_fail(err, FT_ENOMEM, "no memory for %zu rows", rows);
}

void ft_eval_result_fini(ft_eval_result *result)
{
    free(result->nll);
    free(result->predictions);
    free(result->kl);
    ft_metric_accumulator_fini(&result->metrics);
    ft_metric_accumulator_fini(&result->against);
    *result = (ft_eval_result){ 0 };
}

static ft_status add_kl(ft_eval_result *j, double kl, ft_error *err)
{
    if (j->count == j->capacity) {
        double *grown = ft_array_grow(j->kl, &j->capacity, 4096, sizeof *grown);
        if (grown == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for %zu predictions", j->count + 1);
        j->kl = grown;
    }
    j->kl[j->count] = kl;
    return FT_OK;
}

ft_status ft_eval_result_add(ft_eval_result *result, size_t row, int32_t right,
                             const ft_prediction_score *prediction, ft_error *err)
{
    if ((right >= 0 && !isfinite(prediction->nll)) || (result->compares && isnan(prediction->kl)))
        return ft_fail(err, FT_ENONFINITE, "row %zu: the logits of prediction %zu are not finite",
                       row, result->predictions[row]);
    if (result->compares)
        FT_TRY(add_kl(result, prediction->kl, err));
    result->count++;
    result->predictions[row]++;
    result->num_agreed += prediction->agrees;
    result->num_labeled += right >= 0;
    result->right += prediction->right;
    result->nll[row] += right >= 0 ? prediction->nll : 0.0;
    return FT_OK;
}

/* ---- Results ------------------------------------------------------------------------------ */

double ft_eval_perplexity(const ft_eval_result *result)
{
    double sum = 0.0;
    for (size_t row = 0; row < result->rows; row++)
        sum += result->nll[row];
    return ft_math_exp(sum / (double) result->num_labeled);
}

double ft_eval_mean_kl(const ft_eval_result *result)
{
    double sum = 0.0;
    for (size_t i = 0; i < result->count; i++)
        sum += result->kl[i];
    return sum / (double) result->count;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return x > y ? 1 : x < y ? -1 : 0;
}

double ft_eval_kl_quantile(ft_eval_result *result, double quantile)
{
    size_t count = result->count;
    if (count == 0)
        return (double) NAN;
    qsort(result->kl, count, sizeof *result->kl, ascending);
    double rank = ceil(quantile * (double) count);
    return result->kl[rank < 1.0 ? 0 : (size_t) rank - 1];
}
