/*
 * report_html-t.c - the page of a calibration report: structure, contents, escaping, size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/html/bars.h"
#include "calibrate/html/heat_strip.h"
#include "runtime/cli/html/page.h"
#include "runtime/cli/html/scatter.h"
#include "runtime/cli/html/svg.h"
#include "calibrate/report/report_html.h"
#include "calibrate/report/verdict.h"
#include "tests/lib/models/sample_report.h"
#include "tests/lib/text.h"
#include "tests/tap/tap.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 4, POINTS_OF_LAYER = 4 };

/* ---- Text that functions write -------------------------------------------------------------- */

typedef struct writer {
    char *text;
    size_t bytes;
    FILE *file;
} writer;

static FILE *begin(writer *w)
{
    w->file = open_memstream(&w->text, &w->bytes);
    if (w->file == NULL)
        bail_out("no memory for a page");
    return w->file;
}

static char *end(writer *w)
{
    if (fclose(w->file) != 0)
        bail_out("cannot write a page");
    return w->text;
}

static char *page_of(const ft_report *report)
{
    writer w;
    ft_error err;
    if (ft_report_write_html(report, begin(&w), &err) != FT_OK)
        bail_out("%s", err.text);
    return end(&w);
}

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *c = text; (c = strstr(c, word)) != NULL; c += strlen(word))
        count++;
    return count;
}

/* ---- Structure ------------------------------------------------------------------------------ */

static bool is_void(const char *name, size_t length)
{
    return (length == 4 && strncmp(name, "meta", 4) == 0) ||
           (length == 8 && strncmp(name, "!DOCTYPE", 8) == 0);
}

/* Whether all elements are closed in the order in which they were opened. */
static bool is_balanced(const char *html)
{
    const char *open[64];
    size_t length[64], depth = 0;
    for (const char *c = html; (c = strchr(c, '<')) != NULL; c++) {
        bool closes = c[1] == '/';
        const char *name = c + 1 + closes, *last = strchr(c, '>');
        size_t n = strcspn(name, " >/");
        if (last == NULL || depth == 64)
            return false;
        if (closes) {
            if (depth == 0 || length[--depth] != n || strncmp(open[depth], name, n) != 0)
                return false;
        } else if (last[-1] != '/' && !is_void(name, n)) {
            open[depth] = name;
            length[depth++] = n;
        }
        bool is_code =
            !closes && (strncmp(name, "style", n) == 0 || strncmp(name, "script", n) == 0);
        if (is_code && (c = strstr(c, "</")) != NULL)
            c--;
        if (c == NULL)
            return false;
    }
    return depth == 0;
}

/* Whether no heading is more than one level below the one before it, and there is one h1. */
static bool headings_nest(const char *html)
{
    int level = 0;
    for (const char *c = html; (c = strstr(c, "<h")) != NULL; c++) {
        if (!isdigit((unsigned char) c[2]))
            continue;
        if (c[2] - '0' > level + 1)
            return false;
        level = c[2] - '0';
    }
    return count_of(html, "<h1>") == 1;
}

static void test_structure(const char *html)
{
    ok(strncmp(html, "<!DOCTYPE html>\n<html lang=\"en\">", 32) == 0,
       "a page begins with its document type and its language");
    ok(is_balanced(html), "all elements of a page are closed in order");
    ok(headings_nest(html), "a page has one h1, and no heading skips a level");
    is_int((long long) count_of(html, "<caption>"), (long long) count_of(html, "<table>"),
           "each table has a caption");
    is_int((long long) (count_of(html, "<th scope=\"row\"") + count_of(html, "<th scope=\"col\"")),
           (long long) (count_of(html, "<th ") + count_of(html, "<th>")),
           "each header cell says whether it heads a row or a column");
    is_int((long long) count_of(html, "role=\"img\"><title>"), (long long) count_of(html, "<svg "),
           "each image has the role img and a title");
    is_int((long long) count_of(html, "<button type=\"button\">"),
           (long long) count_of(html, " aria-sort=\""),
           "each header that sorts has a button and says its order");
    is_int((long long) count_of(html, "aria-sort=\"ascending\">"), 1,
           "one column is sorted from the start");
    is_int((long long) count_of(html, "tabindex=\"0\" role=\"region\" aria-label=\""),
           (long long) count_of(html, "class=\"scroll wide\""),
           "each part that scrolls has a name and takes the focus");
    ok(strstr(html, "http:") == NULL && strstr(html, "https:") == NULL &&
           strstr(html, "src=") == NULL && strstr(html, "url(") == NULL &&
           strstr(html, "default-src 'none'") != NULL,
       "a page refers to no other file, and its policy forbids to load any");
    ok(strstr(html, "prefers-color-scheme: dark") != NULL && strstr(html, "@media print") != NULL,
       "a page has colours for dark mode and a style for paper");
}

/* ---- Contents ------------------------------------------------------------------------------- */

static void test_summary(const char *html)
{
    has(html, "<title>Calibration of sample.ft</title>", "the title names the model");
    has(html, "<dt>Scheme</dt><dd>w8a8</dd>", "the summary states the scheme");
    has(html, "<dt>Calibration samples</dt><dd>48</dd>", "the summary states the samples");
    has(html, "<dt>Evaluation samples</dt><dd>64 held-out</dd>",
        "the summary states which samples were compared");
    has(html, "<dt>Mean cosine</dt><dd>0.970000</dd>", "the summary states the end-to-end error");
    has(html,
        "<p><strong>Warning</strong>: The quantized model is far from the float model: logits has "
        "a mean cosine of 0.9700 on 64 held-out samples; expected 0.98 or more. Try ",
        "the warning becomes sentences, without its line breaks");
}

static void test_contents(const ft_report *r, const char *html)
{
    is_int((long long) count_of(html, "<div class=\"card\">"), LAYERS * POINTS_OF_LAYER,
           "each calibration point has a histogram");
    is_int((long long) count_of(html, "(chosen)"), LAYERS * POINTS_OF_LAYER,
           "each point has one chosen method");
    is_int((long long) count_of(html, " c\" d=\"M"), LAYERS * POINTS_OF_LAYER,
           "the line of the chosen method is emphasized");
    is_int((long long) count_of(html, "<rect class=\"bar\""), (long long) r->sensitivities,
           "each sensitivity has a bar");
    has(html, "100.0 %</text>", "the cumulative losses end at 100 %%");
    is_int((long long) count_of(html, "class=\"pick\""), 1, "the chosen plan is marked once");
    is_int((long long) count_of(html, "<circle class=\"dot\""), LAYERS * 3 + 6,
           "each quantized point and each plan that was not chosen is a dot");
    ok(strstr(html, "onclick=\"x") == NULL &&
           strstr(html, "&lt;b onclick=&quot;x()&quot;&gt;&amp;&#39;.weight") != NULL,
       "names of the model cannot become elements of the page");
}

/* The rows of the table of weights are in ascending order of the column that says so. */
static void test_order(const char *html)
{
    const char *row = strstr(html, "<tbody>\n<tr><th scope=\"row\">");
    double before = 0.0;
    int wrong = 0, rows = 0;
    for (const char *c = row; c != NULL && strncmp(c, "</tbody>", 8) != 0;
         c = strchr(c, '\n') + 1) {
        const char *cell = c;
        for (int i = 0; i < 4 && cell != NULL; i++)
            cell = strstr(cell + 1, "<td");
        double value = cell != NULL ? strtod(strchr(cell, '>') + 1, NULL) : 0.0;
        if (strncmp(c, "<tr>", 4) != 0 || value <= 0.0)
            continue;
        wrong += value < before;
        before = value;
        rows++;
    }
    ok(wrong == 0 && rows > LAYERS, "the table of weights begins with the lowest SQNR");
}

static void test_absent(void)
{
    ft_report r;
    sample_report_make(&r, 1);
    free(r.sensitivity);
    free(r.pareto);
    r.sensitivity = NULL;
    r.pareto = NULL;
    r.evaluation.samples = 0;
    char *html = page_of(&r);
    ok(strstr(html, "Sensitivity") == NULL && strstr(html, "Size and loss") == NULL &&
           strstr(html, "Compared") == NULL,
       "a report without sensitivity, plans and evaluation has no sections for them");
    free(html);
    r.points = 0;
    html = page_of(&r);
    ok(strstr(html, "class=\"card\"") == NULL && is_balanced(html),
       "a report without points has no histograms");
    free(html);
    r.points = POINTS_OF_LAYER;
    ft_report_fini(&r);
}

/* ---- Charts --------------------------------------------------------------------------------- */

static void test_own_percentile(void)
{
    ft_report r;
    sample_report_make(&r, 1);
    snprintf(r.point[0].chosen.method, sizeof r.point[0].chosen.method, "percentile-99.95");
    char *html = page_of(&r);
    has(html, "percentile-99.95 (chosen)", "a percentile of the user's is a method of its own");
    is_int((long long) count_of(html, "class=\"m7 c\""), 1,
           "its line has a colour of its own and is emphasized");
    free(html);
    ft_report_fini(&r);
}

static void test_per_token(void)
{
    ft_report r;
    sample_report_make(&r, 1);
    char *before = page_of(&r);
    r.point[0].per_token = true;
    snprintf(r.point[0].matrix, sizeof r.point[0].matrix, "layer.0.q.weight");
    char *html = page_of(&r);
    has(html, "input of layer.0.q.weight, with a scale per token instead of a range",
        "the page says which points have a scale per token");
    is_int((long long) count_of(html, "<circle class=\"dot\""),
           (long long) count_of(before, "<circle class=\"dot\"") - 1,
           "the chart by layer omits points with a scale per token");
    free(before);
    free(html);
    ft_report_fini(&r);
}

static void test_layers(void)
{
    static const ft_html_dot dots[] = { { "embed.norm", 40.0 },      { "layer.0.attn.q", 30.0 },
                                        { "layer.0.act", 20.0 },     { "layer.1.attn.q", 31.0 },
                                        { "encoder.layer.10.x", 1 }, { "encoder.layer.1.x", 2 } };
    writer w;
    ft_html_layer_chart(begin(&w), dots, 6, "SQNR");
    char *html = end(&w);
    is_int((long long) count_of(html, "L"), 4 + 5 /* lines of the axis */,
           "the curve has one place for each of five layers");
    has(html, ">0</text>", "a layer is named by its number");
    has(html, ">e10</text>", "a layer of an encoder is named by a letter and its number");
    has(html, ">embed</text>", "values outside layers are named by their first word");
    has(html, "<title>layer.0.act: 20.0</title>", "each dot has a title with name and value");
    free(html);
}

static void test_bars(void)
{
    ft_html_bar bars[] = { { "a", "w8a8", 1.0 }, { "b", "w8a8", 3.0 } };
    writer w;
    ft_html_bars(begin(&w), bars, 2, "loss");
    char *html = end(&w);
    const char *b = strstr(html, ">b w8a8<"), *a = strstr(html, ">a w8a8<");
    ok(a != NULL && b != NULL && b < a, "the largest bar is the first");
    has(html, ">75.0 %<", "the share of the first bar is its part of the sum");
    free(html);
    bars[0].value = bars[1].value = 0.0;
    ft_html_bars(begin(&w), bars, 2, "loss");
    html = end(&w);
    ok(strstr(html, "nan") == NULL && strstr(html, "inf") == NULL,
       "bars that are all zero give no undefined numbers");
    free(html);
}

static void test_channels(const char *html)
{
    float amax[6] = { 1.0f, 1.5f, 9.0f, 1.0f, 2.0f, 1.2f };
    ft_channel_summary c;
    writer w;
    ft_channel_summary_init(&c, amax, 6);
    ok(c.channels == 6 && c.cells == 6 && c.outliers == 1,
       "the channel that reaches four times the median channel is an outlier");
    near((double) c.median, 1.5, 0.0, "the median channel is the upper of the two in the middle");
    ft_html_heat_strip(begin(&w), c.cell, c.cells, c.median, "x");
    char *strip = end(&w);
    is_int((long long) count_of(strip, "<path class=\"s"), 1, "one shade of the strip occurs");
    has(strip, "<path class=\"s2\" d=\"M106 0h54v10h-54z\"/>",
        "a channel of 6 times the median has the shade for 4, in its place");
    free(strip);
    float many[200];
    for (int i = 0; i < 200; i++)
        many[i] = (float) i;
    ft_channel_summary_init(&c, many, 200);
    ok(c.cells == FT_CHANNEL_CELLS && (int) c.cell[0] == 3 && (int) c.cell[63] == 199,
       "a cell has the largest of its neighbouring channels");
    has(html, "1 of 128 reach 4 times the median channel",
        "the page counts the outlier channels of each point");
}

static void test_ticks(void)
{
    static const double max[] = { 0.003, 0.9, 5.0, 7.0, 40.0, 61.0, 1e9 };
    int wrong = 0;
    for (size_t i = 0; i < sizeof max / sizeof *max; i++) {
        double parts = max[i] / ft_svg_tick(max[i]);
        wrong += !(parts >= 2.0 && parts <= 6.0);
    }
    is_int(wrong, 0, "a scale has two to six parts");
    ok(ft_svg_tick(0.0) > 0.0 && ft_svg_tick((double) NAN) > 0.0,
       "a scale without values has a tick nevertheless");
}

static void test_path(void)
{
    ok(ft_report_path_is_html("a/b.html") && ft_report_path_is_html("b.HTM") &&
           !ft_report_path_is_html("b.json") && !ft_report_path_is_html("html"),
       "a report whose name ends in .html or .htm is a page");
}

static void test_json(const ft_report *r)
{
    char *text = ft_report_format(r);
    has(text, "\"loss\": \"KL divergence of logits\"", "the JSON report names the loss");
    has(text, "\"chosen\": true", "the JSON report marks the chosen plan");
    has(text, "\"outliers\": 1", "the JSON report has the outlier channels");
    has(text, "\"histogram\": {", "the JSON report has the histograms");
    free(text);
}

int main(void)
{
    ft_report report;
    sample_report_make(&report, LAYERS);
    report.warning = ft_report_warning(&report);
    char *html = page_of(&report), *again = page_of(&report);
    test_structure(html);
    test_summary(html);
    test_contents(&report, html);
    test_order(html);
    is_str(again, html, "the same report gives the same bytes");
    test_json(&report);
    test_channels(html);
    free(html);
    free(again);
    ft_report_fini(&report);
    test_absent();
    test_own_percentile();
    test_per_token();
    test_layers();
    test_bars();
    test_ticks();
    test_path();
    return done_testing();
}
