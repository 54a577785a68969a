/*
 * activation_stats.c - statistics of the inputs of linear layers over calibration data.
 *
 * One sample per thread is run at a time; then each thread takes an input and accumulates the
 * contributions of these samples, in their order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/activation_stats.h"

#include "kernels/blas.h"
#include "kernels/threads/team.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/model/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Finding the inputs ------------------------------------------------------------------- */

static ft_sums *find(ft_inputs *inputs, int value)
{
    for (size_t i = 0; i < inputs->count; i++)
        if (inputs->input[i].value == value)
            return &inputs->input[i];
    return NULL;
}

static bool add(ft_inputs *inputs, const ft_plan *plan, int value)
{
    ft_sums *input = &inputs->input[inputs->count++];
    input->value = value;
    input->name = plan->value[value].name;
    input->cols = (size_t) plan->value[value].cols;
    input->magnitude = ft_array(input->cols, sizeof *input->magnitude);
    input->square = ft_array(input->cols, sizeof *input->square);
    return input->magnitude != NULL && input->square != NULL;
}

ft_status ft_inputs_init(ft_inputs *inputs, const ft_inputs_of *of, const bool *wanted,
                         ft_error *err)
{
    const ft_plan *plan = &of->model->plan;
    if (of->moments)
        FT_TRY(ft_blas_load(of->threads, err));
    *inputs = (ft_inputs){ .of = of, .longest = ft_dataset_longest(of->data) };
    inputs->input = ft_array((size_t) plan->nop, sizeof *inputs->input);
    inputs->by_weight = ft_array((size_t) plan->nweight, sizeof *inputs->by_weight);
    bool fine = inputs->input != NULL && inputs->by_weight != NULL;
    for (int i = 0; i < plan->nweight && fine; i++)
        inputs->by_weight[i] = -1;
    for (int i = 0; i < plan->nop && fine; i++) {
        const ft_op *op = &plan->op[i];
        if (op->kind != FT_OP_LINEAR || !wanted[op->weight[0]])
            continue;
        if (find(inputs, op->in[0]) == NULL)
            fine = add(inputs, plan, op->in[0]);
        inputs->by_weight[op->weight[0]] = (int) (find(inputs, op->in[0]) - inputs->input);
    }
    return fine ? FT_OK : ft_fail(err, FT_ENOMEM, "%s: no memory for sums", of->model->path);
}

static void forget_moments(ft_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->input[i].moments);
        inputs->input[i].moments = NULL;
    }
}

void ft_inputs_fini(ft_inputs *inputs)
{
    forget_moments(inputs);
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->input[i].magnitude);
        free(inputs->input[i].square);
        free(inputs->input[i].factor);
    }
    free(inputs->input);
    free(inputs->by_weight);
    *inputs = (ft_inputs){ 0 };
}

/* ---- One pass: some inputs over all samples ----------------------------------------------- */

/* Buffers of one thread. */
typedef struct adder {
    float *x;    /* [max_tokens, maximum columns] */
    double *row; /* the same in double */
} adder;

typedef struct pass {
    const ft_inputs_of *of;
    ft_sums *input; /* [count] */
    size_t count;
    size_t sessions;
    ft_session **session; /* [sessions] */
    adder *adder;         /* [sessions] */
    ft_error *errs;       /* [sessions] */
    ft_status *status;    /* [sessions] */
} pass;

/* Bytes that an input needs while it is accumulated: in sessions, in threads, and permanently. */
static size_t bytes_of(const ft_inputs *inputs, const ft_sums *input)
{
    size_t run = inputs->longest * input->cols * sizeof(float) * (size_t) inputs->of->threads;
    return run + (inputs->of->moments ? input->cols * input->cols * sizeof(double) : 0);
}

/* As many inputs, starting with `first`, as fit; at least one. */
static size_t inputs_that_fit(const ft_inputs *inputs, const ft_sums *first)
{
    size_t left = inputs->of->memory, most = inputs->count - (size_t) (first - inputs->input);
    for (size_t i = 0; i < most && inputs->of->memory > 0; i++) {
        size_t bytes = bytes_of(inputs, &first[i]);
        if (i > 0 && bytes > left)
            return i;
        left -= ft_min_size(bytes, left);
    }
    return most;
}

static ft_status clear(pass *p, ft_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        ft_sums *input = &p->input[i];
        input->rows = 0;
        memset(input->magnitude, 0, input->cols * sizeof *input->magnitude);
        memset(input->square, 0, input->cols * sizeof *input->square);
        if (p->of->moments)
            input->moments = ft_array(input->cols * input->cols, sizeof *input->moments);
        if (p->of->moments && input->moments == NULL)
            return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu x %zu sums", input->name,
                           input->cols, input->cols);
    }
    return FT_OK;
}

static ft_status open_sessions(pass *p, size_t longest, ft_error *err)
{
    const char **keep = ft_array(p->count + 1, sizeof *keep);
    size_t cols = 0;
    ft_status status = FT_OK;
    if (keep == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu names", p->count);
    for (size_t i = 0; i < p->count; i++) {
        keep[i] = p->input[i].name;
        cols = p->input[i].cols > cols ? p->input[i].cols : cols;
    }
    for (size_t i = 0; i < p->sessions && status == FT_OK; i++) {
        p->adder[i].x = ft_array(longest * cols, sizeof(float));
        p->adder[i].row = ft_array(longest * cols, sizeof(double));
        status = p->adder[i].x == NULL || p->adder[i].row == NULL
                     ? ft_fail(err, FT_ENOMEM, "no memory for %zu x %zu inputs", longest, cols)
                     : ft_session_open(&p->session[i], p->of->model,
                                       &(ft_session_options){ .threads = 1,
                                                              .max_tokens = (int64_t) longest,
                                                              .max_sequences = 1,
                                                              .every_logits = true,
                                                              .keep = keep },
                                       err);
    }
    free(keep);
    return status;
}

static ft_status open_pass(pass *p, size_t longest, ft_error *err)
{
    p->session = ft_array(p->sessions, sizeof(ft_session *));
    p->adder = ft_array(p->sessions, sizeof *p->adder);
    p->errs = ft_array(p->sessions, sizeof *p->errs);
    p->status = ft_array(p->sessions, sizeof *p->status);
    if (p->session == NULL || p->adder == NULL || p->errs == NULL || p->status == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu sessions", p->sessions);
    FT_TRY(clear(p, err));
    return open_sessions(p, longest, err);
}

static void close_pass(pass *p)
{
    for (size_t i = 0; i < p->sessions; i++) {
        if (p->session != NULL)
            ft_session_close(p->session[i]);
        if (p->adder != NULL) {
            free(p->adder[i].x);
            free(p->adder[i].row);
        }
    }
    free(p->session);
    free(p->adder);
    free(p->errs);
    free(p->status);
}

/* Rows of a value in the last forward pass of a session. */
static size_t rows_of(const ft_session *session, int value)
{
    bool source = ft_session_has_source_rows(session, value);
    return ft_batch_rows(source && session->texts > 1 ? &session->source_batch : &session->batch,
                         session->plan.value[value].rows);
}

/*
 * Accumulates column sums: first over the rows of this pass, then into the totals, so that the
 * order is fixed.
 */
static void add_columns(ft_sums *input, const double *x, size_t rows)
{
    for (size_t col = 0; col < input->cols; col++) {
        double magnitude = 0.0, square = 0.0;
        for (size_t row = 0; row < rows; row++) {
            double value = x[row * input->cols + col];
            magnitude += fabs(value);
            square += value * value;
        }
        input->magnitude[col] += magnitude;
        input->square[col] += square;
    }
}

/* Accumulates the contribution of one forward pass to an input. */
static ft_status add_run(ft_sums *input, const ft_session *session, const adder *a, ft_error *err)
{
    size_t rows = rows_of(session, input->value), cols = input->cols;
    FT_TRY(ft_session_read_real(session, input->value, a->x, rows, err));
    for (size_t i = 0; i < rows * cols; i++)
        a->row[i] = (double) a->x[i];
    add_columns(input, a->row, rows);
    if (input->moments != NULL)
        ft_dsyrk(CblasUpper, CblasTrans, (int) cols, (int) rows, 1.0, a->row, (int) cols, 1.0,
                 input->moments, (int) cols);
    input->rows += rows;
    return FT_OK;
}

static ft_status first_failure(const pass *p, ft_error *err)
{
    for (size_t i = 0; i < p->sessions; i++)
        if (p->status[i] != FT_OK) {
            if (err != NULL)
                *err = p->errs[i];
            return p->status[i];
        }
    return FT_OK;
}

/* Consecutive samples, one per session. */
typedef struct samples {
    pass *pass;
    uint64_t first;
    size_t count;
} samples;

static void run_each(const void *job, int thread, size_t first, size_t end)
{
    const samples *s = job;
    pass *p = s->pass;
    (void) thread;
    for (size_t i = first; i < end; i++) {
        p->status[i] =
            ft_dataset_bind(p->of->data, (size_t) s->first + i, 1, p->session[i], &p->errs[i]);
        if (p->status[i] == FT_OK)
            p->status[i] = ft_session_run(p->session[i], &p->errs[i]);
    }
}

/* Accumulates all samples of this step into some inputs. */
static void add_to_inputs(const void *job, int thread, size_t first, size_t end)
{
    const samples *s = job;
    pass *p = s->pass;
    for (size_t i = first; i < end; i++)
        for (size_t k = 0; k < s->count && p->status[thread] == FT_OK; k++)
            p->status[thread] =
                add_run(&p->input[i], p->session[k], &p->adder[thread], &p->errs[thread]);
}

static ft_status run_samples(const samples *s, ft_error *err)
{
    pass *p = s->pass;
    ft_team_deal((int) p->sessions, s->count, run_each, s);
    FT_TRY(first_failure(p, err));
    ft_team_deal((int) p->sessions, p->count, add_to_inputs, s);
    return first_failure(p, err);
}

/*
 * Mirrors the upper triangle, checks for non-finite values, and reapplies the factor of an earlier
 * pass.
 */
static ft_status complete(ft_sums *input, ft_error *err)
{
    size_t cols = input->cols;
    for (size_t row = 1; row < cols && input->moments != NULL; row++)
        for (size_t col = 0; col < row; col++)
            input->moments[row * cols + col] = input->moments[col * cols + row];
    for (size_t col = 0; col < cols; col++)
        if (!isfinite(input->square[col]))
            return ft_fail(err, FT_EFORMAT, "%s: column %zu is not finite on the sample data",
                           input->name, col);
    float *factor = input->factor;
    input->factor = NULL;
    if (factor != NULL)
        ft_inputs_divide(input, factor);
    return FT_OK;
}

static ft_status run_pass(pass *p, size_t longest, ft_error *err)
{
    const ft_inputs_of *of = p->of;
    FT_TRY(open_pass(p, longest, err));
    for (uint64_t first = of->first, count; first < of->last; first += count) {
        count = ft_min_size(p->sessions, (size_t) (of->last - first));
        FT_TRY(run_samples(&(samples){ p, first, (size_t) count }, err));
        if (of->progress != NULL)
            of->progress(of->user, first + count - of->first, of->last - of->first);
    }
    for (size_t i = 0; i < p->count; i++)
        FT_TRY(complete(&p->input[i], err));
    return FT_OK;
}

ft_status ft_inputs_need(ft_inputs *inputs, ft_sums *input, ft_error *err)
{
    const ft_inputs_of *of = inputs->of;
    if (input->rows > 0 && (!of->moments || input->moments != NULL))
        return FT_OK;
    forget_moments(inputs);
    pass p = { .of = of, .input = input, .sessions = (size_t) of->threads };
    p.count = inputs_that_fit(inputs, input);
    if (of->stage != NULL)
        of->stage(of->user, "summing up inputs", "samples");
    ft_status status = run_pass(&p, inputs->longest, err);
    close_pass(&p);
    return status;
}

void ft_inputs_divide(ft_sums *input, float *factor)
{
    size_t cols = input->cols;
    for (size_t i = 0; i < cols; i++) {
        double f = (double) factor[i];
        input->magnitude[i] /= f;
        input->square[i] /= f * f;
        for (size_t k = 0; k < cols && input->moments != NULL; k++)
            input->moments[i * cols + k] /= f * (double) factor[k];
    }
    input->factor = factor;
}
