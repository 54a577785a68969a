/*
 * report.c - what each method would choose for each point, what was chosen, and what it costs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/report.h"

#include "runtime/error.h"
#include "runtime/json_build.h"

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

bool ft_report_disagrees(const ft_point_report *point)
{
    float least = point->candidate[0].amax, most = least;
    for (int i = 1; i < FT_CANDIDATES; i++) {
        least = fminf(least, point->candidate[i].amax);
        most = fmaxf(most, point->candidate[i].amax);
    }
    return most > 4.0f * least;
}

/* ---- For people --------------------------------------------------------------------------- */

static void print_points(const ft_report *report, FILE *file)
{
    fprintf(file, "%-28s %-18s %11s %11s %9s %8s\n", "point", "method", "amax", "max", "clipped",
            "SQNR dB");
    for (size_t i = 0; i < report->points; i++) {
        const ft_point_report *p = &report->point[i];
        fprintf(file, "%-28s %-18s %11.5g %11.5g %8.4f%% %8.2f\n", p->name, p->chosen.method,
                (double) p->chosen.amax, (double) p->candidate[0].amax,
                100.0 * p->chosen.distortion.clipped, p->chosen.distortion.sqnr_db);
    }
}

/* The noise as a fraction of the signal, both as lengths. */
static double relative_error(const ft_weight_report *weight)
{
    return pow(10.0, -weight->sqnr.per_channel / 20.0);
}

/* Whether samples told how large inputs are. */
static bool has_output_errors(const ft_report *report)
{
    for (size_t i = 0; i < report->weights; i++)
        if (report->weight[i].output_error > 0.0)
            return true;
    return false;
}

/* Of the column of methods. */
static int method_width(const ft_report *report)
{
    size_t width = 8;
    for (size_t i = 0; i < report->weights; i++)
        if (strlen(report->weight[i].method) > width)
            width = strlen(report->weight[i].method);
    return (int) width;
}

static void print_weight(const ft_weight_report *w, int width, FILE *file)
{
    char group[16] = "row";
    if (w->scheme == FT_SCHEME_FLOAT) {
        fprintf(file, "%-28s %-12s\n", w->name, ft_scheme_name(w->scheme));
        return;
    }
    if (w->group > 0)
        snprintf(group, sizeof group, "%d", w->group);
    fprintf(file, "%-28s %-12s %8s %*s %8.2f %8.3f%%", w->name, ft_scheme_name(w->scheme), group,
            width, w->method, w->sqnr.per_channel, 100.0 * relative_error(w));
    if (ft_scheme_is_int8(w->scheme))
        fprintf(file, " %12.2f", w->sqnr.per_tensor);
    else if (w->output_error > 0.0)
        fprintf(file, " %12s %8.3f%%", "", 100.0 * w->output_error);
    fputc('\n', file);
}

static void print_weights(const ft_report *report, FILE *file)
{
    bool first = report->points == 0;
    int width = method_width(report);
    fprintf(file, "%s%-28s %-12s %8s %*s %8s %9s %12s%s\n", first ? "" : "\n", "weight", "scheme",
            "a scale", width, "method", "SQNR dB", "error", "dB, 1 scale",
            has_output_errors(report) ? " in output" : "");
    for (size_t i = 0; i < report->weights; i++)
        print_weight(&report->weight[i], width, file);
    if (report->divisible > 0)
        fprintf(file, "\nawq: of %zu inputs that may be divided, %zu are\n", report->divisible,
                report->divided);
}

static void print_evaluation(const ft_report *report, FILE *file)
{
    const ft_evaluation *e = &report->evaluation;
    if (e->samples == 0)
        return;
    fprintf(file, "\n%s of codes against float, %zu %s samples: SQNR %.2f dB, cosine %.6f",
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

/* ---- For machines ------------------------------------------------------------------------- */

/* JSON has no infinity and no NaN: null stands for "nothing lost" and "not known". */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *choice_json(const ft_amax_choice *choice)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "method", choice->method, "status",
                     ft_amax_status_name(choice->status), "amax", number((double) choice->amax),
                     "clipped", number(choice->distortion.clipped), "sqnr_db",
                     number(choice->distortion.sqnr_db));
}

static json_t *point_json(const ft_point_report *point)
{
    json_t *methods = json_array();
    for (int i = 0; i < FT_CANDIDATES; i++)
        ft_json_append(&methods, choice_json(&point->candidate[i]));
    return json_pack("{s:s, s:I, s:b, s:o, s:o, s:b}", "name", point->name, "values",
                     (json_int_t) point->values, "read", point->read, "chosen",
                     choice_json(&point->chosen), "methods", methods, "disagreement",
                     ft_report_disagrees(point));
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
        ft_json_set(&json, "group", json_integer(weight->group));
        ft_json_set(&json, "asymmetric", json_boolean(weight->asymmetric));
        ft_json_set(&json, "sqnr_db", number(weight->sqnr.per_channel));
        if (isfinite(weight->output_error))
            ft_json_set(&json, "output_error", number(weight->output_error));
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
                     "accuracy_int8", number(e->accuracy[1]));
}

static json_t *to_json(const ft_report *report)
{
    json_t *points = json_array(), *weights = json_array();
    for (size_t i = 0; i < report->points; i++)
        ft_json_append(&points, point_json(&report->point[i]));
    for (size_t i = 0; i < report->weights; i++)
        ft_json_append(&weights, weight_json(&report->weight[i]));
    json_t *awq = report->divisible == 0
                      ? json_null()
                      : json_pack("{s:I, s:I}", "divisible", (json_int_t) report->divisible,
                                  "divided", (json_int_t) report->divided);
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "samples", (json_int_t) report->samples,
                     "points", points, "weights", weights, "awq", awq, "end_to_end",
                     evaluation_json(report), "warning", warning_json(report));
}

char *ft_report_format(const ft_report *report)
{
    json_t *json = to_json(report);
    char *text = ft_json_format(json, JSON_INDENT(1), NULL);
    json_decref(json);
    return text;
}
