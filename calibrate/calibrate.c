/*
 * calibrate.c - the whole job: observe, choose, report, pack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"

#include "calibrate/counters_file.h"
#include "calibrate/observe.h"
#include "calibrate/pack.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <inttypes.h>
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
    ft_quantized *quantized;
    size_t nquantized;
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

/* What is read is not to be replaced, nor anything written twice. */
static ft_status check_paths(const ft_calibration_options *o, ft_error *err)
{
    const char *output[] = { o->dry_run ? NULL : o->output, o->save, o->report };
    const char *input[] = { o->input, o->data, o->eval };
    for (size_t i = 0; i < FT_COUNT(output); i++) {
        for (size_t k = 0; output[i] != NULL && k < FT_COUNT(input); k++)
            if (input[k] != NULL)
                FT_TRY(ft_output_spare_input(output[i], input[k], err));
        for (size_t k = 0; output[i] != NULL && k < o->nmerge; k++)
            FT_TRY(ft_output_spare_input(output[i], o->merge[k], err));
        for (size_t k = 0; output[i] != NULL && k < i; k++)
            if (output[k] != NULL && ft_output_same_file(output[i], output[k]))
                return ft_fail(err, FT_EARG, "%s: two things are to be written there", output[i]);
    }
    return FT_OK;
}

static ft_status open_outputs(job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    FT_TRY(check_paths(o, err));
    if (o->output != NULL && !o->dry_run) {
        FT_TRY(ft_artifact_create(&j->writer, o->output, o->force, err));
        ft_artifact_set_progress(j->writer, j->view.progress, j->view.user);
    }
    if (o->save != NULL)
        FT_TRY(ft_output_open(&j->counters, o->save, o->force, err));
    if (o->report != NULL)
        FT_TRY(ft_output_open(&j->json, o->report, o->force, err));
    return FT_OK;
}

static ft_status open_inputs(job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    const ft_purpose purpose = { .mode = FT_MODE_OBSERVE, .coded_head = o->int8_head };
    FT_TRY(ft_model_open_for(&j->model, o->input, &(ft_model_options){ .device = o->device },
                             &purpose, err));
    if ((o->dynamic || o->int8_head) && !j->model->has_cache)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: %s is for decoders, and family %s is none",
                       o->input, o->dynamic ? "w8a8-dynamic" : "an int8 head",
                       j->model->family->name);
    if (o->int8_residual && j->model->has_cache)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: the residual stream of decoders stays float",
                       o->input);
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

static ft_status measure_weights(job *j, ft_error *err)
{
    FT_TRY(ft_quantized_new(&j->quantized, &j->nquantized, j->model, err));
    j->report->weight = ft_array(j->nquantized, sizeof *j->report->weight);
    if (j->report->weight == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu weights", j->nquantized);
    begin(j, "measuring", "weights");
    for (size_t i = 0; i < j->nquantized; i++) {
        const ft_quantized *q = &j->quantized[i];
        ft_weight_report *report = &j->report->weight[i];
        snprintf(report->name, sizeof report->name, "%s", q->weights.name);
        report->sqnr = ft_weights_measure(&q->weights, q->scale);
        j->report->weights = i + 1;
        if (j->view.progress != NULL)
            j->view.progress(j->view.user, i + 1, j->nquantized);
    }
    return FT_OK;
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

static ft_status evaluate(job *j, ft_error *err)
{
    ft_dataset data = choose_evaluated(j);
    if (data.rows == 0)
        return FT_OK;
    begin(j, "evaluating", "samples");
    const ft_purpose purpose = { .mode = FT_MODE_FAKE,
                                 .int8_residual = j->options->int8_residual,
                                 .dynamic = j->options->dynamic,
                                 .coded_head = j->options->int8_head,
                                 .amax = j->amax };
    return ft_evaluate(&j->report->evaluation, j->options->input, &purpose, &data,
                       j->options->device, j->options->threads, j->view.progress, j->view.user,
                       err);
}

/* ---- Packing ------------------------------------------------------------------------------ */

static json_t *make_dynamic_recipe(const job *j)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i}", "weights", "int8 per channel", "activations",
                     "int8 per token", "residual", "float", "head",
                     j->options->int8_head ? "int8" : "float", "code_min", -127, "code_max", 127);
}

static json_t *make_static_recipe(const job *j)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:I}", "weights", "int8 per channel",
                     "activations", "int8 per tensor", "residual",
                     j->options->int8_residual ? "int8" : "float", "method",
                     ft_method_name(j->options->method), "code_min", -127, "code_max", 127,
                     "samples", (json_int_t) ft_counter_set_samples(j->set));
}

/* Encoders have no head that could be int8, and their recipes do not speak of one. */
static json_t *make_recipe(const job *j)
{
    if (j->options->dynamic)
        return make_dynamic_recipe(j);
    json_t *recipe = make_static_recipe(j);
    if (j->model->has_cache && recipe != NULL)
        json_object_set_new(recipe, "head", json_string(j->options->int8_head ? "int8" : "float"));
    return recipe;
}

static ft_status pack(job *j, ft_error *err)
{
    if (j->writer == NULL)
        return FT_OK;
    json_t *recipe = make_recipe(j);
    if (recipe == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the recipe");
    begin(j, "packing", NULL);
    return ft_pack(j->writer, j->model, j->amax, j->quantized, j->nquantized, recipe, err);
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
    if (!j->options->dynamic)
        FT_TRY(find_ranges(j, &enough, err));
    if (enough)
        return FT_OK;
    FT_TRY(measure_weights(j, err));
    FT_TRY(evaluate(j, err));
    FT_TRY(pack(j, err));
    return write_report(j, err);
}

ft_status ft_calibrate(const ft_calibration_options *options, const ft_calibration_view *view,
                       ft_report *report, ft_error *err)
{
    memset(report, 0, sizeof *report);
    job j = { .options = options, .report = report };
    if (view != NULL)
        j.view = *view;
    ft_status status = calibrate(&j, err);
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
