/*
 * calibrate.c - the calibration pipeline: observe, choose ranges, quantize, report, pack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"

#include "calibrate/ranges/counters_file.h"
#include "calibrate/describe.h"
#include "calibrate/job.h"
#include "calibrate/observe.h"
#include "calibrate/pack.h"
#include "calibrate/readers.h"
#include "calibrate/verdict.h"
#include "calibrate/weight_report.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { EVALUATED = 64 }; /* maximum samples if no held-out set is given */

static void begin(const ft_calibration_job *j, const char *what, const char *unit)
{
    if (j->view.stage != NULL)
        j->view.stage(j->view.user, what, unit);
}

/* ---- Observing ---------------------------------------------------------------------------- */

/* Counters files replace the samples that other runs observed. */
static ft_status merge_files(ft_calibration_job *j, ft_error *err)
{
    for (size_t i = 0; i < j->options->nmerge; i++) {
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
static int observers(const ft_calibration_options *o)
{
    bool on_cpu = o->device == NULL || strncmp(o->device, "cpu", 3) == 0;
    return on_cpu ? o->threads : 1;
}

static ft_status count_samples(ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    FT_TRY(ft_observe_new(&j->set, j->model, err));
    if (o->nmerge > 0)
        return merge_files(j, err);
    begin(j, "observing", "samples");
    return ft_observe(j->set, j->model, &j->data, o->first, o->last > 0 ? o->last : j->data.rows,
                      observers(o), j->view.progress, j->view.user, err);
}

/* ---- Choosing ranges ---------------------------------------------------------------------- */

static ft_status choose(ft_calibration_job *j, ft_point_report *point, ft_counters *counters,
                        ft_error *err)
{
    ft_histogram histogram;
    ft_method_options options = { .percentile = j->options->percentile };
    FT_TRY(ft_histogram_init(&histogram, counters, err));
    snprintf(point->name, sizeof point->name, "%s", counters->name);
    point->values = histogram.total;
    const char *matrix;
    point->read = ft_point_is_read(j, counters->name, &matrix);
    snprintf(point->matrix, sizeof point->matrix, "%s", matrix != NULL ? matrix : "");
    ft_choose_candidates(point->candidate, &histogram);
    if (j->options->method == FT_METHOD_AUTO)
        point->chosen = point->candidate[ft_best_candidate(point->candidate, FT_CANDIDATES)];
    else
        ft_choose_amax(&point->chosen, j->options->method, &histogram, &options);
    ft_histogram_fini(&histogram);
    ft_amax_entry entry = {
        .name = counters->name,
        .amax = point->chosen.amax,
        .clipped = point->chosen.distortion.clipped,
        .sqnr = point->chosen.distortion.sqnr_db,
    };
    snprintf(entry.method, sizeof entry.method, "%s", point->chosen.method);
    return ft_amax_add(j->amax, &entry, err);
}

static ft_status choose_all(ft_calibration_job *j, ft_error *err)
{
    j->amax = ft_amax_new();
    j->report->point = ft_array(j->set->count, sizeof *j->report->point);
    if (j->amax == NULL || j->report->point == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu points", j->set->count);
    begin(j, "choosing", "points");
    for (size_t i = 0; i < j->set->count; i++) {
        FT_TRY(choose(j, &j->report->point[i], &j->set->point[i], err));
        j->report->points = i + 1;
        if (j->view.progress != NULL)
            j->view.progress(j->view.user, i + 1, j->set->count);
    }
    return FT_OK;
}

/* ---- Data-driven quantization ------------------------------------------------------------- */

/*
 * Prepares AWQ, GPTQ and imatrix; most of the work is done while the weights are written.
 */
static ft_status refine(ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    if (!ft_recipe_learns(j->recipe))
        return FT_OK;
    ft_inputs_of of = {
        .model = j->model,
        .data = &j->data,
        .first = o->first,
        .last = o->last > 0 ? o->last : j->data.rows,
        .threads = observers(o),
        .memory = o->memory > 0 ? o->memory : ft_memory_free() / 2,
        .stage = j->view.stage,
        .progress = j->view.progress,
        .user = j->view.user,
    };
    j->report->samples = of.last - of.first;
    FT_TRY(ft_refining_init(&j->refining, &of, j->recipe, j->quantized, j->nquantized, err));
    j->report->divisible = j->refining.divisible;
    j->report->divided = j->refining.divided;
    return FT_OK;
}

/* ---- Weights ------------------------------------------------------------------------------ */

static ft_status measure_weights(ft_calibration_job *j, ft_error *err)
{
    FT_TRY(ft_quantized_scales(j->quantized, j->nquantized, err));
    j->report->weight = ft_array(j->nquantized, sizeof *j->report->weight);
    if (j->report->weight == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu weights", j->nquantized);
    begin(j, "measuring", "weights");
    for (size_t i = 0; i < j->nquantized; i++) {
        ft_weight_report_begin(&j->report->weight[i], &j->quantized[i], j->recipe);
        j->report->weights = i + 1;
        if (j->view.progress != NULL)
            j->view.progress(j->view.user, i + 1, j->nquantized);
    }
    return FT_OK;
}

/* The error of group-wise quantized weights is known once they have been written. */
static void report_blocks(ft_calibration_job *j)
{
    for (size_t i = 0; i < j->nquantized; i++)
        if (ft_scheme_is_blocks(j->quantized[i].scheme))
            ft_weight_report_end(&j->report->weight[i], &j->quantized[i]);
}

/* ---- Evaluating --------------------------------------------------------------------------- */

/*
 * Evaluation samples: those of --eval, else those of the data that were not observed, else observed
 * ones.
 */
static ft_dataset choose_evaluated(ft_calibration_job *j)
{
    const ft_calibration_options *o = j->options;
    j->report->held_out = true;
    if (o->eval != NULL)
        return j->eval;
    if (o->data == NULL)
        return (ft_dataset){ 0 };
    if (o->nmerge == 0 && o->last > 0 && o->last < j->data.rows)
        return ft_dataset_slice(&j->data, o->last, EVALUATED);
    if (o->nmerge == 0 && o->first > 0)
        return ft_dataset_slice(&j->data, 0, ft_min_size(o->first, EVALUATED));
    j->report->held_out = false;
    return ft_dataset_slice(&j->data, 0, EVALUATED);
}

/*
 * Int8 is evaluated fake-quantized, before anything is written; group-wise quantized models are
 * evaluated from the written artifact.
 */
static ft_status evaluate(ft_calibration_job *j, ft_error *err)
{
    ft_dataset data = choose_evaluated(j);
    if (data.rows == 0)
        return FT_OK;
    const ft_purpose fake = ft_calibration_purpose(j, FT_MODE_FAKE);
    char *hidden = j->blocks ? ft_artifact_hidden(j->writer) : NULL;
    if (j->blocks && hidden == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a path");
    begin(j, "evaluating", "samples");
    ft_status status = ft_evaluate(
        &j->report->evaluation,
        &(ft_compared){
            .path = j->options->input, .fake = j->blocks ? NULL : &fake, .other = hidden },
        &data, j->options->device, j->options->threads, j->view.progress, j->view.user, err);
    free(hidden);
    return status;
}

/* ---- Packing ------------------------------------------------------------------------------ */

/*
 * Group-wise quantized weights are computed while they are written, and evaluated from the
 * artifact. So without an output they go to a temporary file that is never given a name.
 */
static ft_status open_scratch(ft_calibration_job *j, ft_error *err)
{
    char path[PATH_MAX];
    const char *folder = getenv("TMPDIR"), *output = j->options->output;
    snprintf(path, sizeof path, "%s/ft-calibrate.ft", folder != NULL ? folder : "/tmp");
    return ft_artifact_create(&j->writer, output != NULL ? output : path, true, err);
}

static ft_status pack(ft_calibration_job *j, ft_error *err)
{
    if (j->writer == NULL && j->blocks)
        FT_TRY(open_scratch(j, err));
    if (j->writer == NULL)
        return FT_OK;
    ft_packing what = {
        .model = j->model,
        .quantized = j->quantized,
        .count = j->nquantized,
        .amax = j->amax,
        .threads = j->options->threads,
        .refining = ft_recipe_learns(j->recipe) ? &j->refining : NULL,
        .recipe = ft_describe(&(ft_description){ .options = j->options,
                                                 .recipe = j->recipe,
                                                 .quantized = j->quantized,
                                                 .count = j->nquantized,
                                                 .has_head = j->model->has_cache,
                                                 .samples = j->report->samples }),
    };
    if (what.recipe == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the recipe");
    begin(j, "packing", NULL);
    ft_artifact_set_progress(j->writer, j->view.progress, j->view.user);
    ft_status status = ft_pack(j->writer, &what, err);
    json_decref(what.recipe);
    return status;
}

/* ---- Reporting ---------------------------------------------------------------------------- */

static ft_status make_texts(ft_calibration_job *j, ft_error *err)
{
    ft_report *report = j->report;
    bool wanted = j->json != NULL || j->options->json;
    report->warning = ft_report_verdict(report);
    if (report->warning != NULL && wanted)
        report->text = ft_report_format(report);
    return report->warning == NULL || (wanted && report->text == NULL)
               ? ft_fail(err, FT_ENOMEM, "no memory for the report")
               : FT_OK;
}

static ft_status write_report(const ft_calibration_job *j, ft_error *err)
{
    FILE *file = ft_output_stream(j->json);
    if (file == NULL || fprintf(file, "%s\n", j->report->text) < 0 || fflush(file) != 0)
        return ft_fail_errno(err, "%s: cannot write", j->options->report);
    return FT_OK;
}

/* Files get their final names last, when only the renames can still fail. */
static ft_status commit(ft_calibration_job *j, ft_error *err)
{
    if (j->json != NULL)
        FT_TRY(write_report(j, err));
    if (j->writer != NULL && !j->options->dry_run)
        FT_TRY(ft_artifact_commit(j->writer, err));
    return j->json != NULL ? ft_output_commit(j->json, err) : FT_OK;
}

/* ------------------------------------------------------------------------------------------- */

/* Observes and chooses ranges; *counters_only: nothing else was requested. */
static ft_status find_ranges(ft_calibration_job *j, bool *enough, ft_error *err)
{
    FT_TRY(count_samples(j, err));
    j->report->samples = ft_counter_set_samples(j->set);
    if (j->counters != NULL)
        FT_TRY(ft_counter_set_write(j->set, j->counters, err));
    *enough = j->options->output == NULL && j->json == NULL && !j->options->dry_run;
    return *enough ? FT_OK : choose_all(j, err);
}

static ft_status calibrate(ft_calibration_job *j, ft_error *err)
{
    bool enough = false;
    FT_TRY(ft_calibration_open(j, err));
    j->report->method = j->options->method;
    j->report->scheme = j->recipe->scheme;
    j->report->int8_residual = j->options->int8_residual;
    j->report->decodes = j->model->has_cache;
    if (j->ranges)
        FT_TRY(find_ranges(j, &enough, err));
    if (enough)
        return FT_OK;
    FT_TRY(refine(j, err));
    FT_TRY(measure_weights(j, err));
    if (!j->blocks)
        FT_TRY(evaluate(j, err));
    FT_TRY(pack(j, err));
    report_blocks(j);
    if (j->blocks)
        FT_TRY(evaluate(j, err));
    FT_TRY(make_texts(j, err));
    return commit(j, err);
}

ft_status ft_calibrate(const ft_calibration_options *options, const ft_calibration_view *view,
                       ft_report *report, ft_error *err)
{
    memset(report, 0, sizeof *report);
    static const ft_recipe all_w8a8;
    ft_calibration_job j = { .options = options, .report = report };
    j.recipe = options->recipe != NULL ? options->recipe : &all_w8a8;
    if (view != NULL)
        j.view = *view;
    ft_status status = calibrate(&j, err);
    ft_refining_fini(&j.refining);
    ft_quantized_free(j.quantized, j.nquantized);
    ft_amax_free(j.amax);
    ft_counter_set_free(j.set);
    ft_artifact_discard(j.writer);
    ft_output_close(j.counters);
    ft_output_close(j.json);
    ft_dataset_fini(&j.data);
    ft_dataset_fini(&j.eval);
    ft_model_close(j.model);
    return status;
}
