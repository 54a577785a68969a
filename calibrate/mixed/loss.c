/*
 * loss.c - how far the outputs of a quantized model are from those of the float model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/loss.h"

#include "calibrate/mixed/labels.h"
#include "calibrate/mixed/row_loss.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/model/session.h"
#include "runtime/tensor.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_OUTPUTS = FT_COMPARED_OUTPUTS, MAX_REFERENCE_BYTES = 256 << 20 };

/* ---- Outputs ------------------------------------------------------------------------------ */

/* A session for single samples of the data. */
static ft_status open_session(ft_session **out, const ft_model *model, const ft_dataset *data,
                              int threads, ft_error *err)
{
    ft_session_options options = { .threads = threads,
                                   .max_tokens = (int64_t) ft_dataset_max_length(data),
                                   .max_sequences = 1 };
    if (ft_model_generates(model)) {
        options.all_logits = true;
        options.context = (int64_t) ft_dataset_max_context(data);
    }
    return ft_session_open(out, model, &options, err);
}

static size_t last_dim(const ft_tensor *tensor)
{
    return (size_t) tensor->dim[tensor->ndim - 1];
}

/* Output `name` of sample `row`, or only its shape if `data` is NULL. */
static ft_status read_output(ft_tensor *out, ft_session *session, const char *name, size_t row,
                             float *data, ft_error *err)
{
    *out = (ft_tensor){ .data = NULL };
    FT_TRY(ft_session_get(session, name, out, err));
    if (data == NULL)
        return FT_OK;
    out->data = data;
    return ft_session_get_rows(session, name, row, out, err);
}

static ft_status run_sample(ft_session *session, const ft_reference *r, size_t sample,
                            ft_error *err)
{
    FT_TRY(ft_dataset_set_inputs(r->data, r->row[sample], 1, session, err));
    return ft_session_run(session, err);
}

/* All compared outputs of the last run, one after the other, in new memory. */
static ft_status copy_outputs(float **out, size_t *bytes, ft_session *session, size_t row,
                              ft_error *err)
{
    const char *name[MAX_OUTPUTS];
    ft_tensor tensor;
    size_t at = 0;
    ft_compared_outputs(name, session->model);
    *bytes = 0;
    for (int i = 0; i < MAX_OUTPUTS && name[i] != NULL; i++) {
        FT_TRY(read_output(&tensor, session, name[i], row, NULL, err));
        *bytes += ft_tensor_bytes(&tensor);
    }
    *out = malloc(*bytes);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu bytes of outputs", *bytes);
    for (int i = 0; i < MAX_OUTPUTS && name[i] != NULL; i++) {
        FT_TRY(read_output(&tensor, session, name[i], row, *out + at, err));
        at += ft_tensor_numel(&tensor);
    }
    return FT_OK;
}

/* ---- Reference ---------------------------------------------------------------------------- */

/* The sums of the rows of a sample's outputs, in new memory. */
static ft_status sum_exponentials(double **out, const float *x, ft_session *session, size_t row,
                                  ft_error *err)
{
    const char *name[MAX_OUTPUTS];
    ft_tensor tensor[MAX_OUTPUTS];
    size_t rows = 0, at = 0;
    ft_compared_outputs(name, session->model);
    for (int i = 0; i < MAX_OUTPUTS && name[i] != NULL; i++) {
        FT_TRY(read_output(&tensor[i], session, name[i], row, NULL, err));
        rows += ft_tensor_numel(&tensor[i]) / last_dim(&tensor[i]);
    }
    *out = ft_calloc(rows, sizeof **out);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu rows", rows);
    for (int i = 0; i < MAX_OUTPUTS && name[i] != NULL; i++) {
        size_t cols = last_dim(&tensor[i]), count = ft_tensor_numel(&tensor[i]);
        for (size_t k = 0; k < count; k += cols, x += cols)
            (*out)[at++] = ft_log_sum_of_row(x, cols);
    }
    return FT_OK;
}

static ft_status run_samples(ft_reference *r, ft_session *session, size_t wanted, ft_error *err)
{
    size_t total = 0, bytes;
    for (size_t i = 0; i < wanted && total < MAX_REFERENCE_BYTES; i++) {
        r->row[i] = i * r->data->rows / wanted;
        r->samples = i + 1;
        FT_TRY(run_sample(session, r, i, err));
        FT_TRY(copy_outputs(&r->output[i], &bytes, session, r->row[i], err));
        if (ft_has_softmax(session->model))
            FT_TRY(sum_exponentials(&r->log_sum[i], r->output[i], session, r->row[i], err));
        total += bytes;
    }
    return FT_OK;
}

ft_status ft_reference_init(ft_reference *r, const ft_model *model, const ft_dataset *data,
                            size_t samples, int threads, ft_error *err)
{
    samples = ft_min_size(samples, data->rows);
    *r = (ft_reference){ .kind = ft_loss_kind_of(model), .data = data, .threads = threads };
    r->row = ft_calloc(samples, sizeof *r->row);
    r->output = ft_calloc(samples, sizeof *r->output);
    r->log_sum = ft_calloc(samples, sizeof *r->log_sum);
    if (r->row == NULL || r->output == NULL || r->log_sum == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu samples", samples);
    ft_session *session;
    FT_TRY(open_session(&session, model, data, threads, err));
    ft_status status = run_samples(r, session, samples, err);
    ft_session_close(session);
    return status;
}

void ft_reference_fini(ft_reference *r)
{
    for (size_t i = 0; i < r->samples; i++) {
        free(r->output[i]);
        free(r->log_sum[i]);
    }
    free(r->output);
    free(r->log_sum);
    free(r->row);
    *r = (ft_reference){ 0 };
}

/* ---- Loss --------------------------------------------------------------------------------- */

static bool is_padding(const float *row, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (row[i] != 0.0f)
            return false;
    return true;
}

/* The outputs of a sample, as they should be. */
typedef struct expected_rows {
    const ft_reference *reference;
    const ft_model *model;
    ft_loss_kind kind;
    size_t sample;         /* of the data */
    const float *real;     /* of the next output */
    const double *log_sum; /* of its rows, or NULL */
} expected_rows;

/* Adds the rows of one output, of `count` elements. */
static void add_rows(ft_loss_sum *s, expected_rows *e, const float *found, size_t count,
                     size_t cols)
{
    ft_row_loss *loss = ft_row_loss_of(e->kind, e->model);
    for (size_t i = 0; i < count / cols; i++, e->real += cols, found += cols) {
        const ft_compared_row row = {
            .real = e->real,
            .found = found,
            .log_sum = e->log_sum != NULL ? *e->log_sum++ : 0.0,
            .n = cols,
            .label = ft_label_of_row(e->reference->data, e->model, e->sample, i),
        };
        if (is_padding(row.real, cols) || (e->kind == FT_LOSS_PERPLEXITY && row.label < 0))
            continue;
        s->sum += loss(&row);
        s->rows++;
    }
}

/* Adds what the session computed from a sample. */
static ft_status add_outputs(ft_loss_sum *s, const ft_reference *r, ft_loss_kind kind,
                             size_t sample, ft_session *session, ft_error *err)
{
    const char *name[MAX_OUTPUTS];
    expected_rows expected = { .reference = r,
                               .model = session->model,
                               .kind = kind,
                               .sample = r->row[sample],
                               .real = r->output[sample],
                               .log_sum = r->log_sum[sample] };
    ft_compared_outputs(name, session->model);
    for (int i = 0; i < MAX_OUTPUTS && name[i] != NULL; i++) {
        ft_tensor tensor;
        FT_TRY(read_output(&tensor, session, name[i], r->row[sample], NULL, err));
        float *found = malloc(ft_tensor_bytes(&tensor));
        if (found == NULL)
            return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes", name[i],
                           ft_tensor_bytes(&tensor));
        ft_status status = read_output(&tensor, session, name[i], r->row[sample], found, err);
        if (status == FT_OK)
            add_rows(s, &expected, found, ft_tensor_numel(&tensor), last_dim(&tensor));
        free(found);
        FT_TRY(status);
    }
    return FT_OK;
}

static ft_status add_samples(ft_loss_sum *s, const ft_reference *r, ft_session *session,
                             ft_error *err)
{
    for (size_t i = 0; i < r->samples; i++) {
        FT_TRY(run_sample(session, r, i, err));
        FT_TRY(add_outputs(s, r, r->kind, i, session, err));
    }
    return FT_OK;
}

ft_status ft_loss_measure(double *loss, const ft_reference *r, const ft_model *model, ft_error *err)
{
    ft_loss_sum s = { .sum = 0.0 };
    ft_session *session;
    FT_TRY(open_session(&session, model, r->data, r->threads, err));
    ft_status status = add_samples(&s, r, session, err);
    ft_session_close(session);
    *loss = status == FT_ENONFINITE ? (double) INFINITY
            : s.rows > 0            ? s.sum / (double) s.rows
                                    : 0.0;
    return status == FT_ENONFINITE ? FT_OK : status;
}

/* ---- Changes of a base --------------------------------------------------------------------- */

ft_status ft_loss_base_init(ft_loss_base *base, const ft_model *model,
                            const ft_loss_samples *samples, ft_error *err)
{
    *base = (ft_loss_base){ .model = model, .samples = *samples };
    return ft_activation_checkpoint_init(&base->checkpoint, model->backend, samples->count, err);
}

void ft_loss_base_fini(ft_loss_base *base)
{
    ft_activation_checkpoint_fini(&base->checkpoint);
    *base = (ft_loss_base){ .model = NULL };
}

/* Number i of the samples of a base, in the reference. */
static size_t sample_of(const ft_loss_base *base, size_t i)
{
    return base->samples.first + i * base->samples.step;
}

/* Runs a sample of a base up to an operation; live values at `cut` are saved if it is later. */
static ft_status resume_sample(ft_session *session, ft_loss_base *base, const ft_reference *r,
                               size_t i, int cut, int end, ft_error *err)
{
    FT_TRY(ft_dataset_set_inputs(r->data, r->row[sample_of(base, i)], 1, session, err));
    return ft_session_run_segment(session, &base->checkpoint,
                                  &(ft_segment){ .sample = i, .cut = cut, .end = end }, err);
}

/* Runs the base up to the cut, and saves what is live there. */
static ft_status advance(ft_loss_base *base, const ft_reference *r, int cut, ft_error *err)
{
    ft_session *session;
    FT_TRY(open_session(&session, base->model, r->data, r->threads, err));
    ft_status status = FT_OK;
    for (size_t i = 0; i < base->samples.count && status == FT_OK; i++)
        status = resume_sample(session, base, r, i, cut, cut, err);
    ft_session_close(session);
    if (status == FT_OK)
        ft_activation_checkpoint_advance(&base->checkpoint, cut);
    return status;
}

static ft_status move_base(ft_loss_base *base, const ft_reference *r, const char *value,
                           ft_error *err)
{
    const ft_plan *plan = &base->model->plan;
    int index = ft_plan_find(plan, value), producer = index < 0 ? 0 : ft_plan_producer(plan, index);
    ft_resume_point point;
    if (plan->encoder_ops > 0)
        return FT_OK;
    FT_TRY(ft_resume_point_find(&point, plan, producer > 0 ? producer : 0, err));
    if (point.op < base->checkpoint.op)
        ft_activation_checkpoint_reset(&base->checkpoint);
    return point.op > base->checkpoint.op ? advance(base, r, point.op, err) : FT_OK;
}

/* Encoder-decoders always run as a whole. */
static ft_status run_changed(ft_session *session, ft_loss_base *base, const ft_reference *r,
                             size_t i, ft_error *err)
{
    const ft_plan *plan = &session->plan;
    bool resumes =
        plan->encoder_ops == 0 && ft_plan_same_start(&base->model->plan, plan, base->checkpoint.op);
    return resumes ? resume_sample(session, base, r, i, 0, plan->nop, err)
                   : run_sample(session, r, sample_of(base, i), err);
}

static ft_status measure_sample(ft_loss_sum *loss, ft_session *session, ft_loss_base *base,
                                const ft_reference *r, size_t i, ft_error *err)
{
    *loss = (ft_loss_sum){ .sum = 0.0 };
    ft_status status = run_changed(session, base, r, i, err);
    if (status == FT_OK)
        status =
            add_outputs(loss, r, ft_loss_kind_of(session->model), sample_of(base, i), session, err);
    if (status != FT_ENONFINITE)
        return status;
    *loss = (ft_loss_sum){ .sum = (double) INFINITY, .rows = 1 };
    return FT_OK;
}

ft_status ft_loss_measure_change(ft_loss_sum *loss, ft_loss_base *base, const ft_reference *r,
                                 const ft_model *model, const char *value, ft_error *err)
{
    ft_session *session;
    FT_TRY(move_base(base, r, value, err));
    FT_TRY(open_session(&session, model, r->data, r->threads, err));
    ft_status status = FT_OK;
    for (size_t i = 0; i < base->samples.count && status == FT_OK; i++)
        status = measure_sample(&loss[i], session, base, r, i, err);
    ft_session_close(session);
    return status;
}
