/*
 * evaluate.c - what quantization costs at the end of the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/evaluate.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model.h"

#include <math.h>
#include <stdlib.h>

/* One of the two models, and its output of the last batch as [rows, cols]. */
typedef struct side {
    ft_model *model;
    ft_session *session;
    float *out;
    size_t rows, cols;
} side;

/* The output by which a user judges the model. */
static const char *judged_output(const ft_model *model)
{
    ft_model_info info = ft_model_get_info(model);
    return info.labels > 0 ? "logits" : info.embedding ? "embedding" : "last_hidden_state";
}

/* Tokens of one run: enough rows for all threads, and at least one sample. */
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
    return ft_session_get(s->session, output, &tensor, err);
}

/* Sums over everything compared so far. */
typedef struct sums {
    double signal, noise, cosine;
    size_t rows, agreeing, right[2];
} sums;

static size_t largest(const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

/* Rows of padding are zero on both sides: they are no evidence. */
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
    s->agreeing += largest(a, n) == largest(b, n);
    s->rows++;
}

/* Compare what both sides made of samples first .. first + count - 1. */
static void compare_batch(sums *s, const side sides[2], const ft_dataset *data, size_t first,
                          size_t count)
{
    size_t cols = sides[0].cols;
    for (size_t row = 0; row < sides[0].rows; row++)
        compare_row(s, sides[0].out + row * cols, sides[1].out + row * cols, cols);
    for (int i = 0; i < 2 && data->labels != NULL; i++)
        for (size_t row = 0; row < count; row++)
            s->right[i] +=
                largest(sides[i].out + row * cols, cols) == (size_t) data->labels[first + row];
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

static void conclude(ft_evaluation *out, const sums *s, const ft_dataset *data, bool has_logits)
{
    out->samples = data->rows;
    out->sqnr_db = s->noise == 0.0 ? (double) INFINITY : 10.0 * log10(s->signal / s->noise);
    out->cosine = s->cosine / (double) s->rows;
    out->agreement = has_logits ? (double) s->agreeing / (double) s->rows : (double) NAN;
    for (int i = 0; i < 2; i++)
        out->accuracy[i] = has_logits && data->labels != NULL
                               ? (double) s->right[i] / (double) data->rows
                               : (double) NAN;
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
    if (status == FT_OK) {
        out->output = judged_output(sides[0].model);
        status = compare(&total, sides, data, out->output, progress, user, err);
    }
    if (status == FT_OK)
        conclude(out, &total, data, ft_model_get_info(sides[0].model).labels > 0);
    for (int i = 0; i < 2; i++)
        close_side(&sides[i]);
    return status;
}
