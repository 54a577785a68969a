/*
 * calibrate.c - the calibration pipeline: observe, choose ranges, quantize, report, pack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"

#include "calibrate/amax_in/amax_in.h"
#include "calibrate/ranges/counters_file.h"
#include "calibrate/describe.h"
#include "calibrate/job.h"
#include "calibrate/mix_precision.h"
#include "calibrate/ranges/observe.h"
#include "calibrate/pack.h"
#include "calibrate/prepare.h"
#include "calibrate/readers.h"
#include "calibrate/selftest/make_selftest.h"
#include "calibrate/report_html.h"
#include "calibrate/verdict.h"
#include "calibrate/weight_report.h"
#include "runtime/container/artifact_copy.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/selftest/selftest.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void begin_stage(const ft_calibration_job *j, const char *what, const char *unit)
{
    if (j->callbacks.stage != NULL)
        j->callbacks.stage(j->callbacks.user, what, unit);
}

/* ---- Observing ---------------------------------------------------------------------------- */

/* Counters files replace the samples that other runs observed. */
static ft_status merge_files(ft_calibration_job *j, ft_error *err)
{
    for (size_t i = 0; i < j->options->n_merge; i++) {
        ft_counter_set *from;
        FT_TRY(ft_counter_set_read(&from, j->options->merge[i], err));
        ft_status status = ft_counter_set_merge(j->set, from, j->options->merge[i], err);
        ft_counter_set_free(from);
        FT_TRY(status);
    }
    return FT_OK;
}

/*
 * Parallel sessions. A GPU counts by keys, so which magnitudes are exact would depend on the
 * session that counted them: one session only.
 */
static int n_sessions(const ft_calibration_options *o)
{
    bool on_cpu = o->device == NULL || strncmp(o->device, "cpu", 3) == 0;
    return on_cpu ? o->threads : 1;
}

static ft_status count_samples(ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    FT_TRY(ft_observe_new(&j->set, j->model, err));
    if (o->n_merge > 0)
        return merge_files(j, err);
    begin_stage(j, "observing", "samples");
    return ft_observe(j->set, j->model, &j->data, o->first, o->last > 0 ? o->last : j->data.rows,
                      n_sessions(o), j->callbacks.progress, j->callbacks.user, err);
}

/* ---- Choosing ranges ---------------------------------------------------------------------- */

static ft_status choose_range(ft_calibration_job *j, ft_point_report *point, ft_counters *counters,
                              ft_error *err)
{
    ft_histogram histogram;
    ft_method_options options = { .percentile = j->options->percentile };
    FT_TRY(ft_histogram_init(&histogram, counters, err));
    snprintf(point->name, sizeof point->name, "%s", counters->name);
    point->n_values = histogram.total;
    ft_point_use use = ft_point_use_of(j, counters->name);
    point->is_quantized = use.is_quantized;
    point->per_token = use.per_token;
    snprintf(point->matrix, sizeof point->matrix, "%s", use.matrix != NULL ? use.matrix : "");
    ft_compute_amax_candidates(point->candidate, &histogram);
    if (j->options->method == FT_METHOD_AUTO)
        point->chosen =
            point->candidate[ft_best_amax_candidate(point->candidate, FT_AMAX_CANDIDATES)];
    else
        ft_compute_amax(&point->chosen, j->options->method, &histogram, &options);
    ft_histogram_coarse_bins(&histogram, point->bin);
    ft_histogram_fini(&histogram);
    return FT_OK;
}

static ft_status add_range(ft_amax_table *table, ft_point_report *point, ft_error *err)
{
    ft_amax_entry entry = {
        .name = point->name,
        .amax = point->chosen.amax,
        .clipped = point->chosen.distortion.clipped,
        .sqnr = point->chosen.distortion.sqnr_db,
    };
    snprintf(entry.method, sizeof entry.method, "%s",
             point->per_token ? FT_AMAX_PER_TOKEN : point->chosen.method);
    return ft_amax_table_add(table, &entry, err);
}

/* Makes the table of ranges that the int8 model is opened with, from the report. */
static ft_status make_amax_table(ft_calibration_job *j, ft_error *err)
{
    ft_amax_table_free(j->amax);
    j->amax = ft_amax_table_new();
    if (j->amax == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu points", j->report->points);
    for (size_t i = 0; i < j->report->points; i++)
        FT_TRY(add_range(j->amax, &j->report->point[i], err));
    return FT_OK;
}

static ft_status choose_ranges(ft_calibration_job *j, ft_error *err)
{
    j->report->point = ft_calloc(j->set->count, sizeof *j->report->point);
    if (j->report->point == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu points", j->set->count);
    begin_stage(j, "choosing", "points");
    for (size_t i = 0; i < j->set->count; i++) {
        FT_TRY(choose_range(j, &j->report->point[i], &j->set->point[i], err));
        j->report->points = i + 1;
        if (j->callbacks.progress != NULL)
            j->callbacks.progress(j->callbacks.user, i + 1, j->set->count);
    }
    FT_TRY(make_amax_table(j, err));
    FT_TRY(ft_calibration_mix_precision(j, err));
    return make_amax_table(j, err);
}

/* ---- Given ranges -------------------------------------------------------------------------- */

static bool is_quantized(const void *job, const char *point)
{
    return ft_point_use_of(job, point).is_quantized;
}

/* Inputs of w8a8-dynamic matrices have a scale per token, whatever the file says. */
static void mark_per_token(ft_calibration_job *j)
{
    for (size_t i = 0; i < j->amax->count; i++) {
        ft_amax_entry *entry = &j->amax->entry[i];
        if (ft_point_use_of(j, entry->name).per_token)
            snprintf(entry->method, sizeof entry->method, FT_AMAX_PER_TOKEN);
    }
}

/* Scales of weights may come from the file, too: then only the artifact has these weights. */
static ft_status read_ranges(ft_calibration_job *j, ft_error *err)
{
    const ft_amax_input input = { .model = j->model,
                                  .quantized = j->quantized,
                                  .count = j->n_quantized,
                                  .is_quantized = is_quantized,
                                  .user = j,
                                  .notes = &j->report->notes };
    FT_TRY(ft_amax_input_read(&j->amax, j->options->amax, &input, err));
    mark_per_token(j);
    for (size_t i = 0; i < j->n_quantized; i++)
        j->compares_artifact = j->compares_artifact || j->quantized[i].scale != NULL;
    return FT_OK;
}

/* ---- Outlier channels --------------------------------------------------------------------- */

static ft_status measure_points(ft_calibration_job *j, ft_channel_summary *channel,
                                const char **name, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    size_t last = o->last > 0 ? o->last : j->data.rows;
    for (size_t i = 0; i < j->report->points; i++)
        name[i] = j->report->point[i].name;
    FT_TRY(ft_measure_channels(channel, name, j->report->points, j->model, &j->data, o->first,
                               ft_min_size(last, o->first + FT_CHANNEL_SAMPLES), err));
    for (size_t i = 0; i < j->report->points; i++)
        j->report->point[i].channel = channel[i];
    return FT_OK;
}

/* Only reports show them, and counters files do not have them. */
static ft_status measure_channels(ft_calibration_job *j, ft_error *err)
{
    if (j->options->data == NULL || (j->report_file == NULL && !j->options->json))
        return FT_OK;
    ft_channel_summary *channel = ft_calloc(j->report->points, sizeof *channel);
    const char **name = ft_calloc(j->report->points, sizeof *name);
    begin_stage(j, "comparing", "channels");
    ft_status status = channel != NULL && name != NULL
                           ? measure_points(j, channel, name, err)
                           : ft_fail(err, FT_ENOMEM, "no memory for %zu points", j->report->points);
    free(channel);
    free(name);
    return status;
}

/* ---- Data-driven quantization ------------------------------------------------------------- */

/*
 * Prepares AWQ, GPTQ and imatrix; most of the work is done while the weights are written.
 */
static ft_status prepare_refinement(ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    if (!ft_recipe_needs_data(j->recipe))
        return FT_OK;
    ft_activation_stats_options stats_options = {
        .model = j->model,
        .data = &j->data,
        .first = o->first,
        .last = o->last > 0 ? o->last : j->data.rows,
        .threads = n_sessions(o),
        .memory = o->memory > 0 ? o->memory : ft_memory_available() / 2,
        .stage = j->callbacks.stage,
        .progress = j->callbacks.progress,
        .user = j->callbacks.user,
    };
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
    begin_stage(j, "measuring", "weights");
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
    begin_stage(j, "evaluating", "samples");
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

/* ---- Packing ------------------------------------------------------------------------------ */

/*
 * Group-wise quantized weights are computed while they are written, and evaluated from the
 * artifact, as are int8 weights with given scales. What the manifest says of the evaluation is
 * known after that: so these models go to a draft that is never given a name, and the output is a
 * copy of it. Without an output the draft is only measured.
 */
static bool needs_draft(const ft_calibration_job *j)
{
    bool held_out;
    return j->compares_artifact &&
           (j->writer == NULL || ft_calibration_eval_data(j, &held_out).rows > 0);
}

static ft_status create_draft(ft_calibration_job *j, ft_error *err)
{
    char path[PATH_MAX];
    const char *folder = getenv("TMPDIR"), *output = j->options->output;
    snprintf(path, sizeof path, "%s/ft-calibrate.ft", folder != NULL ? folder : "/tmp");
    return ft_artifact_create(&j->draft, output != NULL ? output : path, true, err);
}

static json_t *recipe_json(const ft_calibration_job *j)
{
    return ft_manifest_recipe(&(ft_manifest_recipe_info){ .options = j->options,
                                                          .recipe = j->recipe,
                                                          .quantized = j->quantized,
                                                          .count = j->n_quantized,
                                                          .amax = j->amax,
                                                          .has_head = ft_model_generates(j->model),
                                                          .smoothed = j->rewritten != NULL,
                                                          .samples = j->report->samples });
}

static ft_status write_model(ft_calibration_job *j, ft_artifact_writer *writer, json_t *provenance,
                             ft_error *err)
{
    ft_pack_options what = {
        .model = j->model,
        .quantized = j->quantized,
        .count = j->n_quantized,
        .amax = j->amax,
        .smoothing = j->smoothing,
        .n_smoothing = j->n_smoothing,
        .recipe = recipe_json(j),
        .provenance = provenance,
        .selftest = j->selftest,
        .selftest_bytes = j->selftest_bytes,
        .threads = j->options->threads,
        .refining = ft_recipe_needs_data(j->recipe) ? &j->refining : NULL,
    };
    if (what.recipe == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the recipe");
    begin_stage(j, "packing", NULL);
    ft_artifact_set_progress(writer, j->callbacks.progress, j->callbacks.user);
    ft_status status = ft_pack(writer, &what, err);
    json_decref(what.recipe);
    return status;
}

/* Writes the draft, or else the output if there is one. */
static ft_status pack(ft_calibration_job *j, ft_error *err)
{
    json_t *provenance;
    if (needs_draft(j)) {
        FT_TRY(create_draft(j, err));
        return write_model(j, j->draft, NULL, err);
    }
    if (j->writer == NULL)
        return FT_OK;
    FT_TRY(ft_calibration_provenance(&provenance, j, err));
    ft_status status = write_model(j, j->writer, provenance, err);
    json_decref(provenance);
    return status;
}

static ft_status copy_draft(ft_calibration_job *j, const ft_artifact *draft, ft_error *err)
{
    ft_artifact_header head = *ft_artifact_get_header(draft);
    ft_artifact_copy *copy;
    FT_TRY(ft_artifact_copy_new(&copy, j->writer, draft, err));
    ft_status status = ft_calibration_provenance(&head.provenance, j, err);
    if (status == FT_OK && j->selftest != NULL)
        status = ft_artifact_add_memory(j->writer, FT_SELFTEST_ENTRY, j->selftest,
                                        j->selftest_bytes, err);
    if (status == FT_OK)
        status = ft_artifact_write(j->writer, &head, err);
    json_decref(head.provenance);
    ft_artifact_copy_free(copy);
    return status;
}

/* Writes the output from the evaluated draft. */
static ft_status finish_draft(ft_calibration_job *j, ft_error *err)
{
    if (j->draft == NULL || j->writer == NULL)
        return FT_OK;
    ft_artifact *draft = NULL;
    char *path = ft_artifact_temp_path(j->draft);
    ft_status status = path != NULL ? ft_artifact_open(&draft, path, FT_VERIFY_STRUCTURE, err)
                                    : ft_fail(err, FT_ENOMEM, "no memory for a path");
    if (status == FT_OK)
        status = copy_draft(j, draft, err);
    ft_artifact_close(draft);
    free(path);
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

/* Reads, or observes and chooses ranges; *counters_only: nothing else was requested. */
static ft_status find_ranges(ft_calibration_job *j, bool *counters_only, ft_error *err)
{
    if (j->options->amax != NULL)
        return read_ranges(j, err);
    FT_TRY(count_samples(j, err));
    j->report->samples = ft_counter_set_samples(j->set);
    if (j->counters != NULL)
        FT_TRY(ft_counter_set_write(j->set, j->counters, err));
    *counters_only = j->options->output == NULL && j->report_file == NULL && !j->options->dry_run;
    if (*counters_only)
        return FT_OK;
    FT_TRY(choose_ranges(j, err));
    return measure_channels(j, err);
}

static ft_status calibrate(ft_calibration_job *j, ft_error *err)
{
    bool counters_only = false;
    FT_TRY(ft_calibration_open(j, err));
    FT_TRY(ft_calibration_prepare(j, err));
    j->compares_artifact = j->is_groupwise;
    j->report->model = j->options->input;
    j->report->method = j->options->method;
    j->report->scheme = j->recipe->scheme;
    j->report->int8_residual = j->options->int8_residual;
    j->report->is_decoder = j->model->has_cache;
    if (j->needs_ranges)
        FT_TRY(find_ranges(j, &counters_only, err));
    if (counters_only)
        return FT_OK;
    FT_TRY(prepare_refinement(j, err));
    FT_TRY(measure_weights(j, err));
    if (!j->compares_artifact)
        FT_TRY(evaluate(j, err));
    FT_TRY(pack(j, err));
    report_groupwise_errors(j);
    if (j->compares_artifact)
        FT_TRY(evaluate(j, err));
    FT_TRY(finish_draft(j, err));
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
    ft_atomic_file_close(j.report_file);
    ft_dataset_fini(&j.data);
    ft_dataset_fini(&j.eval);
    ft_image_list_fini(&j.images);
    ft_image_list_fini(&j.eval_images);
    ft_model_close(j.model);
    return status;
}
