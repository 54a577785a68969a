/*
 * report.c - prints and serializes the calibration report.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/report.h"

#include "runtime/error.h"
#include "runtime/base/json_build.h"
#include "runtime/cli/terminal_width.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void ft_report_fini(ft_report *report)
{
    free(report->point);
    free(report->weight);
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

enum { NAME_WIDTH = 28 }; /* minimum */

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void print_points(const ft_report *report, FILE *file)
{
    size_t max_name = 0;
    for (size_t i = 0; i < report->points; i++)
        max_name = max_size(max_name, strlen(report->point[i].name));
    int width = ft_fit_column_width(max_name, NAME_WIDTH, 63);
    fprintf(file, "%-*s %-18s %11s %11s %9s %8s\n", width, "point", "method", "amax", "max",
            "clipped", "SQNR dB");
    for (size_t i = 0; i < report->points; i++) {
        const ft_point_report *p = &report->point[i];
        char name[FT_ELLIPSIZED_SIZE];
        fprintf(file, "%-*s %-18s %11.5g %11.5g %8.4f%% %8.2f\n", width,
                ft_ellipsize(name, p->name, width), p->chosen.method, (double) p->chosen.amax,
                (double) p->candidate[0].amax, 100.0 * p->chosen.distortion.clipped,
                p->chosen.distortion.sqnr_db);
    }
}

/* The ratio of noise to signal, as RMS values. */
static double relative_error(const ft_weight_report *weight)
{
    return pow(10.0, -weight->sqnr.per_channel / 20.0);
}

/* Widths of the columns of the weight table, and which columns it has. */
typedef struct weight_table {
    int name, scheme, method;
    bool per_tensor, output; /* SQNR of a per-tensor scale; error of the outputs */
} weight_table;

static weight_table measure_table(const ft_report *report)
{
    weight_table t = { .name = 0 };
    size_t name = 0, scheme = 6, method = 8;
    for (size_t i = 0; i < report->weights; i++) {
        const ft_weight_report *w = &report->weight[i];
        name = max_size(name, strlen(w->name));
        scheme = max_size(scheme, strlen(ft_scheme_name(w->scheme)));
        method = max_size(method, strlen(w->method));
        t.per_tensor |= ft_scheme_is_int8(w->scheme);
        t.output |= w->output_error > 0.0;
    }
    t.scheme = (int) scheme;
    t.method = (int) method;
    t.name = ft_fit_column_width(
        name, NAME_WIDTH, 30 + t.scheme + t.method + (t.per_tensor ? 9 : 0) + (t.output ? 10 : 0));
    return t;
}

static void print_weight(const ft_weight_report *w, const weight_table *t, FILE *file)
{
    char group[16] = "row", name[FT_ELLIPSIZED_SIZE];
    fprintf(file, "%-*s ", t->name, ft_ellipsize(name, w->name, t->name));
    if (w->scheme == FT_SCHEME_FLOAT) {
        fprintf(file, "%s\n", ft_scheme_name(w->scheme));
        return;
    }
    if (w->group > 0)
        snprintf(group, sizeof group, "%d", w->group);
    fprintf(file, "%-*s %8s %*s %8.2f %8.3f%%", t->scheme, ft_scheme_name(w->scheme), group,
            t->method, w->method, w->sqnr.per_channel, 100.0 * relative_error(w));
    if (ft_scheme_is_int8(w->scheme))
        fprintf(file, " %8.2f", w->sqnr.per_tensor);
    else if (w->output_error > 0.0)
        fprintf(file, "%*s %8.3f%%", t->per_tensor ? 9 : 0, "", 100.0 * w->output_error);
    fputc('\n', file);
}

static void print_weights(const ft_report *report, FILE *file)
{
    const weight_table t = measure_table(report);
    fprintf(file, "%s%-*s %-*s %8s %*s %8s %9s%s%s\n", report->points == 0 ? "" : "\n", t.name,
            "weight", t.scheme, "scheme", "group", t.method, "method", "SQNR dB", "error",
            t.per_tensor ? "  1 scale" : "", t.output ? " in output" : "");
    for (size_t i = 0; i < report->weights; i++)
        print_weight(&report->weight[i], &t, file);
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

static json_t *point_json(const ft_point_report *point)
{
    json_t *methods = json_array();
    for (int i = 0; i < FT_AMAX_CANDIDATES; i++)
        ft_json_append(&methods, result_json(&point->candidate[i]));
    return json_pack("{s:s, s:I, s:b, s:o, s:o, s:b}", "name", point->name, "count",
                     (json_int_t) point->n_values, "quantized", point->is_quantized, "chosen",
                     result_json(&point->chosen), "candidates", methods, "methods_disagree",
                     ft_report_methods_disagree(point));
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

static json_t *evaluation_json(const ft_report *report)
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
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "samples", (json_int_t) report->samples,
                     "points", points, "weights", weights, "awq", awq, "end_to_end",
                     evaluation_json(report), "warning", warning_json(report));
}

char *ft_report_format(const ft_report *report)
{
    json_t *json = to_json(report);
    char *text = ft_json_dump(json, JSON_INDENT(1), NULL);
    json_decref(json);
    return text;
}
