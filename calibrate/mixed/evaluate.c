/*
 * evaluate.c - the end-to-end error of a quantized model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/evaluate.h"

#include "kernels/math/elementary.h"
#include "runtime/scores/class_metrics.h"
#include "runtime/scores/class_scores.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "runtime/model/session.h"

#include <math.h>
#include <stdlib.h>

/* One of the two models, and its output for the current batch as [rows, cols]. */
typedef struct model_side {
    ft_model *model;
    ft_session *session;
    float *out;
    size_t rows, cols;
} model_side;

/* The output by which users judge the model. */
static const char *compared_output(const ft_model *model)
{
    ft_model_info info = ft_model_get_info(model);
    return info.labels > 0         ? "logits"
           : info.embedding        ? "embedding"
           : model->config.rotated ? "rotated_hidden_state"
                                   : "last_hidden_state";
}

/* Tokens per batch: enough rows for all threads, and at least one sample. */
static size_t batch_tokens(const ft_dataset *data)
{
    size_t longest = ft_dataset_max_length(data);
    return longest < 2048 ? 2048 : longest;
}

static ft_status open_side(model_side *s, const char *path, const ft_quant_config *quant,
                           const ft_dataset *data, const char *device, int threads, ft_error *err)
{
    FT_TRY(ft_model_open_with_config(&s->model, path, &(ft_model_options){ .device = device },
                                     quant, err));
    return ft_session_open(
        &s->session, s->model,
        &(ft_session_options){ .threads = threads, .max_tokens = (int64_t) batch_tokens(data) },
        err);
}

static void close_side(model_side *s)
{
    free(s->out);
    ft_session_close(s->session);
    ft_model_close(s->model);
}

static ft_status run_side(model_side *s, const ft_dataset *data, size_t first, size_t count,
                          const char *output, ft_error *err)
{
    ft_tensor tensor = { .data = NULL };
    FT_TRY(ft_dataset_set_inputs(data, first, count, s->session, err));
    FT_TRY(ft_session_run(s->session, err));
    FT_TRY(ft_session_get(s->session, output, &tensor, err));
    s->cols = (size_t) tensor.dim[tensor.ndim - 1];
    s->rows = ft_tensor_numel(&tensor) / s->cols;
    float *buffer = realloc(s->out, ft_tensor_bytes(&tensor));
    if (buffer == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes", output,
                       ft_tensor_bytes(&tensor));
    s->out = buffer;
    tensor.data = buffer;
    return ft_session_get_rows(s->session, output, first, &tensor, err);
}

/* Sums over all rows compared so far. */
typedef struct eval_sums {
    double signal, noise, cosine;
    size_t rows, same_class;
    ft_metric_accumulator accumulator[2]; /* logits against labels, for each model */
} eval_sums;

/* Rows that are zero in both outputs are padding: they are not counted. */
static void compare_row(eval_sums *s, const float *a, const float *b, size_t n)
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
    s->same_class += ft_predictions_agree(s->accumulator[0].problem_type, a, b, n);
    s->rows++;
}

/* Compares both outputs of samples first .. first + count - 1. */
static void compare_batch(eval_sums *s, const model_side sides[2], const ft_dataset *data,
                          size_t first, size_t count)
{
    size_t cols = sides[0].cols;
    for (size_t row = 0; row < sides[0].rows; row++)
        compare_row(s, sides[0].out + row * cols, sides[1].out + row * cols, cols);
    for (int i = 0; i < 2 && ft_dataset_has_labels(data); i++)
        for (size_t row = 0; row < count; row++)
            ft_metric_accumulator_add_row(&s->accumulator[i], sides[i].out + row * cols, data,
                                          first + row);
}

static ft_status compare(eval_sums *s, model_side sides[2], const ft_dataset *data,
                         const char *output, ft_progress_callback progress, void *user,
                         ft_error *err)
{
    for (size_t first = 0, count; first < data->rows; first += count) {
        count = ft_dataset_batch_rows(data, first, batch_tokens(data), 512);
        for (int i = 0; i < 2; i++)
            FT_TRY(run_side(&sides[i], data, first, count, output, err));
        compare_batch(s, sides, data, first, count);
        if (progress != NULL)
            progress(user, first + count, data->rows);
    }
    return FT_OK;
}

/* NaN without labels and for regression. */
static double accuracy(const ft_metric_accumulator *accumulator)
{
    ft_metric metric[FT_MAX_METRICS];
    bool has_accuracy = accumulator->problem_type != FT_PROBLEM_REGRESSION &&
                        ft_metric_accumulator_compute(accumulator, metric) > 0;
    return has_accuracy ? metric[0].value : (double) NAN;
}

static void compute_metrics(ft_evaluation *out, const eval_sums *s, size_t samples,
                            const ft_config *config)
{
    bool classifies =
        ft_head_is_classifier(config->head) && config->problem_type != FT_PROBLEM_REGRESSION;
    out->samples = samples;
    out->sqnr_db = s->noise == 0.0 ? (double) INFINITY : 10.0 * ft_math_log10(s->signal / s->noise);
    out->cosine = s->cosine / (double) s->rows;
    out->agreement = classifies ? (double) s->same_class / (double) s->rows : (double) NAN;
    for (int i = 0; i < 2; i++)
        out->accuracy[i] = accuracy(&s->accumulator[i]);
}

ft_status ft_evaluate(ft_evaluation *out, const ft_model_pair *pair, const ft_dataset *data,
                      const char *device, int threads, ft_progress_callback progress, void *user,
                      ft_error *err)
{
    const char *second_path = pair->quantize != NULL ? pair->path : pair->quantized_path;
    model_side sides[2] = { 0 };
    eval_sums total = { 0 };
    ft_status status = open_side(&sides[0], pair->path, &(ft_quant_config){ .mode = FT_MODE_FLOAT },
                                 data, device, threads, err);
    if (status == FT_OK)
        status = open_side(&sides[1], second_path, pair->quantize, data, device, threads, err);
    for (int i = 0; i < 2 && status == FT_OK; i++)
        status = ft_metric_accumulator_init(&total.accumulator[i], &sides[0].model->config,
                                            data->rows, err);
    if (status == FT_OK) {
        out->output = compared_output(sides[0].model);
        status = compare(&total, sides, data, out->output, progress, user, err);
    }
    if (status == FT_OK)
        compute_metrics(out, &total, data->rows, &sides[0].model->config);
    for (int i = 0; i < 2; i++) {
        ft_metric_accumulator_fini(&total.accumulator[i]);
        close_side(&sides[i]);
    }
    return status;
}
