/*
 * judge.c - scores of one prediction, and their accumulation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/eval/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- One prediction ----------------------------------------------------------------------- */

/* logsumexp; `max_logit` is the maximum of x. */
static double log_sum(const float *x, size_t n, double most)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double) x[i] - most);
    return most + log(sum);
}

/* The mean of y - x weighted by softmax(y); entries of probability 0 (-inf) are skipped. */
static double mean_difference(const float *x, const float *y, size_t n, double log_sum_y)
{
    double mean = 0.0;
    for (size_t i = 0; i < n; i++) {
        double p = exp((double) y[i] - log_sum_y);
        mean += p > 0.0 ? p * ((double) y[i] - (double) x[i]) : 0.0;
    }
    return mean;
}

ft_verdict ft_judge(const float *logits, const float *other, size_t n, int32_t right)
{
    size_t best = ft_largest(logits, n);
    double all = log_sum(logits, n, (double) logits[best]);
    ft_verdict verdict = {
        .nll = right >= 0 ? all - (double) logits[right] : (double) NAN,
        .right = right >= 0 && best == (size_t) right,
    };
    if (other == NULL)
        return verdict;
    size_t other_best = ft_largest(other, n);
    double other_all = log_sum(other, n, (double) other[other_best]);
    double kl = mean_difference(logits, other, n, other_all) - other_all + all;
    verdict.kl = kl > 0.0 || isnan(kl) ? kl : 0.0; /* rounding may make it slightly negative */
    verdict.agrees = best == other_best;
    return verdict;
}

/* log(1 + e^x) */
static double softplus(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}

ft_verdict ft_judge_labels(const float *logits, const float *other, size_t n)
{
    double kl = 0.0;
    for (size_t i = 0; i < n; i++) {
        double x = (double) logits[i], y = (double) other[i];
        kl += ft_sigmoid(other[i]) * (y - x) + softplus(x) - softplus(y);
    }
    return (ft_verdict){
        .nll = (double) NAN,
        .kl = kl > 0.0 || isnan(kl) ? kl : 0.0,
        .agrees = ft_classes_agree(FT_PROBLEM_MULTI, logits, other, n),
    };
}

/* ---- Accumulation ------------------------------------------------------------------------- */

ft_status ft_judgement_init(ft_judgement *out, size_t rows, bool compares, ft_error *err)
{
    *out = (ft_judgement){ .rows = rows, .compares = compares };
    out->nll = ft_array(rows, sizeof *out->nll);
    out->predictions = ft_array(rows, sizeof *out->predictions);
    if (out->nll != NULL && out->predictions != NULL)
        return FT_OK;
    ft_judgement_fini(out);
    return ft_fail(err, FT_ENOMEM, "no memory for %zu rows", rows);
}

void ft_judgement_fini(ft_judgement *judgement)
{
    free(judgement->nll);
    free(judgement->predictions);
    free(judgement->kl);
    ft_tally_fini(&judgement->tally);
    ft_tally_fini(&judgement->against);
    *judgement = (ft_judgement){ 0 };
}

static ft_status add_kl(ft_judgement *j, double kl, ft_error *err)
{
    if (j->count == j->room) {
        double *grown = ft_grown(j->kl, &j->room, 4096, sizeof *grown);
        if (grown == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for %zu predictions", j->count + 1);
        j->kl = grown;
    }
    j->kl[j->count] = kl;
    return FT_OK;
}

ft_status ft_judgement_add(ft_judgement *judgement, size_t row, int32_t right,
                           const ft_verdict *verdict, ft_error *err)
{
    if ((right >= 0 && !isfinite(verdict->nll)) || (judgement->compares && isnan(verdict->kl)))
        return ft_fail(err, FT_ENUMBER, "row %zu: the logits of prediction %zu are not finite", row,
                       judgement->predictions[row]);
    if (judgement->compares)
        FT_TRY(add_kl(judgement, verdict->kl, err));
    judgement->count++;
    judgement->predictions[row]++;
    judgement->agreed += verdict->agrees;
    judgement->known += right >= 0;
    judgement->right += verdict->right;
    judgement->nll[row] += right >= 0 ? verdict->nll : 0.0;
    return FT_OK;
}

/* ---- Results ------------------------------------------------------------------------------ */

double ft_judgement_perplexity(const ft_judgement *judgement)
{
    double sum = 0.0;
    for (size_t row = 0; row < judgement->rows; row++)
        sum += judgement->nll[row];
    return exp(sum / (double) judgement->known);
}

double ft_judgement_mean_kl(const ft_judgement *judgement)
{
    double sum = 0.0;
    for (size_t i = 0; i < judgement->count; i++)
        sum += judgement->kl[i];
    return sum / (double) judgement->count;
}

static int smaller_first(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return x > y ? 1 : x < y ? -1 : 0;
}

double ft_judgement_most_kl(ft_judgement *judgement, double part)
{
    size_t count = judgement->count;
    if (count == 0)
        return (double) NAN;
    qsort(judgement->kl, count, sizeof *judgement->kl, smaller_first);
    double place = ceil(part * (double) count);
    return judgement->kl[place < 1.0 ? 0 : (size_t) place - 1];
}
