/*
 * open.c - opens and validates everything that a calibration needs, before it starts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/job.h"

#include "calibrate/check_budget.h"
#include "calibrate/output_paths.h"
#include "runtime/data/image_files/image_dataset.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static ft_status check_range(const ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    bool several = o->images.count > 1;
    if (o->last <= j->data.rows || o->data == NULL)
        return FT_OK;
    return ft_fail(err, FT_EARG, "%s%s %zu samples, but --samples asks for %" PRIu64 " to %" PRIu64,
                   o->data, several ? " and the images after it: are" : ": has", j->data.rows,
                   o->first, o->last - 1);
}

/* Lists the image files, none of which an output may replace. */
static ft_status list_images(ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    if (o->images.count == 0)
        return FT_OK;
    FT_TRY(ft_image_list_read(&j->images, o->images.path, o->images.count, err));
    if (o->eval != NULL)
        FT_TRY(ft_image_list_read(&j->eval_images, &o->eval, 1, err));
    for (size_t i = 0; i < j->images.count; i++)
        FT_TRY(ft_calibration_check_input(o, j->images.path[i], err));
    for (size_t i = 0; i < j->eval_images.count; i++)
        FT_TRY(ft_calibration_check_input(o, j->eval_images.path[i], err));
    return FT_OK;
}

static ft_status open_outputs(ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    FT_TRY(ft_calibration_check_paths(o, err));
    if (o->output != NULL && !o->dry_run)
        FT_TRY(ft_artifact_create(&j->writer, o->output, o->force, err));
    if (o->save != NULL)
        FT_TRY(ft_atomic_file_open(&j->counters, o->save, o->force, err));
    if (o->save_stats != NULL && !(o->resume && access(o->save_stats, F_OK) == 0))
        FT_TRY(ft_atomic_file_open(&j->stats, o->save_stats, o->force, err));
    if (o->report != NULL)
        FT_TRY(ft_atomic_file_open(&j->report_file, o->report, o->force, err));
    return FT_OK;
}

/* The recipe decides until the matrices have their schemes. */
static bool is_int8_weight(const void *job, const char *weight)
{
    const ft_calibration_job *j = job;
    const ft_quantized_weight *found =
        ft_quantized_weights_find(j->quantized, j->n_quantized, weight);
    return ft_scheme_is_int8(found != NULL ? found->scheme : ft_recipe_scheme(j->recipe, weight));
}

ft_quant_config ft_calibration_quant_config(const ft_calibration_job *j, ft_mode mode)
{
    return (ft_quant_config){
        .mode = mode,
        .int8_residual = j->options->int8_residual,
        .dynamic = j->amax == NULL && ft_recipe_uses(j->recipe, FT_SCHEME_W8A8_DYNAMIC),
        .quantized_head = ft_recipe_scheme(j->recipe, FT_HEAD_WEIGHT) != FT_SCHEME_FLOAT,
        .amax = j->amax,
        .smoothing = j->smoothing,
        .n_smoothing = j->n_smoothing,
        .is_int8 = is_int8_weight,
        .user = j,
    };
}

static ft_status check_residual(const ft_calibration_job *j, ft_error *err)
{
    if (!j->options->int8_residual)
        return FT_OK;
    if (j->model->has_cache)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: the residual stream of decoders stays float",
                       j->options->input);
    if (ft_config_is_vision(&j->model->config))
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: the residual stream of family %s is not normalized and stays float",
                       j->options->input, j->model->family->name);
    for (size_t i = 0; i < j->n_quantized; i++)
        if (j->quantized[i].scheme != FT_SCHEME_W8A8)
            return ft_fail(err, FT_EARG,
                           "%s: an int8 residual stream needs all linears in w8a8, but %s is %s",
                           j->options->input, j->quantized[i].weights.name,
                           ft_scheme_name(j->quantized[i].scheme));
    return FT_OK;
}

/*
 * Data-driven quantization needs samples, and calibrated ranges must not belong to values that AWQ
 * changes.
 */
static ft_status check_refinement(const ft_calibration_job *j, ft_error *err)
{
    if (!j->is_groupwise)
        return ft_fail(err, FT_EARG,
                       "%s: imatrix, AWQ, GPTQ and GPTAQ are for group-wise quantized matrices",
                       j->options->input);
    if (j->options->data == NULL)
        return ft_fail(err, FT_EARG, "%s: imatrix, AWQ, GPTQ and GPTAQ need samples",
                       j->options->input);
    if (j->options->n_merge > 0)
        return ft_fail(err, FT_EARG, "%s: imatrix, AWQ, GPTQ and GPTAQ need samples, not counters",
                       j->options->input);
    if (j->recipe->awq && j->needs_ranges)
        return ft_fail(err, FT_EARG,
                       "%s: AWQ rescales values whose ranges w8a8 calibrates: use one of them",
                       j->options->input);
    return FT_OK;
}

/* Whether an int8 plan of the model has operations that need static scales, such as attention. */
static bool has_static_operations(const ft_model *model)
{
    for (int i = 0; i < model->graph.nop; i++)
        if (ft_op_info_of(model->graph.op[i].kind)->reads == FT_READS_STATIC)
            return true;
    return false;
}

/*
 * Ranges are calibrated for static scales: those of w8a8, and with samples or a file of ranges
 * those of attention.
 */
static bool needs_ranges(const ft_calibration_job *j)
{
    const ft_calibration_options *o = j->options;
    bool has_data = o->data != NULL || o->n_merge > 0 || o->amax != NULL;
    return ft_quantized_weights_any(j->quantized, j->n_quantized, FT_SCHEME_W8A8) ||
           (ft_quantized_weights_any(j->quantized, j->n_quantized, FT_SCHEME_W8A8_DYNAMIC) &&
            has_data && has_static_operations(j->model));
}

static bool is_on_cpu(const ft_calibration_job *j)
{
    const char *device = j->options->device;
    return device == NULL || strncmp(device, "cpu", 3) == 0;
}

/* Where activations stay float, a GPU observes them as it computes them in use: in half precision.
 */
static ft_mode observed_mode(const ft_calibration_job *j)
{
    bool is_weight_only = !ft_recipe_uses(j->recipe, FT_SCHEME_W8A8) &&
                          !ft_recipe_uses(j->recipe, FT_SCHEME_W8A8_DYNAMIC) &&
                          !ft_recipe_uses(j->recipe, FT_SCHEME_W8A8_BLOCK);
    return is_weight_only && !is_on_cpu(j) ? FT_MODE_FLOAT : FT_MODE_OBSERVE;
}

/* Opens the model and decides the scheme of each matrix. */
static ft_status open_model(ft_calibration_job *j, ft_error *err)
{
    const ft_quant_config quant = ft_calibration_quant_config(j, observed_mode(j));
    FT_TRY(ft_model_open_with_config(
        &j->model, j->input, &(ft_model_options){ .device = j->options->device }, &quant, err));
    FT_TRY(ft_quantized_weights_new(&j->quantized, &j->n_quantized, j->model, j->recipe, err));
    j->is_groupwise = ft_quantized_weights_any_groupwise(j->quantized, j->n_quantized);
    j->needs_ranges = needs_ranges(j);
    if (j->needs_ranges && j->options->data == NULL && j->options->n_merge == 0 &&
        j->options->amax == NULL)
        return ft_fail(err, FT_EARG, "%s: w8a8 needs samples", j->options->input);
    if (!j->needs_ranges && j->options->amax != NULL)
        return ft_fail(err, FT_EARG,
                       "%s: nothing has a static scale, so the ranges of %s are not needed",
                       j->options->input, j->options->amax);
    if (!j->needs_ranges && (j->options->save != NULL || j->options->n_merge > 0))
        return ft_fail(err, FT_EARG,
                       "%s: no matrix is w8a8, so there are no counters to save or merge",
                       j->options->input);
    if (ft_recipe_needs_data(j->recipe))
        FT_TRY(check_refinement(j, err));
    return check_residual(j, err);
}

/* Reads a file of tensors or texts, or makes samples of the image files if there are any. */
static ft_status read_samples(ft_dataset *out, const char *path, const ft_image_list *images,
                              const ft_calibration_job *j, ft_error *err)
{
    ft_text_source texts = j->options->texts;
    if (images->count > 0)
        return ft_dataset_from_labeled_images(out, images, j->model, err);
    if (texts.path == NULL)
        return ft_dataset_read(out, path, j->model, err);
    texts.path = path;
    return ft_dataset_read_texts(out, &texts, j->model, err);
}

bool ft_calibration_can_mix(const ft_calibration_job *j)
{
    const ft_calibration_options *o = j->options;
    bool is_int8 = ft_quantized_weights_any(j->quantized, j->n_quantized, FT_SCHEME_W8A8) ||
                   ft_quantized_weights_any(j->quantized, j->n_quantized, FT_SCHEME_W8A8_DYNAMIC);
    return is_int8 && o->data != NULL && o->amax == NULL && !o->int8_residual;
}

/* Samples that were not used to reach a target must meet it. */
static ft_status check_verification(const ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    bool held_out;
    double loss;
    FT_TRY(ft_accuracy_target_loss(&loss, &o->target, j->model, j->recipe->scheme, err));
    ft_dataset data = ft_calibration_eval_data(j, &held_out);
    return held_out && data.rows > 0
               ? FT_OK
               : ft_fail(err, FT_EARG,
                         "%s: --target needs samples that are not observed: give --eval, or "
                         "observe fewer with --samples",
                         o->data);
}

/* A budget, or a target that the user sets. */
static ft_status check_target(const ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    bool of_weights = ft_calibration_plans_weights(j);
    if (of_weights)
        FT_TRY(ft_calibration_check_budget(j, err));
    bool by_time = o->budget.ms > 0.0;
    if (!by_time && !ft_accuracy_target_is_set(&o->target))
        return FT_OK;
    if (by_time && !of_weights && !ft_calibration_can_mix(j))
        return ft_fail(err, FT_EARG,
                       "%s: --budget ms=X is for w8a8, w8a8-dynamic and --scheme w4a16 with "
                       "samples, without --amax and with a float residual stream",
                       o->input);
    if (by_time)
        return FT_OK;
    if (!of_weights && !ft_calibration_can_mix(j))
        return ft_fail(err, FT_EARG,
                       "%s: --target is for w8a8, w8a8-dynamic and --scheme w4a16 with samples, "
                       "without --amax and with a float residual stream",
                       o->input);
    return check_verification(j, err);
}

static ft_status open_inputs(ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    FT_TRY(open_model(j, err));
    if (o->data != NULL)
        FT_TRY(read_samples(&j->data, o->data, &j->images, j, err));
    if (o->eval != NULL)
        FT_TRY(read_samples(&j->eval, o->eval, &j->eval_images, j, err));
    FT_TRY(check_range(j, err));
    return check_target(j, err);
}

ft_status ft_calibration_reopen(ft_calibration_job *j, ft_error *err)
{
    ft_dataset_fini(&j->data);
    ft_dataset_fini(&j->eval);
    ft_quantized_weights_free(j->quantized, j->n_quantized);
    ft_model_close(j->model);
    j->data = j->eval = (ft_dataset){ 0 };
    j->quantized = NULL;
    j->n_quantized = 0;
    j->model = NULL;
    return open_inputs(j, err);
}

ft_status ft_calibration_open(ft_calibration_job *j, ft_error *err)
{
    j->input = j->options->input;
    FT_TRY(ft_calibration_read_times(j, err));
    FT_TRY(list_images(j, err));
    FT_TRY(open_outputs(j, err));
    return open_inputs(j, err);
}

/* ---- Evaluation samples ------------------------------------------------------------------- */

uint64_t ft_calibration_last(const ft_calibration_job *j)
{
    return j->options->last > 0 ? j->options->last : j->data.rows;
}

ft_dataset ft_calibration_observed_data(const ft_calibration_job *j)
{
    uint64_t first = j->options->first;
    return ft_dataset_slice(&j->data, (size_t) first, (size_t) (ft_calibration_last(j) - first));
}

enum { MAX_EVAL_SAMPLES = 64 }; /* maximum samples if no held-out set is given */

ft_dataset ft_calibration_eval_data(const ft_calibration_job *j, bool *held_out)
{
    const ft_calibration_options *o = j->options;
    *held_out = true;
    if (o->eval != NULL)
        return j->eval;
    if (o->data == NULL)
        return (ft_dataset){ 0 };
    if (o->amax != NULL && !ft_recipe_needs_data(j->recipe))
        return j->data; /* nothing is observed */
    if (o->n_merge == 0 && o->last > 0 && o->last < j->data.rows)
        return ft_dataset_slice(&j->data, o->last, MAX_EVAL_SAMPLES);
    if (o->n_merge == 0 && o->first > 0)
        return ft_dataset_slice(&j->data, 0, ft_min_size(o->first, MAX_EVAL_SAMPLES));
    *held_out = false;
    return ft_dataset_slice(&j->data, 0, MAX_EVAL_SAMPLES);
}

/* ---- Running ------------------------------------------------------------------------------ */

void ft_calibration_begin_stage(const ft_calibration_job *j, const char *what, const char *unit)
{
    if (j->callbacks.stage != NULL)
        j->callbacks.stage(j->callbacks.user, what, unit);
}

int ft_calibration_sessions(const ft_calibration_job *j)
{
    return is_on_cpu(j) ? j->options->threads : 1;
}

ft_activation_stats_options ft_calibration_stats_options(const ft_calibration_job *j)
{
    const ft_calibration_options *o = j->options;
    return (ft_activation_stats_options){
        .model = j->model,
        .data = &j->data,
        .first = o->first,
        .last = ft_calibration_last(j),
        .device = o->device,
        .threads = ft_calibration_sessions(j),
        .workers = o->threads,
        .memory = o->memory > 0 ? o->memory : ft_memory_available() / 2,
        .stage = j->callbacks.stage,
        .progress = j->callbacks.progress,
        .user = j->callbacks.user,
    };
}
