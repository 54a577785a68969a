/*
 * weight_report.c - scheme, method and error of each matrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/report/weight_report.h"

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
    if (recipe->round != FT_ROUND_NEAREST)
        add_word(out, size, ft_rounding_name(recipe->round));
    if (out[0] == '\0')
        add_word(out, size, "max");
}

void ft_weight_report_init(ft_weight_report *report, const ft_quantized_weight *q,
                           const ft_recipe *recipe)
{
    static const ft_recipe default_recipe;
    bool is_groupwise = ft_scheme_is_groupwise(q->scheme);
    snprintf(report->name, sizeof report->name, "%s", q->weights.name);
    report->scheme = q->scheme;
    describe_method(report->method, sizeof report->method, is_groupwise ? recipe : &default_recipe);
    if (ft_scheme_is_int8(q->scheme))
        report->sqnr = ft_weight_matrix_measure(&q->weights, q->scale);
    if (!is_groupwise)
        return;
    report->group = q->options.group;
    report->asymmetric = q->options.asymmetric;
}

void ft_weight_report_add_error(ft_weight_report *report, const ft_quantized_weight *q)
{
    const ft_groupwise_error *cost = &q->error;
    report->sqnr.per_channel = ft_sqnr_db(cost->signal, cost->noise);
    report->output_error =
        cost->out_signal > 0.0 ? sqrt(cost->out_noise / cost->out_signal) : (double) NAN;
}
