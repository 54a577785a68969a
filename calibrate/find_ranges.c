/*
 * find_ranges.c - the ranges of activations: observed, merged from counters, or read from a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/find_ranges.h"

#include "calibrate/amax_in/amax_in.h"
#include "calibrate/mix_precision.h"
#include "calibrate/ranges/counters_file.h"
#include "calibrate/ranges/observe.h"
#include "calibrate/readers.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

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

static ft_status count_shards(ft_calibration_job *j, ft_error *err)
{
    const ft_activation_stats_options options = ft_calibration_stats_options(j);
    return ft_merged_shards_count(&j->shards, j->set, &options, err);
}

static ft_status count_samples(ft_calibration_job *j, ft_error *err)
{
    const ft_calibration_options *o = j->options;
    FT_TRY(ft_observe_new(&j->set, j->model, err));
    if (o->n_merge > 0)
        return merge_files(j, err);
    if (o->n_stats > 0)
        return count_shards(j, err);
    ft_calibration_begin_stage(j, "observing", "samples");
    return ft_observe(j->set, j->model, &j->data, o->first, ft_calibration_last(j),
                      ft_calibration_sessions(j), j->callbacks.progress, j->callbacks.user, err);
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
    ft_calibration_begin_stage(j, "choosing", "points");
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
    size_t last = (size_t) ft_calibration_last(j);
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
    ft_calibration_begin_stage(j, "comparing", "channels");
    ft_status status = channel != NULL && name != NULL
                           ? measure_points(j, channel, name, err)
                           : ft_fail(err, FT_ENOMEM, "no memory for %zu points", j->report->points);
    free(channel);
    free(name);
    return status;
}

/* ------------------------------------------------------------------------------------------- */

ft_status ft_calibration_find_ranges(ft_calibration_job *j, bool *counters_only, ft_error *err)
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
