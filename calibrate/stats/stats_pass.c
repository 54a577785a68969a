/*
 * stats_pass.c - one pass over the samples that adds up statistics of some inputs.
 *
 * One sample per thread is run at a time; then each thread takes an input and accumulates the
 * contributions of these samples. The sums are exact, so their order does not matter. A single
 * input is accumulated by all threads together.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/stats/stats_pass.h"

#include "calibrate/stats/exact_sums.h"
#include "calibrate/stats/sample_runner.h"
#include "kernels/threads/team.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct pass {
    const ft_stats_pass *job;
    ft_sample_runner original, prefix; /* statistics are those of the prefix, if there is one */
    ft_exact_sums *sums;               /* [count] */
    size_t sessions;
    float **x;        /* [sessions]: buffers of [2, longest, maximum columns] */
    double **scratch; /* [sessions]: of ft_exact_sums_add() */
    size_t x_stride;  /* floats of each of the two */
    ft_linalg linalg;
    ft_error *errs;    /* [sessions] */
    ft_status *status; /* [sessions] */
} pass;

static bool has_prefix(const pass *p)
{
    return p->job->prefix != NULL;
}

/* The runner whose inputs are added up. */
static const ft_sample_runner *observed(const pass *p)
{
    return has_prefix(p) ? &p->prefix : &p->original;
}

/* ---- Memory ------------------------------------------------------------------------------- */

static ft_status init_sums(pass *p, ft_error *err)
{
    p->sums = ft_calloc(p->job->count, sizeof *p->sums);
    if (p->sums == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the sums of %zu inputs", p->job->count);
    for (size_t i = 0; i < p->job->count; i++) {
        bool moments = p->job->options->moments;
        FT_TRY(ft_exact_sums_init(&p->sums[i], p->job->input[i].cols, moments, err));
        if (has_prefix(p))
            FT_TRY(ft_exact_sums_init_cross(&p->sums[i], err));
    }
    return FT_OK;
}

static ft_status init_buffers(pass *p, ft_error *err)
{
    size_t cols = 1, buffers = has_prefix(p) ? 2 : 1;
    for (size_t i = 0; i < p->job->count; i++)
        cols = p->job->input[i].cols > cols ? p->job->input[i].cols : cols;
    p->x_stride = p->job->longest * cols;
    p->x = ft_calloc(p->sessions, sizeof *p->x);
    p->scratch = ft_calloc(p->sessions, sizeof *p->scratch);
    p->errs = ft_calloc(p->sessions, sizeof *p->errs);
    p->status = ft_calloc(p->sessions, sizeof *p->status);
    bool success = p->x != NULL && p->scratch != NULL && p->errs != NULL && p->status != NULL;
    for (size_t i = 0; i < p->sessions && success; i++) {
        size_t doubles = p->job->options->moments ? ft_exact_sums_scratch(cols) : 1;
        p->x[i] = ft_calloc(buffers * p->x_stride, sizeof(float));
        p->scratch[i] = ft_calloc(doubles, sizeof(double));
        success = p->x[i] != NULL && p->scratch[i] != NULL;
    }
    return success
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "no memory for %zu x %zu inputs", p->job->longest, cols);
}

static ft_status open_runner(ft_sample_runner *runner, const pass *p, const ft_model *model,
                             ft_activation_checkpoint *checkpoint, const char **names,
                             ft_error *err)
{
    const ft_sample_runner_options options = { .model = model,
                                               .data = p->job->options->data,
                                               .name = names,
                                               .count = p->job->count,
                                               .sessions = p->sessions,
                                               .longest = p->job->longest,
                                               .checkpoint = checkpoint,
                                               .memory = p->job->options->memory };
    for (size_t i = 0; i < p->job->count; i++)
        names[i] = p->job->input[i].name;
    return ft_sample_runner_open(runner, &options, err);
}

static ft_status open_runners(pass *p, ft_error *err)
{
    const ft_stats_pass *job = p->job;
    const char **names = ft_calloc(job->count, sizeof *names);
    if (names == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu names", job->count);
    ft_status status =
        open_runner(&p->original, p, job->options->model, job->checkpoint, names, err);
    if (status == FT_OK && has_prefix(p))
        status = open_runner(&p->prefix, p, job->prefix, job->prefix_checkpoint, names, err);
    free(names);
    return status;
}

static ft_status open_pass(pass *p, ft_error *err)
{
    int workers = ft_activation_stats_workers(p->job->options);
    FT_TRY(ft_linalg_init(&p->linalg, p->job->count == 1 ? workers : 1, err));
    FT_TRY(init_sums(p, err));
    FT_TRY(init_buffers(p, err));
    return open_runners(p, err);
}

static void close_pass(pass *p)
{
    ft_sample_runner_close(&p->original);
    ft_sample_runner_close(&p->prefix);
    for (size_t i = 0; i < p->sessions && p->x != NULL; i++)
        free(p->x[i]);
    for (size_t i = 0; i < p->sessions && p->scratch != NULL; i++)
        free(p->scratch[i]);
    for (size_t i = 0; i < p->job->count && p->sums != NULL; i++)
        ft_exact_sums_fini(&p->sums[i]);
    free(p->sums);
    free(p->x);
    free(p->scratch);
    free(p->errs);
    free(p->status);
}

/* ---- One sample --------------------------------------------------------------------------- */

enum { LARGEST_OF = 8 }; /* samples of a half: of one of them the largest row is kept */

/* The number of a sample, and how many there are. */
typedef struct place {
    uint64_t index, count;
} place;

/* Accumulates the maxima of a half, and returns the row with the largest magnitude. */
static size_t accumulate_half(ft_half_stats *half, const float *x, size_t rows, size_t cols)
{
    size_t largest = 0;
    float most = 0.0f;
    for (size_t row = 0; row < rows; row++)
        for (size_t col = 0; col < cols; col++) {
            float magnitude = fabsf(x[row * cols + col]);
            half->amax[col] = fmaxf(half->amax[col], magnitude);
            if (magnitude > most) {
                most = magnitude;
                largest = row;
            }
        }
    return largest;
}

static void keep_row(ft_half_stats *half, const float *row, size_t cols)
{
    if (half->rows < half->max_rows)
        memcpy(half->x + half->rows++ * cols, row, cols * sizeof *row);
}

/*
 * Adds one sample to a half, and keeps its share of rows. Evenly spaced rows of later samples start
 * further from the first row, so that all positions occur.
 */
static ft_status add_to_half(ft_input_stats *input, const pass *p, place sample, const float *x,
                             size_t rows, ft_error *err)
{
    ft_half_stats *half = &input->half[sample.index % 2];
    uint64_t kept_rows = p->job->options->kept_rows;
    size_t largest = accumulate_half(half, x, rows, input->cols);
    size_t share = (size_t) ((sample.index + 1) * kept_rows / sample.count -
                             sample.index * kept_rows / sample.count);
    bool keeps_largest = share > 0 && sample.index / 2 % LARGEST_OF == 0;
    if (keeps_largest)
        keep_row(half, x + largest * input->cols, input->cols);
    for (size_t i = keeps_largest; i < ft_min_size(share, rows); i++) {
        size_t row = (size_t) (rows * (i * sample.count + sample.index) / (share * sample.count));
        keep_row(half, x + ft_min_size(row, rows - 1) * input->cols, input->cols);
    }
    return ft_exact_sums_add(&half->sums, NULL, x, rows, NULL, input->name, err);
}

/* Adds the products of the difference that quantization of the prefix makes. */
static ft_status accumulate_difference(pass *p, size_t i, size_t k, int thread, ft_error *err)
{
    const ft_input_stats *input = &p->job->input[i];
    float *x = p->x[thread], *difference = x + p->x_stride;
    size_t rows, cols = input->cols;
    FT_TRY(ft_sample_runner_read(&p->original, i, k, difference, &rows, err));
    for (size_t at = 0; at < rows * cols; at++) {
        float factor = input->factor != NULL ? input->factor[at % cols] : 1.0f;
        difference[at] = difference[at] / factor - x[at];
    }
    return ft_exact_sums_add_cross(&p->sums[i], &p->linalg, difference, x, rows, p->scratch[thread],
                                   input->name, err);
}

/* Adds to the statistics of input i what the sample that session k ran last contributes. */
static ft_status accumulate_sample(pass *p, size_t i, size_t k, place sample, int thread,
                                   ft_error *err)
{
    size_t rows;
    FT_TRY(ft_sample_runner_read(observed(p), i, k, p->x[thread], &rows, err));
    FT_TRY(ft_exact_sums_add(&p->sums[i], &p->linalg, p->x[thread], rows, p->scratch[thread],
                             p->job->input[i].name, err));
    if (p->job->input[i].half[0].x != NULL)
        FT_TRY(add_to_half(&p->job->input[i], p, sample, p->x[thread], rows, err));
    return has_prefix(p) ? accumulate_difference(p, i, k, thread, err) : FT_OK;
}

/* Both models on a row of the data, whose checkpoint has the number `sample`. */
static ft_status run_sample(const pass *p, size_t session, size_t row, size_t sample, ft_error *err)
{
    FT_TRY(ft_sample_runner_run(&p->original, session, row, sample, err));
    return has_prefix(p) ? ft_sample_runner_run(&p->prefix, session, row, sample, err) : FT_OK;
}

/* ---- All samples -------------------------------------------------------------------------- */

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

static void run_batch(const void *job, int thread, size_t first, size_t end)
{
    const sample_batch *s = job;
    pass *p = s->pass;
    (void) thread;
    for (size_t i = first; i < end; i++) {
        size_t row = (size_t) s->first + i;
        p->status[i] = run_sample(p, i, row, row - (size_t) p->job->options->first, &p->errs[i]);
    }
}

static void accumulate_batch(const void *job, int thread, size_t first, size_t end)
{
    const sample_batch *s = job;
    pass *p = s->pass;
    const ft_activation_stats_options *options = p->job->options;
    place sample = { .count = options->last - options->first };
    for (size_t i = first; i < end; i++)
        for (size_t k = 0; k < s->count && p->status[thread] == FT_OK; k++) {
            sample.index = s->first + k - options->first;
            p->status[thread] = accumulate_sample(p, i, k, sample, thread, &p->errs[thread]);
        }
}

static ft_status run_samples(const sample_batch *s, ft_error *err)
{
    ft_parallel_for_dynamic((int) s->pass->sessions, s->count, run_batch, s);
    return first_failure(s->pass, err);
}

static ft_status accumulate_samples(const sample_batch *s, ft_error *err)
{
    pass *p = s->pass;
    FT_TRY(run_samples(s, err));
    if (p->job->count == 1)
        accumulate_batch(s, 0, 0, 1);
    else
        ft_parallel_for_dynamic((int) p->sessions, p->job->count, accumulate_batch, s);
    return first_failure(p, err);
}

/*
 * Chooses the units of the moments from the first sample of the data, which need not be among those
 * that are accumulated: any split of the samples has the same units.
 */
static ft_status choose_units(pass *p, ft_error *err)
{
    const ft_activation_stats_options *options = p->job->options;
    FT_TRY(run_sample(p, 0, 0, (size_t) (options->last - options->first), err));
    for (size_t i = 0; i < p->job->count; i++) {
        size_t rows;
        FT_TRY(ft_sample_runner_read(observed(p), i, 0, p->x[0], &rows, err));
        p->sums[i].unit = ft_exact_sums_unit(p->x[0], rows, p->job->input[i].cols);
    }
    return FT_OK;
}

static void finish_stats(ft_input_stats *input, ft_exact_sums *sums)
{
    input->rows = sums->rows;
    ft_exact_sums_columns(sums, input->magnitude, input->square);
    for (int i = 0; i < 2 && input->half[i].x != NULL; i++)
        ft_exact_sums_columns(&input->half[i].sums, NULL, input->half[i].square);
    free(input->moments);
    free(input->cross);
    input->moments = ft_exact_sums_take_moments(sums);
    input->cross = ft_exact_sums_take_cross(sums);
}

/* Gives the sums to the inputs, or to the sink. */
static ft_status finish_all(pass *p, ft_error *err)
{
    const ft_stats_sink *sink = p->job->sink;
    for (size_t i = 0; i < p->job->count; i++)
        if (sink != NULL)
            FT_TRY(sink->add(sink->user, &p->job->input[i], &p->sums[i], err));
        else
            finish_stats(&p->job->input[i], &p->sums[i]);
    return FT_OK;
}

static ft_status run_pass(pass *p, ft_error *err)
{
    const ft_activation_stats_options *options = p->job->options;
    uint64_t first = options->first, last = options->last;
    ft_shard_samples(p->job->shard, &first, &last);
    FT_TRY(open_pass(p, err));
    if (options->moments)
        FT_TRY(choose_units(p, err));
    for (uint64_t next = first, count; next < last; next += count) {
        count = ft_min_size(p->sessions, (size_t) (last - next));
        FT_TRY(accumulate_samples(&(sample_batch){ p, next, (size_t) count }, err));
        if (options->progress != NULL)
            options->progress(options->user, next + count - first, last - first);
    }
    FT_TRY(finish_all(p, err));
    ft_sample_runner_advance(&p->original);
    ft_sample_runner_advance(&p->prefix);
    return FT_OK;
}

/* ---- Sums of other processes ---------------------------------------------------------------- */

static ft_status read_input(const ft_activation_stats_options *options, ft_input_stats *input,
                            ft_error *err)
{
    ft_exact_sums sums;
    ft_status status = ft_exact_sums_init(&sums, input->cols, options->moments, err);
    if (status == FT_OK)
        status = options->source->read(options->source->user, input, &sums, err);
    if (status == FT_OK)
        finish_stats(input, &sums);
    ft_exact_sums_fini(&sums);
    return status;
}

static ft_status read_pass(const ft_stats_pass *job, ft_error *err)
{
    for (size_t i = 0; i < job->count; i++)
        FT_TRY(read_input(job->options, &job->input[i], err));
    return FT_OK;
}

/* ------------------------------------------------------------------------------------------- */

ft_status ft_stats_pass_run(const ft_stats_pass *job, ft_error *err)
{
    if (job->options->source != NULL)
        return read_pass(job, err);
    pass p = { .job = job, .sessions = (size_t) job->options->threads };
    if (job->options->stage != NULL)
        job->options->stage(job->options->user, "summing up inputs", "samples");
    ft_status status = run_pass(&p, err);
    close_pass(&p);
    return status;
}
