/*
 * activation_stats.c - statistics of the inputs of linear layers over calibration data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/stats/activation_stats.h"

#include "calibrate/stats/exact_sums.h"
#include "calibrate/stats/stats_pass.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"

#include <stdlib.h>

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

/* One more than there are samples: for the row that chooses units. */
static ft_status init_checkpoints(ft_activation_stats *inputs, ft_error *err)
{
    const ft_activation_stats_options *o = inputs->options;
    const ft_backend *backend = o->model->backend;
    size_t count = (size_t) (o->last - o->first) + 1;
    FT_TRY(ft_activation_checkpoint_init(&inputs->checkpoint, backend, count, err));
    return ft_activation_checkpoint_init(&inputs->prefix_checkpoint, backend, count, err);
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
    return success ? init_checkpoints(inputs, err)
                   : ft_fail(err, FT_ENOMEM, "%s: no memory for sums", options->model->path);
}

static void half_stats_fini(ft_half_stats *half)
{
    free(half->x);
    free(half->amax);
    free(half->square);
    ft_exact_sums_fini(&half->sums);
    *half = (ft_half_stats){ .rows = 0 };
}

/* Frees what is large: second moments and kept rows. */
static void free_large(ft_activation_stats *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->input[i].moments);
        free(inputs->input[i].cross);
        inputs->input[i].moments = NULL;
        inputs->input[i].cross = NULL;
        for (int k = 0; k < 2; k++)
            half_stats_fini(&inputs->input[i].half[k]);
    }
}

void ft_activation_stats_fini(ft_activation_stats *inputs)
{
    free_large(inputs);
    ft_activation_checkpoint_fini(&inputs->checkpoint);
    ft_activation_checkpoint_fini(&inputs->prefix_checkpoint);
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->input[i].magnitude);
        free(inputs->input[i].square);
        free(inputs->input[i].factor);
    }
    free(inputs->input);
    free(inputs->input_of_weight);
    *inputs = (ft_activation_stats){ 0 };
}

/* ---- Collecting ---------------------------------------------------------------------------- */

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
    size_t bytes_left = inputs->options->memory / 2,
           max_inputs = inputs->count - (size_t) (first - inputs->input);
    for (size_t i = 0; i < max_inputs && inputs->options->memory > 0; i++) {
        size_t bytes = stats_bytes(inputs, &first[i]);
        if (i > 0 && bytes > bytes_left)
            return i;
        bytes_left -= ft_min_size(bytes, bytes_left);
    }
    return max_inputs;
}

static ft_status init_halves(ft_input_stats *input, size_t kept_rows, ft_error *err)
{
    bool success = true;
    for (int i = 0; i < 2 && success; i++) {
        ft_half_stats *half = &input->half[i];
        half->max_rows = (kept_rows + 1) / 2;
        half->x = ft_calloc(half->max_rows * input->cols, sizeof *half->x);
        half->amax = ft_calloc(input->cols, sizeof *half->amax);
        half->square = ft_calloc(input->cols, sizeof *half->square);
        success = half->x != NULL && half->amax != NULL && half->square != NULL &&
                  ft_exact_sums_init(&half->sums, input->cols, false, NULL) == FT_OK;
    }
    return success ? FT_OK
                   : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu rows", input->name, kept_rows);
}

/* A pass over as many inputs as fit, starting with one; their halves are in memory. */
static ft_status init_pass(ft_stats_pass *pass, ft_activation_stats *inputs, ft_input_stats *input,
                           ft_error *err)
{
    const ft_activation_stats_options *options = inputs->options;
    free_large(inputs);
    *pass =
        (ft_stats_pass){ .options = options,
                         .input = input,
                         .count = options->source != NULL ? 1 : n_inputs_that_fit(inputs, input),
                         .longest = inputs->max_tokens,
                         .checkpoint = &inputs->checkpoint };
    for (size_t i = 0; i < pass->count && options->kept_rows > 0; i++)
        FT_TRY(init_halves(&input[i], options->kept_rows, err));
    return FT_OK;
}

ft_status ft_activation_stats_collect(ft_activation_stats *inputs, ft_input_stats *input,
                                      ft_error *err)
{
    const ft_activation_stats_options *options = inputs->options;
    if (input->rows > 0 && (!options->moments || input->moments != NULL) &&
        (options->kept_rows == 0 || input->half[0].x != NULL))
        return FT_OK;
    ft_stats_pass pass;
    FT_TRY(init_pass(&pass, inputs, input, err));
    FT_TRY(ft_stats_pass_run(&pass, err));
    for (size_t i = 0; i < pass.count; i++)
        if (input[i].factor != NULL) /* of an earlier pass */
            ft_input_stats_rescale(&input[i], input[i].factor);
    return FT_OK;
}

ft_status ft_activation_stats_collect_shard(ft_activation_stats *inputs, ft_shard shard,
                                            const ft_stats_sink *sink, ft_error *err)
{
    FT_TRY(sink->begin(sink->user, inputs, err));
    for (size_t i = 0, count; i < inputs->count; i += count) {
        ft_stats_pass pass;
        FT_TRY(init_pass(&pass, inputs, &inputs->input[i], err));
        pass.shard = shard;
        pass.sink = sink;
        FT_TRY(ft_stats_pass_run(&pass, err));
        count = pass.count;
    }
    free_large(inputs);
    return FT_OK;
}

ft_status ft_activation_stats_collect_behind(ft_activation_stats *inputs, ft_input_stats *input,
                                             const ft_model *prefix, ft_error *err)
{
    free_large(inputs);
    return ft_stats_pass_run(&(ft_stats_pass){ .options = inputs->options,
                                               .prefix = prefix,
                                               .input = input,
                                               .count = 1,
                                               .longest = inputs->max_tokens,
                                               .checkpoint = &inputs->checkpoint,
                                               .prefix_checkpoint = &inputs->prefix_checkpoint },
                             err);
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
