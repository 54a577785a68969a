/*
 * calibrate.c - the calibration pipeline: observe, choose ranges, quantize, report, pack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"

#include "calibrate/find_ranges.h"
#include "calibrate/job.h"
#include "calibrate/mix_precision.h"
#include "calibrate/plan_weights.h"
#include "calibrate/prepare.h"
#include "calibrate/run_shard.h"
#include "calibrate/selftest/make_selftest.h"
#include "calibrate/report/report_html.h"
#include "calibrate/report/verdict.h"
#include "calibrate/report/weight_report.h"
#include "calibrate/write_model.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- Data-driven quantization ------------------------------------------------------------- */

/*
 * Prepares AWQ, GPTQ and imatrix; most of the work is done while the weights are written.
 */
static ft_status prepare_refinement(ft_calibration_job *j, ft_error *err)
{
    if (!ft_recipe_needs_data(j->recipe))
        return FT_OK;
    ft_activation_stats_options stats_options = ft_calibration_stats_options(j);
    stats_options.moments = ft_refinement_needs_moments(j->recipe);
    FT_TRY(ft_merged_shards_find(&stats_options.source, &j->shards, FT_STAGE_INPUTS, &stats_options,
                                 err));
    j->report->samples = stats_options.last - stats_options.first;
    FT_TRY(ft_refinement_init(&j->refining, &stats_options, j->recipe, j->quantized, j->n_quantized,
                              err));
    j->report->foldable_inputs = j->refining.foldable_inputs;
    j->report->folded_inputs = j->refining.folded_inputs;
    return FT_OK;
}

/* ---- Weights ------------------------------------------------------------------------------ */

static ft_status measure_weights(ft_calibration_job *j, ft_error *err)
{
    FT_TRY(ft_quantized_weights_compute_scales(j->quantized, j->n_quantized, err));
    j->report->weight = ft_calloc(j->n_quantized, sizeof *j->report->weight);
    if (j->report->weight == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu weights", j->n_quantized);
    ft_calibration_begin_stage(j, "measuring", "weights");
    for (size_t i = 0; i < j->n_quantized; i++) {
        ft_weight_report_init(&j->report->weight[i], &j->quantized[i], j->recipe);
        j->report->weights = i + 1;
        if (j->callbacks.progress != NULL)
            j->callbacks.progress(j->callbacks.user, i + 1, j->n_quantized);
    }
    return FT_OK;
}

/* The error of group-wise quantized weights is known once they have been written. */
static void report_groupwise_errors(ft_calibration_job *j)
{
    for (size_t i = 0; i < j->n_quantized; i++)
        if (ft_scheme_is_groupwise(j->quantized[i].scheme))
            ft_weight_report_add_error(&j->report->weight[i], &j->quantized[i]);
}

/* ---- Evaluating --------------------------------------------------------------------------- */

/*
 * Also makes the self-test. Int8 is evaluated before anything is written, on weights quantized in
 * memory; other models are evaluated from the written artifact.
 */
static ft_status evaluate(ft_calibration_job *j, ft_error *err)
{
    ft_dataset data = ft_calibration_eval_data(j, &j->report->held_out);
    if (data.rows == 0)
        return FT_OK;
    const ft_quant_config int8 = ft_calibration_quant_config(j, FT_MODE_INT8);
    char *temp_path = j->compares_artifact ? ft_artifact_temp_path(j->draft) : NULL;
    if (j->compares_artifact && temp_path == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a path");
    const ft_model_pair pair = { .path = j->input,
                                 .quantize = j->compares_artifact ? NULL : &int8,
                                 .quantized_path = temp_path };
    ft_calibration_begin_stage(j, "evaluating", "samples");
    ft_status status =
        ft_evaluate(&j->report->evaluation, &pair, &data, j->options->device, j->options->threads,
                    j->callbacks.progress, j->callbacks.user, err);
    if (status == FT_OK && j->writer != NULL && !j->options->no_selftest)
        status = ft_selftest_make(&j->selftest, &j->selftest_bytes,
                                  &(ft_selftest_models){ pair.path, pair.quantize, temp_path },
                                  &data, err);
    free(temp_path);
    return status;
}

/* ---- Reporting ---------------------------------------------------------------------------- */

static ft_status format_report(ft_calibration_job *j, ft_error *err)
{
    ft_report *report = j->report;
    bool writes_json = j->report_file != NULL && !ft_report_path_is_html(j->options->report);
    bool needs_json = writes_json || j->options->json;
    report->warning = ft_report_warning(report);
    if (report->warning != NULL && needs_json)
        report->text = ft_report_format(report);
    return report->warning == NULL || (needs_json && report->text == NULL)
               ? ft_fail(err, FT_ENOMEM, "no memory for the report")
               : FT_OK;
}

static ft_status write_report(const ft_calibration_job *j, ft_error *err)
{
    FILE *file = ft_atomic_file_stream(j->report_file);
    if (file == NULL)
        return ft_fail_errno(err, "%s: cannot write", j->options->report);
    if (ft_report_path_is_html(j->options->report))
        FT_TRY(ft_report_write_html(j->report, file, err));
    else
        fprintf(file, "%s\n", j->report->text);
    return fflush(file) == 0 && !ferror(file)
               ? FT_OK
               : ft_fail_errno(err, "%s: cannot write", j->options->report);
}

/* Files get their final names last, when only the renames can still fail. */
static ft_status commit(ft_calibration_job *j, ft_error *err)
{
    if (j->report_file != NULL)
        FT_TRY(write_report(j, err));
    if (j->writer != NULL && !j->options->dry_run)
        FT_TRY(ft_artifact_commit(j->writer, err));
    return j->report_file != NULL ? ft_atomic_file_commit(j->report_file, err) : FT_OK;
}

/* ------------------------------------------------------------------------------------------- */

static ft_status calibrate(ft_calibration_job *j, ft_error *err)
{
    bool counters_only = false;
    FT_TRY(ft_calibration_open(j, err));
    FT_TRY(ft_calibration_check_times(j, err));
    FT_TRY(ft_calibration_open_shards(j, err));
    if (j->options->shard.count > 0)
        return ft_calibration_run_shard(j, err);
    FT_TRY(ft_calibration_prepare(j, err));
    j->report->model = j->options->input;
    j->report->method = j->options->method;
    j->report->scheme = j->recipe->scheme;
    j->report->int8_residual = j->options->int8_residual;
    j->report->is_decoder = j->model->has_cache;
    if (j->needs_ranges)
        FT_TRY(ft_calibration_find_ranges(j, &counters_only, err));
    else
        FT_TRY(ft_calibration_mix_precision(j, err));
    if (counters_only)
        return FT_OK;
    j->compares_artifact = j->compares_artifact || j->is_groupwise;
    FT_TRY(ft_calibration_plan_weights(j, err));
    FT_TRY(prepare_refinement(j, err));
    FT_TRY(measure_weights(j, err));
    if (!j->compares_artifact)
        FT_TRY(evaluate(j, err));
    FT_TRY(ft_calibration_write_model(j, err));
    report_groupwise_errors(j);
    FT_TRY(ft_calibration_verify_weights(j, err));
    if (j->compares_artifact)
        FT_TRY(evaluate(j, err));
    FT_TRY(ft_calibration_finish_draft(j, err));
    FT_TRY(format_report(j, err));
    return commit(j, err);
}

ft_status ft_calibrate(const ft_calibration_options *options,
                       const ft_calibration_callbacks *callbacks, ft_report *report, ft_error *err)
{
    memset(report, 0, sizeof *report);
    static const ft_recipe all_w8a8;
    ft_calibration_job j = { .options = options, .report = report };
    j.recipe = options->recipe != NULL ? options->recipe : &all_w8a8;
    if (callbacks != NULL)
        j.callbacks = *callbacks;
    ft_status status = calibrate(&j, err);
    ft_refinement_fini(&j.refining);
    ft_smoothquant_fini(&j.kept);
    ft_measured_times_fini(&j.times);
    free(j.smoothing);
    ft_quantized_weights_free(j.quantized, j.n_quantized);
    ft_amax_table_free(j.amax);
    ft_counter_set_free(j.set);
    free(j.selftest);
    ft_artifact_discard(j.draft);
    ft_artifact_discard(j.writer);
    ft_artifact_discard(j.rewritten);
    free(j.rewritten_path);
    ft_atomic_file_close(j.counters);
    ft_atomic_file_close(j.stats);
    ft_merged_shards_fini(&j.shards);
    ft_atomic_file_close(j.report_file);
    ft_dataset_fini(&j.data);
    ft_dataset_fini(&j.eval);
    ft_image_list_fini(&j.images);
    ft_image_list_fini(&j.eval_images);
    ft_model_close(j.model);
    return status;
}
