/*
 * judge.c - scores of one prediction, and their accumulation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/math/elementary.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/eval/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- One prediction ----------------------------------------------------------------------- */

/* logsumexp; `max_logit` is the maximum of x. */
static double log_sum(const float *x, size_t n, double max_logit)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += ft_math_exp((double) x[i] - max_logit);
    return max_logit + ft_math_log(sum);
}

/* The mean of y - x weighted by softmax(y); entries of probability 0 (-inf) are skipped. */
static double mean_difference(const float *x, const float *y, size_t n, double log_sum_y)
{
    double mean = 0.0;
    for (size_t i = 0; i < n; i++) {
        double p = ft_math_exp((double) y[i] - log_sum_y);
        mean += p > 0.0 ? p * ((double) y[i] - (double) x[i]) : 0.0;
    }
    return mean;
}

ft_prediction_score ft_score_prediction(const float *logits, const float *other, size_t n,
                                        int32_t right)
{
    size_t best = ft_argmax(logits, n);
    double all = log_sum(logits, n, (double) logits[best]);
    ft_prediction_score prediction = {
        .nll = right >= 0 ? all - (double) logits[right] : (double) NAN,
        .right = right >= 0 && best == (size_t) right,
    };
    if (other == NULL)
        return prediction;
    size_t other_best = ft_argmax(other, n);
    double other_log_total = log_sum(other, n, (double) other[other_best]);
    double kl = mean_difference(logits, other, n, other_log_total) - other_log_total + all;
    prediction.kl = kl > 0.0 || isnan(kl) ? kl : 0.0; /* rounding may make it slightly negative */
    prediction.agrees = best == other_best;
    return prediction;
}

/* log(1 + e^x) */
static double softplus(double x)
{
    return (x > 0.0 ? x : 0.0) + ft_math_log1p(ft_math_exp(-fabs(x)));
}

ft_prediction_score ft_score_multi_label(const float *logits, const float *other, size_t n)
{
    double kl = 0.0;
    for (size_t i = 0; i < n; i++) {
        double x = (double) logits[i], y = (double) other[i];
        kl += ft_sigmoid(other[i]) * (y - x) + softplus(x) - softplus(y);
    }
    return (ft_prediction_score){
        .nll = (double) NAN,
        .kl = kl > 0.0 || isnan(kl) ? kl : 0.0,
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
