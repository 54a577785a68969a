/*
 * device_rounding.c - GPTQ and GPTAQ on a device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/device_rounding.h"

#include "calibrate/weights/awq.h"
#include "calibrate/stats/sample_runner.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"

#include <stdlib.h>

typedef struct rounding {
    ft_refinement *refining;
    const ft_activation_stats_options *options;
    const ft_weight_quantizer *device;
    ft_quantizer *quantizer;
    ft_model *prefix;                  /* NULL: GPTQ, from the inputs of the original model */
    ft_sample_runner original, behind; /* the original model and the prefix, for one input */
} rounding;

bool ft_device_can_round(const ft_activation_stats_options *options, const ft_recipe *recipe)
{
    return options->model->backend->quantizer != NULL && options->model->artifact != NULL &&
           recipe->round != FT_ROUND_NEAREST && !recipe->awq &&
           !ft_recipe_uses(recipe, FT_SCHEME_W8A8) &&
           !ft_recipe_uses(recipe, FT_SCHEME_W8A8_DYNAMIC) &&
           !ft_recipe_uses(recipe, FT_SCHEME_W8A8_BLOCK);
}

/* ---- Inputs -------------------------------------------------------------------------------- */

/* The model whose inputs are added up. */
static const ft_sample_runner *observed(const rounding *r)
{
    return r->prefix != NULL ? &r->behind : &r->original;
}

static ft_status open_runner(ft_sample_runner *runner, rounding *r, const ft_model *model,
                             ft_activation_checkpoint *checkpoint, const char *name, ft_error *err)
{
    return ft_sample_runner_open(
        runner,
        &(ft_sample_runner_options){ .model = model,
                                     .data = r->options->data,
                                     .name = &name,
                                     .count = 1,
                                     .sessions = 1,
                                     .longest = ft_dataset_max_length(r->options->data),
                                     .checkpoint = checkpoint },
        err);
}

static ft_status open_runners(rounding *r, const char *name, ft_error *err)
{
    ft_activation_stats *stats = &r->refining->stats;
    FT_TRY(open_runner(&r->original, r, r->options->model, &stats->checkpoint, name, err));
    return r->prefix != NULL
               ? open_runner(&r->behind, r, r->prefix, &stats->prefix_checkpoint, name, err)
               : FT_OK;
}

static void close_runners(rounding *r)
{
    ft_sample_runner_close(&r->original);
    ft_sample_runner_close(&r->behind);
}

/* A row of the data, whose checkpoint has the number `sample`, in both models. */
static ft_status run_row(const rounding *r, size_t row, size_t sample, ft_error *err)
{
    FT_TRY(ft_sample_runner_run(&r->original, 0, row, sample, err));
    return r->prefix != NULL ? ft_sample_runner_run(&r->behind, 0, row, sample, err) : FT_OK;
}

static ft_status add_row(const rounding *r, ft_error *err)
{
    const ft_sample_runner *from = observed(r);
    return r->device->add(r->quantizer, from->session[0]->exec, from->value[0],
                          r->prefix != NULL ? r->original.session[0]->exec : NULL,
                          r->original.value[0], ft_sample_runner_rows(from, 0, 0), NULL, err);
}

/* The first row of the data sets the unit, whichever rows are added up. */
static ft_status choose_unit(const rounding *r, ft_error *err)
{
    const ft_sample_runner *from = observed(r);
    FT_TRY(run_row(r, 0, (size_t) (r->options->last - r->options->first), err));
    return r->device->choose_unit(r->quantizer, from->session[0]->exec, from->value[0],
                                  ft_sample_runner_rows(from, 0, 0), err);
}

static ft_status add_rows(const rounding *r, ft_error *err)
{
    const ft_activation_stats_options *o = r->options;
    for (uint64_t row = o->first; row < o->last; row++) {
        FT_TRY(run_row(r, (size_t) row, (size_t) (row - o->first), err));
        FT_TRY(add_row(r, err));
        if (o->progress != NULL)
            o->progress(o->user, row + 1 - o->first, o->last - o->first);
    }
    ft_sample_runner_advance(&r->original);
    ft_sample_runner_advance(&r->behind);
    return FT_OK;
}

static ft_status sum_up(rounding *r, ft_input_stats *input, ft_error *err)
{
    if (r->options->stage != NULL)
        r->options->stage(r->options->user, "summing up inputs", "samples");
    FT_TRY(r->device->begin(r->quantizer, input->cols, r->prefix != NULL, err));
    ft_status status = open_runners(r, input->name, err);
    if (status == FT_OK)
        status = choose_unit(r, err);
    if (status == FT_OK)
        status = add_rows(r, err);
    if (status == FT_OK) /* waits for the samples, before their sessions close */
        status = r->device->factorize(r->quantizer, input->name, err);
    close_runners(r);
    if (status == FT_OK)
        r->device->columns(r->quantizer, input->magnitude, input->square);
    return status;
}

/* ---- Matrices ------------------------------------------------------------------------------ */

/* The device memory of a matrix of the prefix, which nothing else uses. */
static void *weight_of_prefix(const rounding *r, int index)
{
    return r->prefix != NULL ? (void *) (uintptr_t) r->prefix->weight[index].data : NULL;
}

static ft_status quantize(rounding *r, ft_quantized_weight *q, const float *importance,
                          ft_error *err)
{
    int index = ft_plan_find_weight(&r->options->model->plan, q->weights.name);
    const ft_groupwise_options *o = &q->options;
    const ft_weight_matrix *w = &q->weights;
    ft_prefix *bytes = &r->refining->prefix;
    ft_groupwise_bytes sections = ft_groupwise_stream_bytes(w, o);
    ft_quantizer_error error;
    FT_TRY(ft_prefix_alloc(bytes, index, sections.quantized + sections.scales + sections.zeros,
                           err));
    FT_TRY(r->device->quantize(
        r->quantizer,
        &(ft_quantizer_matrix){ .name = w->name,
                                .dtype = w->dtype,
                                .data = w->data,
                                .rows = w->rows,
                                .cols = w->cols,
                                .row_factor = w->row_factor,
                                .col_factor = w->col_factor },
        &(ft_quantizer_options){ .bits = o->bits,
                                 .group = o->group,
                                 .asymmetric = o->asymmetric,
                                 .clip = o->clip,
                                 .importance = importance,
                                 .gptq = true,
                                 .sweeps = FT_QUANTIZER_SWEEPS,
                                 .dequantized = weight_of_prefix(r, index) },
        bytes->quantized[index], &error, err));
    q->error = (ft_groupwise_error){ .signal = error.signal,
                                     .noise = error.noise,
                                     .out_signal = error.out_signal,
                                     .out_noise = error.out_noise };
    return FT_OK;
}

static ft_status quantize_readers(rounding *r, const ft_input_stats *input,
                                  const float *importance, ft_error *err)
{
    ft_refinement *all = r->refining;
    for (size_t i = 0; i < all->count; i++) {
        ft_quantized_weight *q = &all->quantized[i];
        if (ft_refinement_reads(all, q, input))
            FT_TRY(quantize(r, q, importance, err));
    }
    return FT_OK;
}

static ft_status round_input(rounding *r, ft_input_stats *input, ft_error *err)
{
    bool weighs_columns = r->refining->recipe->clip == FT_CLIP_IMATRIX;
    FT_TRY(sum_up(r, input, err));
    float *importance = ft_calloc(input->cols, sizeof *importance);
    if (importance == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu columns", input->name, input->cols);
    ft_column_importance(importance, input);
    ft_status status = quantize_readers(r, input, weighs_columns ? importance : NULL, err);
    free(importance);
    return status;
}

/* -------------------------------------------------------------------------------------------- */

static ft_status open_rounding(rounding *r, ft_error *err)
{
    const ft_model *model = r->options->model;
    const char *folder = getenv("TMPDIR");
    FT_TRY(ft_prefix_init(&r->refining->prefix, model, &r->refining->scaling, err));
    r->refining->prefix.folder = folder != NULL ? folder : "/var/tmp";
    if (r->refining->recipe->round == FT_ROUND_GPTAQ)
        FT_TRY(ft_model_open_with_config(&r->prefix, model->path,
                                         &(ft_model_options){ .device = r->options->device },
                                         &model->quant, err));
    return r->device->open(&r->quantizer, model->device, err);
}

ft_status ft_device_round(ft_refinement *refining, ft_error *err)
{
    rounding r = { .refining = refining,
                   .options = &refining->stats_options,
                   .device = refining->stats_options.model->backend->quantizer };
    ft_status status = open_rounding(&r, err);
    for (size_t i = 0; i < refining->stats.count && status == FT_OK; i++)
        status = round_input(&r, &refining->stats.input[i], err);
    r.device->close(r.quantizer);
    ft_model_close(r.prefix);
    return status;
}
