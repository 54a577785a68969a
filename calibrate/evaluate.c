/*
 * evaluate.c - the end-to-end error of a quantized model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/evaluate.h"

#include "runtime/scores/class_scores.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "runtime/model/session.h"

#include <math.h>
#include <stdlib.h>

/* One of the two models, and its output for the current batch as [rows, cols]. */
typedef struct side {
    ft_model *model;
    ft_session *session;
    float *out;
    size_t rows, cols;
} side;

/* The output by which users judge the model. */
static const char *judged_output(const ft_model *model)
{
    ft_model_info info = ft_model_get_info(model);
    return info.labels > 0 ? "logits" : info.embedding ? "embedding" : "last_hidden_state";
}

/* Tokens per batch: enough rows for all threads, and at least one sample. */
static size_t run_tokens(const ft_dataset *data)
{
    size_t longest = ft_dataset_longest(data);
    return longest < 2048 ? 2048 : longest;
}

static ft_status open_side(side *s, const char *path, const ft_purpose *purpose,
                           const ft_dataset *data, const char *device, int threads, ft_error *err)
{
    FT_TRY(
        ft_model_open_for(&s->model, path, &(ft_model_options){ .device = device }, purpose, err));
    return ft_session_open(
        &s->session, s->model,
        &(ft_session_options){ .threads = threads, .max_tokens = (int64_t) run_tokens(data) }, err);
}

static void close_side(side *s)
{
    free(s->out);
    ft_session_close(s->session);
    ft_model_close(s->model);
}

static ft_status run_side(side *s, const ft_dataset *data, size_t first, size_t count,
                          const char *output, ft_error *err)
{
    ft_tensor tensor = { .data = NULL };
    FT_TRY(ft_dataset_bind(data, first, count, s->session, err));
    FT_TRY(ft_session_run(s->session, err));
    FT_TRY(ft_session_get(s->session, output, &tensor, err));
    s->cols = (size_t) tensor.dim[tensor.ndim - 1];
    s->rows = ft_tensor_count(&tensor) / s->cols;
    float *grown = realloc(s->out, ft_tensor_bytes(&tensor));
    if (grown == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes", output,
                       ft_tensor_bytes(&tensor));
    s->out = grown;
    tensor.data = grown;
    return ft_session_get_from(s->session, output, first, &tensor, err);
}

/* Sums over all rows compared so far. */
typedef struct sums {
    double signal, noise, cosine;
    size_t rows, agreeing;
    ft_tally tally[2]; /* logits against labels, for each model */
} sums;

/* Rows that are zero in both outputs are padding: they are not counted. */
static void compare_row(sums *s, const float *a, const float *b, size_t n)
{
    double aa = 0.0, bb = 0.0, ab = 0.0;
    for (size_t i = 0; i < n; i++) {
        double difference = (double) a[i] - (double) b[i];
        aa += (double) a[i] * (double) a[i];
        bb += (double) b[i] * (double) b[i];
        ab += (double) a[i] * (double) b[i];
        s->noise += difference * difference;
    }
    s->signal += aa;
    if (aa == 0.0 && bb == 0.0)
        return;
    s->cosine += aa > 0.0 && bb > 0.0 ? ab / sqrt(aa * bb) : 0.0;
    s->agreeing += ft_classes_agree(s->tally[0].problem, a, b, n);
    s->rows++;
}

/* Compares both outputs of samples first .. first + count - 1. */
static void compare_batch(sums *s, const side sides[2], const ft_dataset *data, size_t first,
                          size_t count)
{
    size_t cols = sides[0].cols;
    for (size_t row = 0; row < sides[0].rows; row++)
        compare_row(s, sides[0].out + row * cols, sides[1].out + row * cols, cols);
    for (int i = 0; i < 2 && ft_dataset_has_labels(data); i++)
        for (size_t row = 0; row < count; row++)
            ft_tally_add(&s->tally[i], sides[i].out + row * cols, data, first + row);
}

static ft_status compare(sums *s, side sides[2], const ft_dataset *data, const char *output,
                         ft_progress progress, void *user, ft_error *err)
{
    for (size_t first = 0, count; first < data->rows; first += count) {
        count = ft_dataset_batch(data, first, run_tokens(data), 512);
        for (int i = 0; i < 2; i++)
            FT_TRY(run_side(&sides[i], data, first, count, output, err));
        compare_batch(s, sides, data, first, count);
        if (progress != NULL)
            progress(user, first + count, data->rows);
    }
    return FT_OK;
}

/* NaN without labels and for regression. */
static double accuracy(const ft_tally *tally)
{
    ft_metric metric[FT_METRICS];
    bool known = tally->problem != FT_PROBLEM_REGRESSION && ft_tally_metrics(tally, metric) > 0;
    return known ? metric[0].value : (double) NAN;
}

static void conclude(ft_evaluation *out, const sums *s, size_t samples, const ft_config *config)
{
    bool classifies = config->labels > 0 && config->problem != FT_PROBLEM_REGRESSION;
    out->samples = samples;
    out->sqnr_db = s->noise == 0.0 ? (double) INFINITY : 10.0 * log10(s->signal / s->noise);
    out->cosine = s->cosine / (double) s->rows;
    out->agreement = classifies ? (double) s->agreeing / (double) s->rows : (double) NAN;
    for (int i = 0; i < 2; i++)
        out->accuracy[i] = accuracy(&s->tally[i]);
}

ft_status ft_evaluate(ft_evaluation *out, const ft_compared *what, const ft_dataset *data,
                      const char *device, int threads, ft_progress progress, void *user,
                      ft_error *err)
{
    const char *second = what->fake != NULL ? what->path : what->other;
    side sides[2] = { 0 };
    sums total = { 0 };
    ft_status status = open_side(&sides[0], what->path, &(ft_purpose){ .mode = FT_MODE_FLOAT },
                                 data, device, threads, err);
    if (status == FT_OK)
        status = open_side(&sides[1], second, what->fake, data, device, threads, err);
    for (int i = 0; i < 2 && status == FT_OK; i++)
        status = ft_tally_init(&total.tally[i], &sides[0].model->config, err);
    if (status == FT_OK) {
        out->output = judged_output(sides[0].model);
        status = compare(&total, sides, data, out->output, progress, user, err);
    }
    if (status == FT_OK)
        conclude(out, &total, data->rows, &sides[0].model->config);
    for (int i = 0; i < 2; i++) {
        ft_tally_fini(&total.tally[i]);
        close_side(&sides[i]);
    }
    return status;
}
