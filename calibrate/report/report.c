/*
 * report.c - prints and serializes the calibration report.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/report/report.h"
#include "calibrate/report/mixed_report.h"
#include "calibrate/report/weight_plan_report.h"

#include "calibrate/mixed/accuracy_target.h"

#include "kernels/math/elementary.h"
#include "runtime/error.h"
#include "runtime/base/json_build.h"
#include "runtime/cli/table.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void ft_report_fini(ft_report *report)
{
    free(report->point);
    free(report->weight);
    free(report->sensitivity);
    free(report->pareto);
    free(report->warning);
    free(report->text);
    memset(report, 0, sizeof *report);
}

bool ft_report_methods_disagree(const ft_point_report *point)
{
    float min_amax = point->candidate[0].amax, max_amax = min_amax;
    for (int i = 1; i < FT_AMAX_CANDIDATES; i++) {
        min_amax = fminf(min_amax, point->candidate[i].amax);
        max_amax = fmaxf(max_amax, point->candidate[i].amax);
    }
    return max_amax > 4.0f * min_amax;
}

/* ---- Tables -------------------------------------------------------------------------------- */

static const ft_listing_column point_columns[] = {
    { .title = "point", .shrinks = true },     { .title = "method" },
    { .title = "amax", .is_number = true },    { .title = "max", .is_number = true },
    { .title = "clipped", .is_number = true }, { .title = "SQNR dB", .is_number = true },
};

static void fill_point(ft_listing_cell *cell, const void *source, size_t row)
{
    const ft_point_report *p = &((const ft_report *) source)->point[row];
    cell[0].text = p->name;
    cell[1].text = p->chosen.method;
    ft_listing_cell_format(&cell[2], "%.5g", (double) p->chosen.amax);
    ft_listing_cell_format(&cell[3], "%.5g", (double) p->candidate[0].amax);
    ft_listing_cell_format(&cell[4], "%.4f%%", 100.0 * p->chosen.distortion.clipped);
    ft_listing_cell_format(&cell[5], "%.2f", p->chosen.distortion.sqnr_db);
}

static void print_points(const ft_report *report, FILE *file)
{
    const ft_listing list = { .column = point_columns,
                              .columns = FT_COUNT(point_columns),
                              .rows = report->points,
                              .fill = fill_point,
                              .source = report };
    ft_listing_print(&list, file);
}

/* The ratio of noise to signal, as RMS values. */
static double relative_error(const ft_weight_report *weight)
{
    return ft_math_pow(10.0, -weight->sqnr.per_channel / 20.0);
}

/* "1 scale": SQNR with one scale for all rows; "output": relative error of the outputs. */
static const ft_listing_column weight_columns[] = {
    { .title = "weight", .shrinks = true },    { .title = "scheme" },
    { .title = "group", .is_number = true },   { .title = "method" },
    { .title = "SQNR dB", .is_number = true }, { .title = "error", .is_number = true },
    { .title = "1 scale", .is_number = true }, { .title = "output", .is_number = true },
};

static void fill_weight(ft_listing_cell *cell, const void *source, size_t row)
{
    const ft_weight_report *w = &((const ft_report *) source)->weight[row];
    cell[0].text = w->name;
    cell[1].text = ft_scheme_name(w->scheme);
    if (w->scheme == FT_SCHEME_FLOAT)
        return;
    if (w->group > 0)
        ft_listing_cell_format(&cell[2], "%d", w->group);
    else
        cell[2].text = "row";
    cell[3].text = w->method;
    ft_listing_cell_format(&cell[4], "%.2f", w->sqnr.per_channel);
    ft_listing_cell_format(&cell[5], "%.3f%%", 100.0 * relative_error(w));
    if (ft_scheme_is_int8(w->scheme))
        ft_listing_cell_format(&cell[6], "%.2f", w->sqnr.per_tensor);
    else if (w->output_error > 0.0)
        ft_listing_cell_format(&cell[7], "%.3f%%", 100.0 * w->output_error);
}

static void print_weights(const ft_report *report, FILE *file)
{
    const ft_listing list = { .column = weight_columns,
                              .columns = FT_COUNT(weight_columns),
                              .rows = report->weights,
                              .fill = fill_weight,
                              .source = report };
    if (report->points > 0)
        fputc('\n', file);
    ft_listing_print(&list, file);
    if (report->scalable_inputs > 0)
        fprintf(file, "\nsmooth: of %zu inputs that can be scaled, %zu are scaled\n",
                report->scalable_inputs, report->scaled_inputs);
    if (report->scalable_inputs > 0 && isfinite(report->smooth_error_ratio))
        fprintf(file, "smooth: the mean output error of these inputs is %.2f of that without\n",
                report->smooth_error_ratio);
    if (report->foldable_inputs > 0)
        fprintf(file, "\nawq: of %zu inputs whose scales can be folded, %zu are scaled\n",
                report->foldable_inputs, report->folded_inputs);
}

static void print_evaluation(const ft_report *report, FILE *file)
{
    const ft_evaluation *e = &report->evaluation;
    if (e->samples == 0)
        return;
    fprintf(file,
            "\n%s of the quantized model against float, %zu %s samples:\nSQNR %.2f dB, cosine %.6f",
            e->output, e->samples, report->held_out ? "held-out" : "calibration", e->sqnr_db,
            e->cosine);
    if (!isnan(e->agreement))
        fprintf(file, ", same class %.2f %%", 100.0 * e->agreement);
    if (!isnan(e->accuracy[0]))
        fprintf(file, ", accuracy %.4f -> %.4f", e->accuracy[0], e->accuracy[1]);
    fputc('\n', file);
}

void ft_report_print(const ft_report *report, FILE *file)
{
    if (report->points > 0)
        print_points(report, file);
    print_weights(report, file);
    ft_mixed_report_print(&report->mixed, report->scheme, file);
    ft_weight_plan_report_print(&report->weight_plan, file);
    print_evaluation(report, file);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* JSON has neither infinity nor NaN: null stands for "no error" and "unknown". */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *result_json(const ft_amax_result *result)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "method", result->method, "status",
                     ft_amax_status_name(result->status), "amax", number((double) result->amax),
                     "clipped", number(result->distortion.clipped), "sqnr_db",
                     number(result->distortion.sqnr_db));
}

/* Equal bins on 0 .. max, the range of the first candidate. */
static json_t *histogram_json(const ft_point_report *point)
{
    json_t *bins = json_array();
    for (int i = 0; i < FT_COARSE_BINS; i++)
        ft_json_append(&bins, json_integer((json_int_t) point->bin[i]));
    return json_pack("{s:o, s:o}", "max", number((double) point->candidate[0].amax), "bins", bins);
}

/* Cells are the largest magnitudes of groups of neighbouring channels. */
static json_t *channels_json(const ft_channel_summary *channel)
{
    if (channel->channels == 0)
        return json_null();
    json_t *cells = json_array();
    for (int i = 0; i < channel->cells; i++)
        ft_json_append(&cells, number((double) channel->cell[i]));
    return json_pack("{s:I, s:I, s:o, s:o}", "count", (json_int_t) channel->channels, "outliers",
                     (json_int_t) channel->outliers, "median", number((double) channel->median),
                     "cells", cells);
}

static json_t *point_json(const ft_point_report *point)
{
    json_t *methods = json_array();
    for (int i = 0; i < FT_AMAX_CANDIDATES; i++)
        ft_json_append(&methods, result_json(&point->candidate[i]));
    return json_pack("{s:s, s:I, s:b, s:b, s:o, s:o, s:b, s:o, s:o}", "name", point->name, "count",
                     (json_int_t) point->n_values, "quantized", point->is_quantized, "per_token",
                     point->per_token, "chosen", result_json(&point->chosen), "candidates", methods,
                     "methods_disagree", ft_report_methods_disagree(point), "histogram",
                     histogram_json(point), "channels", channels_json(&point->channel));
}

static json_t *weight_json(const ft_weight_report *weight)
{
    json_t *json =
        json_pack("{s:s, s:s}", "name", weight->name, "scheme", ft_scheme_name(weight->scheme));
    if (weight->scheme == FT_SCHEME_FLOAT)
        return json;
    ft_json_set(&json, "method", json_string(weight->method));
    if (ft_scheme_is_int8(weight->scheme)) {
        ft_json_set(&json, "sqnr_db_per_channel", number(weight->sqnr.per_channel));
        ft_json_set(&json, "sqnr_db_per_tensor", number(weight->sqnr.per_tensor));
    } else {
        ft_json_set(&json, "group_size", json_integer(weight->group));
        ft_json_set(&json, "asymmetric", json_boolean(weight->asymmetric));
        ft_json_set(&json, "sqnr_db", number(weight->sqnr.per_channel));
        if (isfinite(weight->output_error))
            ft_json_set(&json, "relative_output_error", number(weight->output_error));
    }
    ft_json_set(&json, "relative_error", number(relative_error(weight)));
    return json;
}

static json_t *warning_json(const ft_report *report)
{
    return report->warning[0] != '\0' ? json_string(report->warning) : json_null();
}

json_t *ft_report_evaluation_json(const ft_report *report)
{
    const ft_evaluation *e = &report->evaluation;
    if (e->samples == 0)
        return json_null();
    return json_pack("{s:s, s:I, s:b, s:o, s:o, s:o, s:o, s:o}", "output", e->output, "samples",
                     (json_int_t) e->samples, "held_out", report->held_out, "sqnr_db",
                     number(e->sqnr_db), "cosine", number(e->cosine), "argmax_agreement",
                     number(e->agreement), "accuracy_float", number(e->accuracy[0]),
                     "accuracy_quantized", number(e->accuracy[1]));
}

static json_t *smooth_json(const ft_report *report)
{
    if (report->scalable_inputs == 0)
        return json_null();
    return json_pack("{s:I, s:I, s:o}", "scalable_inputs", (json_int_t) report->scalable_inputs,
                     "scaled_inputs", (json_int_t) report->scaled_inputs, "relative_error",
                     number(report->smooth_error_ratio));
}

static json_t *sensitivity_json(const ft_report *report)
{
    if (report->sensitivity == NULL)
        return json_null();
    json_t *parts = json_array();
    for (size_t i = 0; i < report->sensitivities; i++) {
        const ft_sensitivity *s = &report->sensitivity[i];
        ft_json_append(&parts, json_pack("{s:s, s:s, s:o, s:I}", "name", s->name, "scheme",
                                         ft_scheme_name(s->scheme), "loss", number(s->loss),
                                         "bytes", (json_int_t) s->bytes));
    }
    bool of_weights = report->sensitivity[0].scheme == FT_SCHEME_W4A16;
    return json_pack("{s:s, s:o}", "loss", report->loss_name,
                     of_weights ? "weights" : "activations", parts);
}

static json_t *pareto_json(const ft_report *report)
{
    if (report->pareto == NULL)
        return json_null();
    json_t *plans = json_array();
    for (size_t i = 0; i < report->pareto_points; i++)
        ft_json_append(&plans, json_pack("{s:o, s:o, s:b}", "bits", number(report->pareto[i].bits),
                                         "loss", number(report->pareto[i].loss), "chosen",
                                         report->pareto[i].chosen));
    return plans;
}

static json_t *to_json(const ft_report *report)
{
    json_t *points = json_array(), *weights = json_array();
    for (size_t i = 0; i < report->points; i++)
        ft_json_append(&points, point_json(&report->point[i]));
    for (size_t i = 0; i < report->weights; i++)
        ft_json_append(&weights, weight_json(&report->weight[i]));
    json_t *awq =
        report->foldable_inputs == 0
            ? json_null()
            : json_pack("{s:I, s:I}", "foldable_inputs", (json_int_t) report->foldable_inputs,
                        "folded_inputs", (json_int_t) report->folded_inputs);
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "samples",
                     (json_int_t) report->samples, "points", points, "weights", weights, "smooth",
                     smooth_json(report), "awq", awq, "mixed_precision",
                     ft_mixed_report_json(&report->mixed), "weight_precision",
                     ft_weight_plan_report_json(&report->weight_plan), "sensitivity",
                     sensitivity_json(report), "pareto", pareto_json(report), "end_to_end",
                     ft_report_evaluation_json(report), "warning", warning_json(report));
}

char *ft_report_format(const ft_report *report)
{
    json_t *json = to_json(report);
    char *text = ft_json_dump(json, JSON_INDENT(1), NULL);
    json_decref(json);
    return text;
}
