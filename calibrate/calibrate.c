/*
 * calibrate.c - the whole job: observe, choose, report, pack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"

#include "calibrate/counters_file.h"
#include "calibrate/describe.h"
#include "calibrate/observe.h"
#include "calibrate/pack.h"
#include "calibrate/places.h"
#include "calibrate/refine.h"
#include "calibrate/weight_report.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { EVALUATED = 64 }; /* samples at most, when none were held out explicitly */

/* Everything open at once; ft_calibrate() closes what there is. */
typedef struct job {
    const ft_calibration_options *options;
    ft_calibration_view view;
    ft_report *report;
    ft_model *model;
    ft_dataset data, eval;
    ft_artifact_writer *writer;
    ft_output *counters, *json;
    ft_counter_set *set;
    ft_amax *amax;
    const ft_recipe *recipe;
    ft_quantized *quantized;
    size_t nquantized;
    ft_refining refining;
    bool blocks, ranges; /* whether any matrix needs these */
} job;

static void begin(const job *j, const char *what, const char *unit)
{
    if (j->view.stage != NULL)
        j->view.stage(j->view.user, what, unit);
}

/* ---- Before work starts ------------------------------------------------------------------- */

static ft_status check_range(const job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    if (o->last > j->data.rows && o->data != NULL)
        return ft_fail(err, FT_EARG,
                       "%s: has %zu samples, but samples %" PRIu64 " to %" PRIu64 " were asked for",
                       o->data, j->data.rows, o->first, o->last - 1);
    return FT_OK;
}

static ft_status open_outputs(job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    FT_TRY(ft_calibration_check_places(o, err));
    if (o->output != NULL && !o->dry_run)
        FT_TRY(ft_artifact_create(&j->writer, o->output, o->force, err));
    if (o->save != NULL)
        FT_TRY(ft_output_open(&j->counters, o->save, o->force, err));
    if (o->report != NULL)
        FT_TRY(ft_output_open(&j->json, o->report, o->force, err));
    return FT_OK;
}

static bool becomes_int8(const void *recipe, const char *weight)
{
    return ft_scheme_is_int8(ft_recipe_scheme(recipe, weight));
}

/* What the float artifact is opened for. */
static ft_purpose purpose_of(const job *j, ft_mode mode)
{
    return (ft_purpose){
        .mode = mode,
        .int8_residual = j->options->int8_residual,
        .dynamic = ft_recipe_mentions(j->recipe, FT_SCHEME_W8A8_DYNAMIC),
        .coded_head = ft_recipe_scheme(j->recipe, FT_HEAD_WEIGHT) != FT_SCHEME_FLOAT,
        .amax = j->amax,
        .is_int8 = becomes_int8,
        .user = j->recipe,
    };
}

static ft_status check_residual(const job *j, ft_error *err)
{
    if (!j->options->int8_residual)
        return FT_OK;
    if (j->model->has_cache)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: the residual stream of decoders stays float",
                       j->options->input);
    if (ft_config_sees(&j->model->config))
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: the residual stream of family %s, which no norm bounds, stays float",
                       j->options->input, j->model->family->name);
    for (size_t i = 0; i < j->nquantized; i++)
        if (j->quantized[i].scheme != FT_SCHEME_W8A8)
            return ft_fail(err, FT_EARG,
                           "%s: int8 residual streams need all linears in w8a8, not %s in %s",
                           j->options->input, j->quantized[i].weights.name,
                           ft_scheme_name(j->quantized[i].scheme));
    return FT_OK;
}

/* Where sample data choose codes there must be samples, and ranges must not be of other values. */
static ft_status check_refining(const job *j, ft_error *err)
{
    if (!j->blocks)
        return ft_fail(err, FT_EARG, "%s: imatrix, AWQ and GPTQ are for matrices in blocks",
                       j->options->input);
    if (j->options->data == NULL)
        return ft_fail(err, FT_EARG, "%s: imatrix, AWQ and GPTQ need samples", j->options->input);
    if (j->options->nmerge > 0)
        return ft_fail(err, FT_EARG,
                       "%s: imatrix, AWQ and GPTQ need samples, which counters do not replace",
                       j->options->input);
    if (j->recipe->awq && j->ranges)
        return ft_fail(err, FT_EARG,
                       "%s: AWQ changes values whose ranges w8a8 has observed: one of them",
                       j->options->input);
    return FT_OK;
}

/* The model, and what becomes of it. */
static ft_status open_model(job *j, ft_error *err)
{
    const ft_purpose purpose = purpose_of(j, FT_MODE_OBSERVE);
    FT_TRY(ft_model_open_for(&j->model, j->options->input,
                             &(ft_model_options){ .device = j->options->device }, &purpose, err));
    FT_TRY(ft_quantized_new(&j->quantized, &j->nquantized, j->model, j->recipe, err));
    j->blocks = ft_quantized_any_blocks(j->quantized, j->nquantized);
    j->ranges = ft_quantized_any(j->quantized, j->nquantized, FT_SCHEME_W8A8);
    if (j->ranges && j->options->data == NULL && j->options->nmerge == 0)
        return ft_fail(err, FT_EARG, "%s: w8a8 needs samples", j->options->input);
    if (!j->ranges && (j->options->save != NULL || j->options->nmerge > 0))
        return ft_fail(err, FT_EARG, "%s: nothing is counted, so there are no counters",
                       j->options->input);
    if (ft_recipe_learns(j->recipe))
        FT_TRY(check_refining(j, err));
    return check_residual(j, err);
}

static ft_status open_inputs(job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    FT_TRY(open_model(j, err));
    if (o->data != NULL)
        FT_TRY(ft_dataset_read(&j->data, o->data, j->model, err));
    if (o->eval != NULL)
        FT_TRY(ft_dataset_read(&j->eval, o->eval, j->model, err));
    return check_range(j, err);
}

/* ---- Counting ----------------------------------------------------------------------------- */

/* Files of counters stand for the samples that others observed. */
static ft_status merge_files(job *j, ft_error *err)
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

/* A GPU counts by keys, and which magnitudes are exact would depend on who counted: one session. */
static int observers(const ft_calibration_options *o)
{
    bool on_cpu = o->device == NULL || strncmp(o->device, "cpu", 3) == 0;
    return on_cpu ? o->threads : 1;
}

static ft_status count_samples(job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    FT_TRY(ft_observe_new(&j->set, j->model, err));
    if (o->nmerge > 0)
        return merge_files(j, err);
    begin(j, "observing", "samples");
    return ft_observe(j->set, j->model, &j->data, o->first, o->last > 0 ? o->last : j->data.rows,
                      observers(o), j->view.progress, j->view.user, err);
}

/* ---- Choosing ----------------------------------------------------------------------------- */

static ft_status choose(job *j, ft_point_report *point, ft_counters *counters, ft_error *err)
{
    ft_histogram histogram;
    ft_method_options options = { .percentile = j->options->percentile };
    FT_TRY(ft_histogram_init(&histogram, counters, err));
    snprintf(point->name, sizeof point->name, "%s", counters->name);
    point->values = histogram.total;
    ft_choose_candidates(point->candidate, &histogram);
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

static ft_status choose_all(job *j, ft_error *err)
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

/* ---- Refining ----------------------------------------------------------------------------- */

/* Let samples choose codes of blocks; most of the work is done while they are written. */
static ft_status refine(job *j, ft_error *err)
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

static ft_status measure_weights(job *j, ft_error *err)
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

/* What blocks cost is known when they have been written. */
static void report_blocks(job *j)
{
    for (size_t i = 0; i < j->nquantized; i++)
        if (ft_scheme_is_blocks(j->quantized[i].scheme))
            ft_weight_report_end(&j->report->weight[i], &j->quantized[i]);
}

/* ---- Evaluating --------------------------------------------------------------------------- */

/* Held-out samples: --eval's, else those of the data that were not observed, else the observed. */
static ft_dataset choose_evaluated(job *j)
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

/* Int8 is faked, before anything is written; what has blocks is run from where it was written. */
static ft_status evaluate(job *j, ft_error *err)
{
    ft_dataset data = choose_evaluated(j);
    if (data.rows == 0)
        return FT_OK;
    const ft_purpose fake = purpose_of(j, FT_MODE_FAKE);
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
 * Codes in blocks are made as they are written, and compared as the runtime reads them.  So without
 * an output they are written all the same, to a file that never gets a name.
 */
static ft_status open_scratch(job *j, ft_error *err)
{
    char path[PATH_MAX];
    const char *folder = getenv("TMPDIR"), *output = j->options->output;
    snprintf(path, sizeof path, "%s/ft-calibrate.ft", folder != NULL ? folder : "/tmp");
    return ft_artifact_create(&j->writer, output != NULL ? output : path, true, err);
}

static ft_status pack(job *j, ft_error *err)
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

static ft_status commit(job *j, ft_error *err)
{
    return j->writer != NULL && !j->options->dry_run ? ft_artifact_commit(j->writer, err) : FT_OK;
}

/* ---- Reporting ---------------------------------------------------------------------------- */

static ft_status write_report(const job *j, ft_error *err)
{
    if (j->json == NULL)
        return FT_OK;
    FILE *file = ft_output_stream(j->json);
    if (file == NULL)
        return ft_fail_errno(err, "%s: cannot write", j->options->report);
    FT_TRY(ft_report_write(j->report, file, j->options->report, err));
    return ft_output_commit(j->json, err);
}

/* ------------------------------------------------------------------------------------------- */

/* Observe, and choose ranges; *enough: only counters were asked for. */
static ft_status find_ranges(job *j, bool *enough, ft_error *err)
{
    FT_TRY(count_samples(j, err));
    j->report->samples = ft_counter_set_samples(j->set);
    if (j->counters != NULL)
        FT_TRY(ft_counter_set_write(j->set, j->counters, err));
    *enough = j->options->output == NULL && j->json == NULL && !j->options->dry_run;
    return *enough ? FT_OK : choose_all(j, err);
}

static ft_status calibrate(job *j, ft_error *err)
{
    bool enough = false;
    FT_TRY(open_outputs(j, err));
    FT_TRY(open_inputs(j, err));
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
    FT_TRY(commit(j, err));
    return write_report(j, err);
}

ft_status ft_calibrate(const ft_calibration_options *options, const ft_calibration_view *view,
                       ft_report *report, ft_error *err)
{
    memset(report, 0, sizeof *report);
    static const ft_recipe all_w8a8;
    job j = { .options = options, .report = report };
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
