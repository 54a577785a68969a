/*
 * activation_stats.c - statistics of the inputs of linear layers over calibration data.
 *
 * One sample per thread is run at a time; then each thread takes an input and accumulates the
 * contributions of these samples. The sums are exact, so their order does not matter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/activation_stats.h"

#include "calibrate/weights/exact_sums.h"
#include "kernels/linalg.h"
#include "kernels/threads/team.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/model/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Finding the inputs ------------------------------------------------------------------- */

static ft_input_stats *find_input(ft_activation_stats *inputs, int value)
{
    for (size_t i = 0; i < inputs->count; i++)
        if (inputs->input[i].value == value)
            return &inputs->input[i];
    return NULL;
}

static bool add_input(ft_activation_stats *inputs, const ft_plan *plan, int value)
{
    ft_input_stats *input = &inputs->input[inputs->count++];
    input->value = value;
    input->name = plan->value[value].name;
    input->cols = (size_t) plan->value[value].cols;
    input->magnitude = ft_calloc(input->cols, sizeof *input->magnitude);
    input->square = ft_calloc(input->cols, sizeof *input->square);
    return input->magnitude != NULL && input->square != NULL;
}

ft_status ft_activation_stats_init(ft_activation_stats *inputs,
                                   const ft_activation_stats_options *options, const bool *wanted,
                                   ft_error *err)
{
    const ft_plan *plan = &options->model->plan;
    *inputs = (ft_activation_stats){ .options = options,
                                     .max_tokens = ft_dataset_max_length(options->data) };
    inputs->input = ft_calloc((size_t) plan->nop, sizeof *inputs->input);
    inputs->input_of_weight = ft_calloc((size_t) plan->nweight, sizeof *inputs->input_of_weight);
    bool success = inputs->input != NULL && inputs->input_of_weight != NULL;
    for (int i = 0; i < plan->nweight && success; i++)
        inputs->input_of_weight[i] = -1;
    for (int i = 0; i < plan->nop && success; i++) {
        const ft_op *op = &plan->op[i];
        if (!ft_op_is_gemm(op->kind) || !wanted[op->weight[0]])
            continue;
        if (find_input(inputs, op->in[0]) == NULL)
            success = add_input(inputs, plan, op->in[0]);
        inputs->input_of_weight[op->weight[0]] =
            (int) (find_input(inputs, op->in[0]) - inputs->input);
    }
    return success ? FT_OK
                   : ft_fail(err, FT_ENOMEM, "%s: no memory for sums", options->model->path);
}

static void half_stats_fini(ft_half_stats *half)
{
    free(half->x);
    free(half->amax);
    free(half->square);
    *half = (ft_half_stats){ .rows = 0 };
}

/* Frees what is large: second moments and kept rows. */
static void free_large(ft_activation_stats *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->input[i].moments);
        inputs->input[i].moments = NULL;
        for (int k = 0; k < 2; k++)
            half_stats_fini(&inputs->input[i].half[k]);
    }
}

void ft_activation_stats_fini(ft_activation_stats *inputs)
{
    free_large(inputs);
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->input[i].magnitude);
        free(inputs->input[i].square);
        free(inputs->input[i].factor);
    }
    free(inputs->input);
    free(inputs->input_of_weight);
    *inputs = (ft_activation_stats){ 0 };
}

/* ---- One pass: some inputs over all samples ----------------------------------------------- */

typedef struct pass {
    const ft_activation_stats_options *options;
    ft_input_stats *input; /* [count] */
    ft_exact_sums *sums;   /* [count] */
    size_t count;
    size_t sessions;
    ft_session **session; /* [sessions] */
    float **x;            /* [sessions]: buffers of [max_tokens, maximum columns] */
    double **scratch;     /* [sessions]: of ft_exact_sums_add() */
    ft_linalg linalg;     /* for one thread */
    ft_error *errs;       /* [sessions] */
    ft_status *status;    /* [sessions] */
} pass;

/* Bytes that an input needs while it is accumulated: in sessions, in threads, and permanently. */
static size_t stats_bytes(const ft_activation_stats *inputs, const ft_input_stats *input)
{
    bool moments = inputs->options->moments;
    size_t session_bytes = inputs->max_tokens * input->cols * sizeof(float) +
                           (moments ? ft_exact_sums_scratch(input->cols) * sizeof(double) : 0);
    return session_bytes * (size_t) inputs->options->threads +
           inputs->options->kept_rows * input->cols * sizeof(float) +
           (moments ? input->cols * input->cols * sizeof(double) : 0);
}

/* As many inputs, starting with `first`, as fit; at least one. */
static size_t n_inputs_that_fit(const ft_activation_stats *inputs, const ft_input_stats *first)
{
    size_t bytes_left = inputs->options->memory,
           max_inputs = inputs->count - (size_t) (first - inputs->input);
    for (size_t i = 0; i < max_inputs && inputs->options->memory > 0; i++) {
        size_t bytes = stats_bytes(inputs, &first[i]);
        if (i > 0 && bytes > bytes_left)
            return i;
        bytes_left -= ft_min_size(bytes, bytes_left);
    }
    return max_inputs;
}

/* Kept rows of one half, at most. */
static size_t max_half_rows(size_t kept_rows)
{
    return (kept_rows + 1) / 2;
}

static bool half_stats_init(ft_input_stats *input, size_t kept_rows)
{
    bool success = true;
    for (int i = 0; i < 2 && success; i++) {
        ft_half_stats *half = &input->half[i];
        half->x = ft_calloc(max_half_rows(kept_rows) * input->cols, sizeof *half->x);
        half->amax = ft_calloc(input->cols, sizeof *half->amax);
        half->square = ft_calloc(input->cols, sizeof *half->square);
        success = half->x != NULL && half->amax != NULL && half->square != NULL;
    }
    return success;
}

static ft_status init_sums(pass *p, ft_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        ft_input_stats *input = &p->input[i];
        FT_TRY(ft_exact_sums_init(&p->sums[i], input->cols, p->options->moments, err));
        if (p->options->kept_rows > 0 && !half_stats_init(input, p->options->kept_rows))
            return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu rows", input->name,
                           p->options->kept_rows);
    }
    return FT_OK;
}

static ft_status open_sessions(pass *p, size_t longest, ft_error *err)
{
    const char **keep = ft_calloc(p->count + 1, sizeof *keep);
    size_t cols = 0;
    ft_status status = FT_OK;
    if (keep == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu names", p->count);
    for (size_t i = 0; i < p->count; i++) {
        keep[i] = p->input[i].name;
        cols = p->input[i].cols > cols ? p->input[i].cols : cols;
    }
    for (size_t i = 0; i < p->sessions && status == FT_OK; i++) {
        p->x[i] = ft_calloc(longest * cols, sizeof(float));
        p->scratch[i] =
            ft_calloc(p->options->moments ? ft_exact_sums_scratch(cols) : 1, sizeof(double));
        status = p->x[i] == NULL || p->scratch[i] == NULL
                     ? ft_fail(err, FT_ENOMEM, "no memory for %zu x %zu inputs", longest, cols)
                     : ft_session_open(&p->session[i], p->options->model,
                                       &(ft_session_options){ .threads = 1,
                                                              .max_tokens = (int64_t) longest,
                                                              .max_sequences = 1,
                                                              .all_logits = true,
                                                              .keep = keep },
                                       err);
    }
    free(keep);
    return status;
}

static ft_status open_pass(pass *p, size_t longest, ft_error *err)
{
    p->session = ft_calloc(p->sessions, sizeof(ft_session *));
    p->sums = ft_calloc(p->count, sizeof *p->sums);
    p->x = ft_calloc(p->sessions, sizeof *p->x);
    p->scratch = ft_calloc(p->sessions, sizeof *p->scratch);
    p->errs = ft_calloc(p->sessions, sizeof *p->errs);
    p->status = ft_calloc(p->sessions, sizeof *p->status);
    if (p->session == NULL || p->sums == NULL || p->x == NULL || p->scratch == NULL ||
        p->errs == NULL || p->status == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu sessions", p->sessions);
    FT_TRY(ft_linalg_init(&p->linalg, 1, err));
    FT_TRY(init_sums(p, err));
    return open_sessions(p, longest, err);
}

static void close_pass(pass *p)
{
    for (size_t i = 0; i < p->sessions; i++) {
        if (p->session != NULL)
            ft_session_close(p->session[i]);
        if (p->x != NULL)
            free(p->x[i]);
        if (p->scratch != NULL)
            free(p->scratch[i]);
    }
    for (size_t i = 0; i < p->count && p->sums != NULL; i++)
        ft_exact_sums_fini(&p->sums[i]);
    free(p->session);
    free(p->sums);
    free(p->x);
    free(p->scratch);
    free(p->errs);
    free(p->status);
}

/* Rows of a value in the last forward pass of a session. */
static size_t value_rows(const ft_session *session, int value)
{
    bool is_encoder = ft_session_has_encoder_rows(session, value);
    return ft_batch_rows(is_encoder && session->texts > 1 ? &session->encoder_batch
                                                          : &session->batch,
                         session->plan.value[value].rows);
}

/* Reads an input of the last forward pass of a session; [*rows, cols]. */
static ft_status read_input(const ft_input_stats *input, const ft_session *session, float *x,
                            size_t *rows, ft_error *err)
{
    *rows = value_rows(session, input->value);
    return ft_session_read_f32(session, input->value, x, *rows, err);
}

enum { LARGEST_OF = 8 }; /* samples of a half: of one of them the largest row is kept */

/* The number of a sample, and how many there are. */
typedef struct place {
    uint64_t index, count;
} place;

/* Accumulates the columns of a half, and returns the row with the largest magnitude. */
static size_t accumulate_half(ft_half_stats *half, const float *x, size_t rows, size_t cols)
{
    size_t largest = 0;
    float most = 0.0f;
    for (size_t row = 0; row < rows; row++)
        for (size_t col = 0; col < cols; col++) {
            float value = x[row * cols + col], magnitude = fabsf(value);
            half->amax[col] = fmaxf(half->amax[col], magnitude);
            half->square[col] += (double) value * (double) value;
            if (magnitude > most) {
                most = magnitude;
                largest = row;
            }
        }
    return largest;
}

static void keep_row(ft_half_stats *half, const pass *p, const float *row, size_t cols)
{
    if (half->rows < max_half_rows(p->options->kept_rows))
        memcpy(half->x + half->rows++ * cols, row, cols * sizeof *row);
}

/*
 * Keeps the share of rows of one sample. Evenly spaced rows of later samples start further from the
 * first row, so that all positions occur.
 */
static void keep_rows(ft_input_stats *input, const pass *p, place sample, const float *x,
                      size_t rows)
{
    ft_half_stats *half = &input->half[sample.index % 2];
    uint64_t kept_rows = p->options->kept_rows;
    size_t largest = accumulate_half(half, x, rows, input->cols);
    size_t share = (size_t) ((sample.index + 1) * kept_rows / sample.count -
                             sample.index * kept_rows / sample.count);
    bool keeps_largest = share > 0 && sample.index / 2 % LARGEST_OF == 0;
    if (keeps_largest)
        keep_row(half, p, x + largest * input->cols, input->cols);
    for (size_t i = keeps_largest; i < ft_min_size(share, rows); i++) {
        size_t row = (size_t) (rows * (i * sample.count + sample.index) / (share * sample.count));
        keep_row(half, p, x + ft_min_size(row, rows - 1) * input->cols, input->cols);
    }
}

/* Accumulates the contribution of the sample that session k has run to input number i. */
static ft_status accumulate_sample(pass *p, size_t i, size_t k, place sample, int thread,
                                   ft_error *err)
{
    ft_input_stats *input = &p->input[i];
    float *x = p->x[thread];
    size_t rows;
    FT_TRY(read_input(input, p->session[k], x, &rows, err));
    FT_TRY(ft_exact_sums_add(&p->sums[i], &p->linalg, x, rows, p->scratch[thread], input->name,
                             err));
    if (p->options->kept_rows > 0)
        keep_rows(input, p, sample, x, rows);
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
typedef struct sample_batch {
    pass *pass;
    uint64_t first;
    size_t count;
} sample_batch;

static void run_sample(const void *job, int thread, size_t first, size_t end)
{
    const sample_batch *s = job;
    pass *p = s->pass;
    (void) thread;
    for (size_t i = first; i < end; i++) {
        p->status[i] = ft_dataset_set_inputs(p->options->data, (size_t) s->first + i, 1,
                                             p->session[i], &p->errs[i]);
        if (p->status[i] == FT_OK)
            p->status[i] = ft_session_run(p->session[i], &p->errs[i]);
    }
}

/* Accumulates all samples of this step into some inputs. */
static void accumulate_inputs(const void *job, int thread, size_t first, size_t end)
{
    const sample_batch *s = job;
    pass *p = s->pass;
    place sample = { .count = p->options->last - p->options->first };
    for (size_t i = first; i < end; i++)
        for (size_t k = 0; k < s->count && p->status[thread] == FT_OK; k++) {
            sample.index = s->first + k - p->options->first;
            p->status[thread] = accumulate_sample(p, i, k, sample, thread, &p->errs[thread]);
        }
}

static ft_status run_samples(const sample_batch *s, ft_error *err)
{
    ft_parallel_for_dynamic((int) s->pass->sessions, s->count, run_sample, s);
    return first_failure(s->pass, err);
}

static ft_status accumulate_samples(const sample_batch *s, ft_error *err)
{
    pass *p = s->pass;
    FT_TRY(run_samples(s, err));
    ft_parallel_for_dynamic((int) p->sessions, p->count, accumulate_inputs, s);
    return first_failure(p, err);
}

/*
 * Chooses the units of the moments from the first sample of the data, which need not be among those
 * that are accumulated: any split of the samples has the same units.
 */
static ft_status choose_units(pass *p, ft_error *err)
{
    FT_TRY(run_samples(&(sample_batch){ p, 0, 1 }, err));
    for (size_t i = 0; i < p->count; i++) {
        size_t rows;
        FT_TRY(read_input(&p->input[i], p->session[0], p->x[0], &rows, err));
        p->sums[i].unit = ft_exact_sums_unit(p->x[0], rows, p->input[i].cols);
    }
    return FT_OK;
}

/* Converts the sums, and reapplies the factor of an earlier pass. */
static void finish_stats(ft_input_stats *input, ft_exact_sums *sums)
{
    input->rows = sums->rows;
    ft_exact_sums_columns(sums, input->magnitude, input->square);
    input->moments = ft_exact_sums_take_moments(sums);
    float *factor = input->factor;
    input->factor = NULL;
    if (factor != NULL)
        ft_input_stats_rescale(input, factor);
}

static ft_status run_pass(pass *p, size_t longest, ft_error *err)
{
    const ft_activation_stats_options *options = p->options;
    FT_TRY(open_pass(p, longest, err));
    if (options->moments)
        FT_TRY(choose_units(p, err));
    for (uint64_t first = options->first, count; first < options->last; first += count) {
        count = ft_min_size(p->sessions, (size_t) (options->last - first));
        FT_TRY(accumulate_samples(&(sample_batch){ p, first, (size_t) count }, err));
        if (options->progress != NULL)
            options->progress(options->user, first + count - options->first,
                              options->last - options->first);
    }
    for (size_t i = 0; i < p->count; i++)
        finish_stats(&p->input[i], &p->sums[i]);
    return FT_OK;
}

ft_status ft_activation_stats_collect(ft_activation_stats *inputs, ft_input_stats *input,
                                      ft_error *err)
{
    const ft_activation_stats_options *options = inputs->options;
    if (input->rows > 0 && (!options->moments || input->moments != NULL) &&
        (options->kept_rows == 0 || input->half[0].x != NULL))
        return FT_OK;
    free_large(inputs);
    pass p = { .options = options, .input = input, .sessions = (size_t) options->threads };
    p.count = n_inputs_that_fit(inputs, input);
    if (options->stage != NULL)
        options->stage(options->user, "summing up inputs", "samples");
    ft_status status = run_pass(&p, inputs->max_tokens, err);
    close_pass(&p);
    return status;
}

void ft_input_stats_rescale(ft_input_stats *input, float *factor)
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
