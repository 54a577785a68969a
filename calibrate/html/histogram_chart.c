/*
 * histogram_chart.c - the values of a point, and what each calibration method makes of them.
 *
 * A model has hundreds of points, so a chart takes few bytes: all bins are one path of relative
 * lines, and colours and dashes come from the class of a method.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/html/histogram_chart.h"

#include "calibrate/html/heat_strip.h"
#include "runtime/cli/html/page.h"
#include "runtime/cli/html/svg.h"
#include "kernels/math/elementary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BIN_WIDTH = 5, WIDTH = BIN_WIDTH * FT_COARSE_BINS, HEIGHT = 80, AXIS = 14 };

/* A method that is none of the candidates, such as a percentile of the user's. */
enum { OTHER_METHOD = FT_AMAX_CANDIDATES };

static int chosen_index(const ft_histogram_chart *chart)
{
    for (int i = 0; i < FT_AMAX_CANDIDATES; i++)
        if (strcmp(chart->candidate[i].method, chart->chosen->method) == 0 &&
            !(chart->candidate[i].amax < chart->chosen->amax ||
              chart->candidate[i].amax > chart->chosen->amax))
            return i;
    return OTHER_METHOD;
}

/* ---- Image --------------------------------------------------------------------------------- */

static int bar_height(uint64_t count, uint64_t most)
{
    if (most == 0)
        return 0;
    return (int) rint(HEIGHT * ft_math_log1p((double) count) / ft_math_log1p((double) most));
}

static void put_bins(FILE *file, const uint64_t *bin)
{
    uint64_t most = 0;
    for (int i = 0; i < FT_COARSE_BINS; i++)
        most = bin[i] > most ? bin[i] : most;
    fprintf(file, "<path class=\"h\" d=\"M0 %d", HEIGHT);
    int before = 0;
    for (int i = 0; i < FT_COARSE_BINS; i++) {
        int height = bar_height(bin[i], most);
        if (height != before)
            fprintf(file, "v%d", before - height);
        fprintf(file, "h%d", BIN_WIDTH);
        before = height;
    }
    fprintf(file, "V%dz\"/>", HEIGHT);
}

/* The position of a range; those beyond all values, of a point that is zero, are at the edge. */
static double position(const ft_histogram_chart *chart, float amax)
{
    double max = (double) chart->candidate[0].amax;
    return max > 0.0 ? fmin(1.0, (double) amax / max) * WIDTH : WIDTH;
}

static void put_line(FILE *file, const ft_histogram_chart *chart, int method, float amax,
                     bool chosen)
{
    fprintf(file, "<path class=\"m%d%s\" d=\"M%.4g 0v%d\"/>", method, chosen ? " c" : "",
            position(chart, amax), HEIGHT);
}

static void put_image(FILE *file, const ft_histogram_chart *chart, int chosen)
{
    ft_svg_begin(file, WIDTH, HEIGHT + AXIS,
                 "Histogram of %s: magnitudes up to %.4g, counts on a log scale; "
                 "the range is %.4g, by %s",
                 chart->name, (double) chart->candidate[0].amax, (double) chart->chosen->amax,
                 chart->chosen->method);
    put_bins(file, chart->bin);
    for (int i = 0; i < FT_AMAX_CANDIDATES; i++)
        if (i != chosen)
            put_line(file, chart, i, chart->candidate[i].amax, false);
    put_line(file, chart, chosen, chart->chosen->amax, true);
    ft_svg_text(file, "muted", 0, HEIGHT + AXIS - 2, "0");
    ft_svg_text(file, "muted end", WIDTH, HEIGHT + AXIS - 2, "%.4g",
                (double) chart->candidate[0].amax);
    ft_svg_end(file);
}

/* ---- Table --------------------------------------------------------------------------------- */

static void put_method(FILE *file, const ft_amax_result *result, int method, bool chosen)
{
    fprintf(file, "<tr%s><th scope=\"row\"><i class=\"m%d\"></i>", chosen ? " class=\"c\"" : "",
            method);
    ft_html_printf(file, "%s%s", result->method, chosen ? " (chosen)" : "");
    fprintf(file, "</th><td class=\"n\">%.4g</td><td class=\"n\">%.3f</td><td class=\"n\">",
            (double) result->amax, 100.0 * result->distortion.clipped);
    if (isinf(result->distortion.sqnr_db))
        fputs("\xe2\x88\x9e</td></tr>\n", file);
    else
        fprintf(file, "%.1f</td></tr>\n", result->distortion.sqnr_db);
}

static void put_methods(FILE *file, const ft_histogram_chart *chart, int chosen)
{
    fputs("<table><caption>", file);
    ft_html_printf(file, "%" PRIu64 " values; %s", chart->n_values, chart->note);
    fputs("</caption><thead><tr><th scope=\"col\">method</th><th scope=\"col\" class=\"n\">range"
          "</th><th scope=\"col\" class=\"n\">clipped %</th><th scope=\"col\" class=\"n\">SQNR dB"
          "</th></tr></thead><tbody>\n",
          file);
    for (int i = 0; i < FT_AMAX_CANDIDATES; i++)
        put_method(file, &chart->candidate[i], i, i == chosen);
    if (chosen == OTHER_METHOD)
        put_method(file, chart->chosen, OTHER_METHOD, true);
    fputs("</tbody></table>", file);
}

void ft_html_histogram_chart(FILE *file, const ft_histogram_chart *chart)
{
    int chosen = chosen_index(chart);
    fputs("<div class=\"card\"><h3>", file);
    ft_html_printf(file, "%s", chart->name);
    fputs("</h3>\n", file);
    put_image(file, chart, chosen);
    if (chart->cells > 0)
        ft_html_heat_strip(file, chart->cell, chart->cells, chart->median, chart->channels);
    put_methods(file, chart, chosen);
    fputs("</div>\n", file);
}
