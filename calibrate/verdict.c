/*
 * verdict.c - whether a quantized model is close enough to its float model, and what to try if not.
 *
 * The bounds come from trained models with all methods (docs/figures.md, "What the default costs").
 * Artifacts that perform like float have a cosine of at least 0.985; those below 0.98 lose several
 * per cent of perplexity, or rank sentences differently.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/verdict.h"

#include "runtime/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double least_cosine = 0.98, least_agreement = 0.95;

enum {
    NAMED = 3,         /* worst points or matrices that are named */
    FEW_SAMPLES = 128, /* below this, more samples are recommended */
    WIDTH = 98,        /* of a line */
};

/* ---- Worst points and matrices ------------------------------------------------------------- */

/* A matrix, and the SQNR of its input or of its weights. */
typedef struct suspect {
    const char *matrix;
    double sqnr_db;
} suspect;

typedef struct suspects {
    suspect worst[NAMED];
    int count;
} suspects;

/* Keeps it if it is one of the worst; the first of equals wins. */
static void suspect_one(suspects *s, suspect new)
{
    int place = s->count;
    while (place > 0 && new.sqnr_db < s->worst[place - 1].sqnr_db)
        place--;
    if (place == NAMED)
        return;
    s->count += s->count < NAMED;
    memmove(&s->worst[place + 1], &s->worst[place],
            (size_t) (s->count - 1 - place) * sizeof *s->worst);
    s->worst[place] = new;
}

static suspects worst_inputs(const ft_report *r)
{
    suspects s = { .count = 0 };
    for (size_t i = 0; i < r->points; i++)
        if (r->point[i].read && r->point[i].matrix[0] != '\0')
            suspect_one(&s, (suspect){ r->point[i].matrix, r->point[i].chosen.distortion.sqnr_db });
    return s;
}

static suspects worst_matrices(const ft_report *r)
{
    suspects s = { .count = 0 };
    for (size_t i = 0; i < r->weights; i++)
        if (r->weight[i].scheme != FT_SCHEME_FLOAT)
            suspect_one(&s, (suspect){ r->weight[i].name, r->weight[i].sqnr.per_channel });
    return s;
}

/* ---- Advice ------------------------------------------------------------------------------ */

/* Text written item by item, with line breaks. */
typedef struct advice {
    FILE *file;
    size_t column, items;
} advice;

static void begin_line(advice *a, const char *lead)
{
    a->column = (size_t) fprintf(a->file, "  %s", lead);
    a->items = 0;
}

static void add_item(advice *a, const char *item)
{
    const char *joint = a->items == 0 ? " " : "; ";
    if (a->items > 0 && a->column + strlen(joint) + strlen(item) > WIDTH) {
        fputs(";\n   ", a->file);
        a->column = 3;
        joint = " ";
    }
    a->column += (size_t) fprintf(a->file, "%s%s", joint, item);
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
    if (r->decodes)
        add_item(a, "--scheme w8a8-dynamic");
    add_item(a, "--scheme w8a8-block");
}

static void advise_blocks(advice *a, const ft_report *r)
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
static void name_worst(advice *a, const ft_report *r)
{
    suspects s = r->points > 0 ? worst_inputs(r) : worst_matrices(r);
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

static void advise(const ft_report *r, FILE *file)
{
    advice a = { .file = file };
    begin_line(&a, "try");
    if (r->points > 0)
        advise_ranges(&a, r);
    else if (ft_scheme_is_blocks(r->scheme))
        advise_blocks(&a, r);
    else
        add_item(&a, "--scheme w8a8-block");
    fputc('\n', file);
    name_worst(&a, r);
}

/* ---- Warning ----------------------------------------------------------------------------- */

static bool is_far(const ft_evaluation *e)
{
    return !(e->cosine >= least_cosine) || e->agreement < least_agreement;
}

static void tell_distance(const ft_report *r, FILE *file)
{
    const ft_evaluation *e = &r->evaluation;
    bool turned = e->cosine >= least_cosine;
    fprintf(file, "warning: the quantized model is far from the float model: %s ", e->output);
    if (isnan(e->cosine))
        fprintf(file, "contains NaN or infinity\n  ");
    else if (turned)
        fprintf(file, "has the same class\n  in %.1f %% ", 100.0 * e->agreement);
    else
        fprintf(file, "has a mean cosine of\n  %.4f ", e->cosine);
    fprintf(file, "on %zu %s samples; expected %s or more%s\n", e->samples,
            r->held_out ? "held-out" : "calibration", turned ? "95 %" : "0.98",
            r->held_out ? "" : "; new data may be worse");
}

/* Names points whose range is not the requested one, if there was no comparison. */
static void tell_points(const ft_report *r, FILE *file)
{
    size_t count = 0;
    for (size_t i = 0; i < r->points; i++)
        if (r->point[i].read && r->point[i].chosen.status != FT_AMAX_OK && count++ < NAMED)
            fprintf(file, "%s%s (%s)",
                    count > 1 ? ", " : "warning: no evaluation samples; check these ranges:\n  ",
                    r->point[i].name, ft_amax_status_name(r->point[i].chosen.status));
    if (count > NAMED)
        fprintf(file, " and %zu more", count - NAMED);
    if (count > 0)
        fputc('\n', file);
}

char *ft_report_verdict(const ft_report *report)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL)
        return NULL;
    if (report->evaluation.samples == 0) {
        tell_points(report, file);
    } else if (is_far(&report->evaluation)) {
        tell_distance(report, file);
        advise(report, file);
    }
    return ft_memstream_close(file, &text) ? text : NULL;
}
