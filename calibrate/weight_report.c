/*
 * weight_report.c - scheme, method and error of each matrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weight_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_word(char *out, size_t size, const char *word)
{
    size_t length = strlen(out);
    snprintf(out + length, size - length, "%s%s", length > 0 ? ", " : "", word);
}

/* "awq, mse, gptq": how columns were scaled, grids were chosen, and values were rounded. */
static void describe_method(char *out, size_t size, const ft_recipe *recipe)
{
    out[0] = '\0';
    if (recipe->awq)
        add_word(out, size, "awq");
    if (recipe->clip != FT_CLIP_NONE)
        add_word(out, size, ft_clip_name(recipe->clip));
    if (recipe->gptq)
        add_word(out, size, "gptq");
    if (out[0] == '\0')
        add_word(out, size, "max");
}

void ft_weight_report_begin(ft_weight_report *report, const ft_quantized *q,
                            const ft_recipe *recipe)
{
    static const ft_recipe plain;
    bool blocks = ft_scheme_is_blocks(q->scheme);
    snprintf(report->name, sizeof report->name, "%s", q->weights.name);
    report->scheme = q->scheme;
    describe_method(report->method, sizeof report->method, blocks ? recipe : &plain);
    if (ft_scheme_is_int8(q->scheme))
        report->sqnr = ft_weights_measure(&q->weights, q->scale);
    if (!blocks)
        return;
    report->group = q->how.group;
    report->asymmetric = q->how.asymmetric;
}

void ft_weight_report_end(ft_weight_report *report, const ft_quantized *q)
{
    const ft_blocks_cost *cost = &q->cost;
    report->sqnr.per_channel = ft_decibels(cost->signal, cost->noise);
    report->output_error =
        cost->out_signal > 0.0 ? sqrt(cost->out_noise / cost->out_signal) : (double) NAN;
}
