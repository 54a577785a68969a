/*
 * report_html.c - the calibration report as a page for browsers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/report/report_html.h"

#include "calibrate/html/bars.h"
#include "calibrate/html/histogram_chart.h"
#include "calibrate/report/mixed_report.h"
#include "calibrate/report/weight_plan_report.h"
#include "runtime/base/file_name.h"
#include "runtime/cli/html/page.h"
#include "runtime/cli/html/scatter.h"
#include "runtime/cli/html/table.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool ft_report_path_is_html(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL && (strcasecmp(dot, ".html") == 0 || strcasecmp(dot, ".htm") == 0);
}

/* ---- Summary ------------------------------------------------------------------------------- */

static const char *data_name(const ft_report *r)
{
    return r->held_out ? "held-out" : "calibration";
}

static void put_evaluation(FILE *file, const ft_report *r)
{
    const ft_evaluation *e = &r->evaluation;
    if (e->samples == 0)
        return;
    ft_html_fact(file, "Compared with float", "%s", e->output);
    ft_html_fact(file, "Evaluation samples", "%zu %s", e->samples, data_name(r));
    ft_html_fact(file, "Mean cosine", "%.6f", e->cosine);
    ft_html_fact(file, "SQNR", isinf(e->sqnr_db) ? "no error" : "%.2f dB", e->sqnr_db);
    if (!isnan(e->agreement))
        ft_html_fact(file, "Same class", "%.2f %%", 100.0 * e->agreement);
    if (!isnan(e->accuracy[0]))
        ft_html_fact(file, "Accuracy, float to quantized", "%.4f to %.4f", e->accuracy[0],
                     e->accuracy[1]);
}

static void put_facts(FILE *file, const ft_report *r)
{
    ft_html_begin_facts(file);
    ft_html_fact(file, "Scheme", "%s", ft_scheme_name(r->scheme));
    if (r->points > 0)
        ft_html_fact(file, "Method", "%s", ft_method_name(r->method));
    if (r->samples > 0)
        ft_html_fact(file, "Calibration samples", "%" PRIu64, r->samples);
    put_evaluation(file, r);
    ft_html_end_facts(file);
}

/* ---- Warnings ------------------------------------------------------------------------------ */

static const char prefix[] = "warning: ", advice[] = "  try ";

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* The first letter of a sentence, and the rest of its line. */
static const char *put_line(FILE *file, const char *text, bool begins)
{
    size_t length = strcspn(text, "\n");
    char first = length > 0 ? (char) toupper((unsigned char) text[0]) : '\0';
    if (begins && length > 0) {
        ft_html_escape(file, &first, 1);
        ft_html_escape(file, text + 1, length - 1);
    } else
        ft_html_escape(file, text, length);
    return text + length + (text[length] == '\n');
}

/*
 * The lines of a warning as paragraphs.  Lines that begin with spaces continue the one before, and
 * the advice is a sentence of its own.
 */
static void put_warning(FILE *file, const char *text)
{
    bool open = false;
    while (*text != '\0') {
        bool is_advice = starts_with(text, advice), is_new = starts_with(text, prefix);
        if (is_new && open)
            fputs(".</p>\n", file);
        if (is_new)
            fputs("<p><strong>Warning</strong>: ", file);
        else
            fputs(is_advice ? ". " : " ", file);
        open = true;
        text = put_line(file, text + (is_new ? strlen(prefix) : strspn(text, " ")),
                        is_new || is_advice);
    }
    if (open)
        fputs(".</p>\n", file);
}

/* What single points suggest; it need not cost the model anything. */
static void put_point_notes(FILE *file, const ft_report *r)
{
    size_t unusual = 0, disagree = 0;
    for (size_t i = 0; i < r->points; i++) {
        unusual += r->point[i].is_quantized && r->point[i].chosen.status != FT_AMAX_OK;
        disagree += r->point[i].is_quantized && ft_report_methods_disagree(&r->point[i]);
    }
    if (unusual > 0) {
        fputs("<p>", file);
        ft_html_printf(file, "Of %zu points, %zu could not get the requested range.", r->points,
                       unusual);
        fputs("</p>\n", file);
    }
    if (disagree > 0) {
        fputs("<p>", file);
        ft_html_printf(file,
                       "The methods' ranges differ by more than a factor of 4 for %zu of %zu "
                       "points, so the method matters there.",
                       disagree, r->points);
        fputs("</p>\n", file);
    }
}

static void put_summary(FILE *file, const ft_report *r)
{
    put_facts(file, r);
    if (r->warning != NULL && r->warning[0] != '\0') {
        fputs("<div class=\"alarm\" role=\"note\">\n", file);
        put_warning(file, r->warning);
        fputs("</div>\n", file);
    }
    put_point_notes(file, r);
    ft_mixed_report_html(&r->mixed, file);
    ft_weight_plan_report_html(&r->weight_plan, file);
    if (r->foldable_inputs > 0) {
        fputs("<p>", file);
        ft_html_printf(file, "AWQ scales %zu of %zu inputs whose scales can be folded.",
                       r->folded_inputs, r->foldable_inputs);
        fputs("</p>\n", file);
    }
}

/* ---- Sensitivity --------------------------------------------------------------------------- */

static ft_status put_sensitivity(FILE *file, const ft_report *r, ft_error *err)
{
    if (r->sensitivity == NULL || r->sensitivities == 0)
        return FT_OK;
    ft_html_bar *bar = ft_calloc(r->sensitivities, sizeof *bar);
    if (bar == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu bars", r->sensitivities);
    for (size_t i = 0; i < r->sensitivities; i++)
        bar[i] = (ft_html_bar){ .name = r->sensitivity[i].name,
                                .note = ft_scheme_name(r->sensitivity[i].scheme),
                                .value = fmax(0.0, r->sensitivity[i].loss) };
    bool of_weights = r->sensitivity[0].scheme == FT_SCHEME_W4A16;
    ft_html_begin_section(
        file, "Sensitivity",
        of_weights
            ? "What four bits of each matrix cost at the output: the loss of the model in "
              "which all other matrices are float. The curve is the cumulative share."
            : "What quantizing each activation and its matrices costs at the output: the loss "
              "of the model in which all others are float. The curve is the cumulative "
              "share.");
    ft_html_bars(file, bar, r->sensitivities, r->loss_name);
    ft_html_end_section(file);
    free(bar);
    return FT_OK;
}

static ft_status put_pareto(FILE *file, const ft_report *r, ft_error *err)
{
    if (r->pareto == NULL || r->pareto_points == 0)
        return FT_OK;
    ft_html_choice *choice = ft_calloc(r->pareto_points, sizeof *choice);
    if (choice == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu plans", r->pareto_points);
    for (size_t i = 0; i < r->pareto_points; i++)
        choice[i] =
            (ft_html_choice){ r->pareto[i].bits / 8.0, r->pareto[i].loss, r->pareto[i].chosen };
    ft_html_begin_section(file, "Size and loss",
                          "Plans that no other plan beats in both size and loss.");
    ft_html_pareto_chart(file, choice, r->pareto_points, "bytes per weight", r->loss_name);
    ft_html_end_section(file);
    free(choice);
    return FT_OK;
}

/* ---- Points -------------------------------------------------------------------------------- */

static ft_status put_layers(FILE *file, const ft_report *r, ft_error *err)
{
    ft_html_dot *dot = ft_calloc(r->points, sizeof *dot);
    size_t count = 0;
    if (dot == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu points", r->points);
    for (size_t i = 0; i < r->points; i++)
        if (r->point[i].is_quantized && !r->point[i].per_token &&
            isfinite(r->point[i].chosen.distortion.sqnr_db))
            dot[count++] = (ft_html_dot){ r->point[i].name, r->point[i].chosen.distortion.sqnr_db };
    if (count > 0) {
        ft_html_begin_section(file, "Points by layer",
                              "The signal-to-quantization-noise ratio of each value that is "
                              "quantized with a static range. Higher is better; 6 dB are one bit.");
        ft_html_layer_chart(file, dot, count, "SQNR in dB");
        ft_html_end_section(file);
    }
    free(dot);
    return FT_OK;
}

static void put_point(FILE *file, const ft_point_report *p)
{
    char note[FT_NAME + 64] = "not quantized", channels[FT_NAME + 160];
    const ft_channel_summary *c = &p->channel;
    const char *scales = p->per_token ? ", with a scale per token instead of a range" : "";
    if (p->matrix[0] != '\0')
        snprintf(note, sizeof note, "input of %s%s", p->matrix, scales);
    else if (p->is_quantized)
        snprintf(note, sizeof note, "quantized");
    snprintf(channels, sizeof channels,
             "Channels of %s: %zu of %zu reach %d times the median channel", p->name, c->outliers,
             c->channels, FT_OUTLIER_FACTOR);
    ft_html_histogram_chart(file, &(ft_histogram_chart){ .name = p->name,
                                                         .note = note,
                                                         .n_values = p->n_values,
                                                         .bin = p->bin,
                                                         .candidate = p->candidate,
                                                         .chosen = &p->chosen,
                                                         .cell = c->cell,
                                                         .cells = c->cells,
                                                         .median = c->median,
                                                         .channels = channels });
}

static void put_points(FILE *file, const ft_report *r)
{
    ft_html_begin_section(file, "Calibration points",
                          "Magnitudes of each value, counts on a log scale, and the range of each "
                          "method as a line; the chosen one is wide. Values beyond a range are "
                          "clipped to it. The strip below shows the channels in order: shades mark "
                          "those that reach 2, 4 and 8 times the median channel.");
    fputs("<div class=\"cards\">\n", file);
    for (size_t i = 0; i < r->points; i++)
        put_point(file, &r->point[i]);
    fputs("</div>\n", file);
    ft_html_end_section(file);
}

/* ---- Weights ------------------------------------------------------------------------------- */

static const ft_listing_column columns[] = {
    { .title = "Weight" },
    { .title = "Scheme" },
    { .title = "Group", .is_number = true },
    { .title = "Method" },
    { .title = "SQNR dB", .is_number = true },
    { .title = "With one scale dB", .is_number = true },
    { .title = "Output error %", .is_number = true },
};
enum { SQNR_COLUMN = 4 };

static void fill_weight(ft_listing_cell *cell, const void *source, size_t row)
{
    const ft_weight_report *w = ((const ft_weight_report *const *) source)[row];
    cell[0].text = w->name;
    cell[1].text = ft_scheme_name(w->scheme);
    if (w->scheme == FT_SCHEME_FLOAT)
        return;
    cell[2].text = "row";
    if (w->group > 0)
        ft_listing_cell_format(&cell[2], "%d", w->group);
    cell[3].text = w->method;
    ft_listing_cell_format(&cell[4], "%.2f", w->sqnr.per_channel);
    if (ft_scheme_is_int8(w->scheme))
        ft_listing_cell_format(&cell[5], "%.2f", w->sqnr.per_tensor);
    else if (w->output_error > 0.0)
        ft_listing_cell_format(&cell[6], "%.3f", 100.0 * w->output_error);
}

/* The lowest SQNR first, float matrices last, in the order of the model otherwise. */
static int by_sqnr(const void *a, const void *b)
{
    const ft_weight_report *x = *(const ft_weight_report *const *) a,
                           *y = *(const ft_weight_report *const *) b;
    bool x_float = x->scheme == FT_SCHEME_FLOAT, y_float = y->scheme == FT_SCHEME_FLOAT;
    if (x_float != y_float)
        return x_float ? 1 : -1;
    if (!x_float &&
        (x->sqnr.per_channel < y->sqnr.per_channel || x->sqnr.per_channel > y->sqnr.per_channel))
        return x->sqnr.per_channel < y->sqnr.per_channel ? -1 : 1;
    return x < y ? -1 : x > y;
}

static ft_status put_weights(FILE *file, const ft_report *r, ft_error *err)
{
    const ft_weight_report **sorted = ft_calloc(r->weights, sizeof(ft_weight_report *));
    if (sorted == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu weights", r->weights);
    for (size_t i = 0; i < r->weights; i++)
        sorted[i] = &r->weight[i];
    qsort(sorted, r->weights, sizeof *sorted, by_sqnr);
    ft_html_begin_section(file, "Weights",
                          "The error of each quantized matrix. The headers sort the table.");
    ft_html_table(file,
                  &(ft_listing){ .column = columns,
                                 .columns = FT_COUNT(columns),
                                 .rows = r->weights,
                                 .fill = fill_weight,
                                 .source = sorted },
                  "Quantized weights and their error", SQNR_COLUMN);
    ft_html_end_section(file);
    free(sorted);
    return FT_OK;
}

/* -------------------------------------------------------------------------------------------- */

ft_status ft_report_write_html(const ft_report *report, FILE *file, ft_error *err)
{
    char title[300];
    snprintf(title, sizeof title, "Calibration of %s",
             report->model != NULL ? ft_file_name(report->model) : "a model");
    ft_html_begin(file, title);
    put_summary(file, report);
    FT_TRY(put_sensitivity(file, report, err));
    FT_TRY(put_pareto(file, report, err));
    if (report->points > 0)
        FT_TRY(put_layers(file, report, err));
    FT_TRY(put_weights(file, report, err));
    if (report->points > 0)
        put_points(file, report);
    ft_html_end(file);
    return FT_OK;
}
