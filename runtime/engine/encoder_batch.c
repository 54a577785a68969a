/*
 * encoder_batch.c - rows of several requests in one forward pass of an encoder.
 *
 * The rows of a request stay together.  Shorter rows are padded with masked columns on the right,
 * which a session removes before it computes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/engine/engine_private.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/pixels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct batch {
    ft_engine *engine;
    ft_job **job; /* [count] */
    size_t count, rows, cols, tokens;
    int32_t *value[FT_NUM_INPUTS]; /* [rows, cols] each; NULL: the model has no such input */
    float *pixels;
    float *output[FT_MAX_OUTPUTS]; /* of all rows; NULL: nobody wants it */
    ft_tensor shape[FT_MAX_OUTPUTS];
} batch;

/* ---- Choice of jobs ------------------------------------------------------------------------ */

static bool fits(const ft_engine *e, const batch *b, const ft_job *job)
{
    const ft_limits *limits = &e->session->limits;
    return b->rows + job->inputs.rows <= limits->sequences &&
           b->tokens + job->inputs.tokens <= limits->tokens;
}

/* Count the first jobs that fit; true if all that wait do. */
static bool choose(const ft_engine *e, batch *b)
{
    *b = (batch){ .engine = (ft_engine *) (uintptr_t) e };
    for (ft_sequence *q = e->encodings.first; q != NULL; q = q->next) {
        const ft_job *job = ft_job_of(q);
        if (!fits(e, b, job))
            return false;
        b->count++;
        b->rows += job->inputs.rows;
        b->tokens += job->inputs.tokens;
        b->cols = ft_max_size(b->cols, job->inputs.cols);
    }
    return true;
}

bool ft_engine_batch_is_full(const ft_engine *e)
{
    batch b;
    return !choose(e, &b) || b.rows == e->session->limits.sequences;
}

static ft_status take(batch *b, ft_error *err)
{
    b->job = ft_calloc(b->count, sizeof *b->job);
    if (b->job == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a batch of %zu requests", b->count);
    for (size_t i = 0; i < b->count; i++) {
        b->job[i] = ft_job_of(b->engine->encodings.first);
        ft_sequence_list_remove(&b->engine->encodings, b->engine->encodings.first);
        b->job[i]->started = true;
        ft_engine_count_start(b->engine, b->job[i]);
    }
    return FT_OK;
}

/* ---- Inputs -------------------------------------------------------------------------------- */

/* Columns that a job has not are 0; without a mask its own columns are all tokens. */
static void copy_rows(const batch *b, const ft_job_inputs *from, int input, int32_t *to)
{
    for (size_t row = 0; row < from->rows; row++, to += b->cols) {
        if (from->value[input] != NULL)
            memcpy(to, from->value[input] + row * from->cols, from->cols * sizeof *to);
        for (size_t i = 0; i < from->cols && from->value[input] == NULL; i++)
            to[i] = input == FT_INPUT_MASK;
    }
}

static ft_status set_tokens(batch *b, ft_error *err)
{
    ft_session *session = b->engine->session;
    for (int i = 0; i < FT_NUM_INPUTS; i++) {
        if (session->text[FT_PADDED_INPUT].limits.name[i] == NULL)
            continue;
        b->value[i] = ft_calloc(b->rows, b->cols * sizeof *b->value[i]);
        if (b->value[i] == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for %zu rows", b->rows);
        int32_t *to = b->value[i];
        for (size_t j = 0; j < b->count; j++) {
            copy_rows(b, &b->job[j]->inputs, i, to);
            to += b->job[j]->inputs.rows * b->cols;
        }
        const ft_tensor tensor = ft_job_token_tensor(b->value[i], b->rows, b->cols);
        FT_TRY(ft_session_set(session, ft_job_input_name[i], &tensor, err));
    }
    return FT_OK;
}

static ft_status set_pixels(batch *b, ft_error *err)
{
    const ft_job_inputs *first = &b->job[0]->inputs;
    ft_tensor tensor = ft_job_pixel_tensor(first, NULL, 1);
    size_t image = ft_tensor_numel(&tensor), row = 0;
    b->pixels = ft_calloc(b->rows, image * sizeof *b->pixels);
    if (b->pixels == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu images", b->rows);
    for (size_t j = 0; j < b->count; j++) {
        const ft_job_inputs *in = &b->job[j]->inputs;
        memcpy(b->pixels + row * image, in->pixels, in->rows * image * sizeof *b->pixels);
        row += in->rows;
    }
    tensor = ft_job_pixel_tensor(first, b->pixels, b->rows);
    return ft_session_set(b->engine->session, FT_PIXEL_VALUES, &tensor, err);
}

/* ---- Outputs ------------------------------------------------------------------------------- */

static int output_index(const ft_session *session, const char *name)
{
    int i = 0;
    while (strcmp(session->plan.output[i].name, name) != 0)
        i++;
    return i;
}

/* An output that is not finite fails only the requests whose rows are not. */
static ft_status read_output(batch *b, int index, ft_error *err)
{
    const ft_session *session = b->engine->session;
    const char *name = session->plan.output[index].name;
    ft_tensor *shape = &b->shape[index];
    ft_error ignored;
    FT_TRY(ft_session_get(session, name, shape, err));
    b->output[index] = ft_calloc(ft_tensor_numel(shape), sizeof(float));
    if (b->output[index] == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu rows", name, b->rows);
    shape->data = b->output[index];
    ft_status status = ft_session_get(session, name, shape, &ignored);
    if (status == FT_OK || status == FT_ENONFINITE)
        return FT_OK;
    return ft_fail(err, status, "%s", ignored.text);
}

static ft_status read_outputs(batch *b, ft_error *err)
{
    for (size_t i = 0; i < b->count; i++)
        for (size_t k = 0; k < b->job[i]->num_outputs; k++) {
            int index = output_index(b->engine->session, b->job[i]->outputs[k]);
            if (b->output[index] == NULL)
                FT_TRY(read_output(b, index, err));
        }
    return FT_OK;
}

/* The rows of a job from row `first` on, without the columns that are longer than its own. */
static ft_tensor rows_of(const batch *b, int index, const ft_job_inputs *in, size_t first)
{
    ft_tensor out = b->shape[index];
    size_t width = ft_tensor_numel(&out) / b->rows; /* floats of a row */
    float *data = b->output[index] + first * width;
    out.data = data;
    out.dim[0] = (int64_t) in->rows;
    if (in->pixels != NULL || in->cols == b->cols ||
        !ft_session_is_padded_output(b->engine->session,
                                     b->engine->session->plan.output[index].name))
        return out;
    size_t kept = width / b->cols * in->cols;
    for (size_t row = 1; row < in->rows; row++)
        memmove(data + row * kept, data + row * width, kept * sizeof *data);
    out.dim[1] = (int64_t) in->cols;
    return out;
}

static ft_status check_finite(const ft_engine_tensor *output, ft_error *err)
{
    const float *x = output->tensor.data;
    size_t count = ft_tensor_numel(&output->tensor), width = count / (size_t) output->tensor.dim[0];
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i]))
            return ft_fail(err, FT_ENONFINITE, "%s: row %zu holds %g, expected finite numbers",
                           output->name, i / width, (double) x[i]);
    return FT_OK;
}

static ft_status report(const batch *b, const ft_job *job, size_t first, ft_error *err)
{
    ft_engine_tensor outputs[FT_MAX_OUTPUTS];
    for (size_t k = 0; k < job->num_outputs; k++) {
        int index = output_index(b->engine->session, job->outputs[k]);
        outputs[k].name = job->outputs[k];
        outputs[k].tensor = rows_of(b, index, &job->inputs, first);
        FT_TRY(check_finite(&outputs[k], err));
    }
    job->callbacks.on_outputs(job->callbacks.user, job->id, outputs, job->num_outputs);
    return FT_OK;
}

/* ------------------------------------------------------------------------------------------- */

static ft_status run(batch *b, ft_error *err)
{
    FT_TRY(take(b, err));
    FT_TRY(b->job[0]->inputs.pixels != NULL ? set_pixels(b, err) : set_tokens(b, err));
    FT_TRY(ft_session_run(b->engine->session, err));
    return read_outputs(b, err);
}

static void fail_jobs(const batch *b, const ft_error *failure)
{
    for (size_t i = 0; i < b->count; i++)
        ft_engine_end_job(b->engine, b->job[i], failure->code, failure);
}

static void end_jobs(const batch *b)
{
    for (size_t i = 0, first = 0; i < b->count; i++) {
        ft_error failure;
        ft_job *job = b->job[i];
        size_t rows = job->inputs.rows;
        ft_status status = report(b, job, first, &failure);
        ft_engine_end_job(b->engine, job, status, &failure);
        first += rows;
    }
}

ft_status ft_engine_run_batch(ft_engine *e, ft_error *err)
{
    batch b;
    ft_error failure;
    (void) choose(e, &b);
    ft_status status = run(&b, &failure);
    if (status == FT_OK) {
        e->other.prompt_tokens += b.tokens;
        end_jobs(&b);
    } else if (status == FT_ENOMEM && b.job != NULL) {
        fail_jobs(&b, &failure);
        status = FT_OK;
    } else {
        *err = failure;
    }
    for (int i = 0; i < FT_NUM_INPUTS; i++)
        free(b.value[i]);
    for (int i = 0; i < FT_MAX_OUTPUTS; i++)
        free(b.output[i]);
    free(b.pixels);
    free(b.job);
    return status;
}
