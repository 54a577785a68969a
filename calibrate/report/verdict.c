/*
 * verdict.c - whether a quantized model is close enough to its float model, and what to try if not.
 *
 * The bounds come from trained models with all methods (docs/accuracy.md, "The default method").
 * Artifacts that perform like float have a cosine of at least 0.985; those below 0.98 lose several
 * per cent of perplexity, or rank sentences differently.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/report/verdict.h"

#include "runtime/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double min_cosine = 0.98, min_agreement = 0.95;

enum {
    MAX_NAMED = 3,     /* worst points or matrices that are named */
    FEW_SAMPLES = 128, /* below this, more samples are recommended */
    WIDTH = 98,        /* of a line */
};

/* ---- Worst points and matrices ------------------------------------------------------------- */

/* A matrix, and the SQNR of its input or of its weights. */
typedef struct candidate {
    const char *matrix;
    double sqnr_db;
} candidate;

typedef struct worst_list {
    candidate worst[MAX_NAMED];
    int count;
} worst_list;

/* Keeps it if it is one of the worst; the first of equals wins. */
static void insert_worst(worst_list *s, candidate new)
{
    int index = s->count;
    while (index > 0 && new.sqnr_db < s->worst[index - 1].sqnr_db)
        index--;
    if (index == MAX_NAMED)
        return;
    s->count += s->count < MAX_NAMED;
    memmove(&s->worst[index + 1], &s->worst[index],
            (size_t) (s->count - 1 - index) * sizeof *s->worst);
    s->worst[index] = new;
}

static worst_list worst_inputs(const ft_report *r)
{
    worst_list s = { .count = 0 };
    for (size_t i = 0; i < r->points; i++)
        if (r->point[i].is_quantized && r->point[i].matrix[0] != '\0')
            insert_worst(&s,
                         (candidate){ r->point[i].matrix, r->point[i].chosen.distortion.sqnr_db });
    return s;
}

static worst_list worst_matrices(const ft_report *r)
{
    worst_list s = { .count = 0 };
    for (size_t i = 0; i < r->weights; i++)
        if (r->weight[i].scheme != FT_SCHEME_FLOAT)
            insert_worst(&s, (candidate){ r->weight[i].name, r->weight[i].sqnr.per_channel });
    return s;
}

/* ---- Advice ------------------------------------------------------------------------------ */

/* Text written item by item, with line breaks. */
typedef struct advice {
    FILE *file;
    size_t column, items;
} advice;

static void begin_line(advice *a, const char *prefix)
{
    a->column = (size_t) fprintf(a->file, "  %s", prefix);
    a->items = 0;
}

static void add_item(advice *a, const char *item)
{
    const char *separator = a->items == 0 ? " " : "; ";
    if (a->items > 0 && a->column + strlen(separator) + strlen(item) > WIDTH) {
        fputs(";\n   ", a->file);
        a->column = 3;
        separator = " ";
    }
    a->column += (size_t) fprintf(a->file, "%s%s", separator, item);
    a->items++;
}

static void advise_ranges(advice *a, const ft_report *r)
{
    char item[64];
    add_item(a, r->method == FT_METHOD_AUTO ? "-m percentile" : "-m auto");
    if (r->samples < FEW_SAMPLES) {
        snprintf(item, sizeof item, "more samples than %" PRIu64, r->samples);
        add_item(a, item);
    }
    if (r->int8_residual)
        add_item(a, "--residual float");
    if (r->is_decoder)
        add_item(a, "--scheme w8a8-dynamic");
    add_item(a, "--scheme w8a8-block");
}

static void advise_groupwise(advice *a, const ft_report *r)
{
    if (r->scheme != FT_SCHEME_W4A16) {
        add_item(a, "--scheme w8a16");
        return;
    }
    add_item(a, "--scheme w8a16");
    add_item(a, "--asym");
    add_item(a, "--clip imatrix --round gptq, with samples");
}

/* Names the matrices with the worst inputs, or the worst matrices. */
static void write_worst(advice *a, const ft_report *r)
{
    worst_list s = r->points > 0 ? worst_inputs(r) : worst_matrices(r);
    char item[FT_NAME + 32];
    if (s.count == 0)
        return;
    begin_line(a, "or --exclude REGEX, which keeps matrices float; lowest SQNR:");
    fputs(r->points > 0 ? " inputs of\n   " : "\n   ", a->file);
    a->column = 3;
    for (int i = 0; i < s.count; i++) {
        snprintf(item, sizeof item, "%s (%.1f dB)", s.worst[i].matrix, s.worst[i].sqnr_db);
        add_item(a, item);
    }
    fputc('\n', a->file);
}

static void write_advice(const ft_report *r, FILE *file)
{
    advice a = { .file = file };
    begin_line(&a, "try");
    if (r->points > 0)
        advise_ranges(&a, r);
    else if (ft_scheme_is_groupwise(r->scheme))
        advise_groupwise(&a, r);
    else
        add_item(&a, "--scheme w8a8-block");
    fputc('\n', file);
    write_worst(&a, r);
}

/* ---- Warning ----------------------------------------------------------------------------- */

static bool is_inaccurate(const ft_evaluation *e)
{
    return !(e->cosine >= min_cosine) || e->agreement < min_agreement;
}

static void write_distance(const ft_report *r, FILE *file)
{
    const ft_evaluation *e = &r->evaluation;
    bool class_changed = e->cosine >= min_cosine;
    fprintf(file, "warning: the quantized model is far from the float model: %s ", e->output);
    if (isnan(e->cosine))
        fprintf(file, "contains NaN or infinity\n  ");
    else if (class_changed)
        fprintf(file, "has the same class\n  in %.1f %% ", 100.0 * e->agreement);
    else
        fprintf(file, "has a mean cosine of\n  %.4f ", e->cosine);
    fprintf(file, "on %zu %s samples; expected %s or more%s\n", e->samples,
            r->held_out ? "held-out" : "calibration", class_changed ? "95 %" : "0.98",
            r->held_out ? "" : "; new data may be worse");
}

/* Names points whose range is not the requested one, if there was no comparison. */
static void write_points(const ft_report *r, FILE *file)
{
    size_t count = 0;
    for (size_t i = 0; i < r->points; i++)
        if (r->point[i].is_quantized && r->point[i].chosen.status != FT_AMAX_OK &&
            count++ < MAX_NAMED)
            fprintf(file, "%s%s (%s)",
                    count > 1 ? ", " : "warning: no evaluation samples; check these ranges:\n  ",
                    r->point[i].name, ft_amax_status_name(r->point[i].chosen.status));
    if (count > MAX_NAMED)
        fprintf(file, " and %zu more", count - MAX_NAMED);
    if (count > 0)
        fputc('\n', file);
}

char *ft_report_warning(const ft_report *report)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL)
        return NULL;
    if (report->evaluation.samples == 0) {
        write_points(report, file);
    } else if (is_inaccurate(&report->evaluation)) {
        write_distance(report, file);
        write_advice(report, file);
    }
    return ft_memstream_close(file, &text) ? text : NULL;
}
