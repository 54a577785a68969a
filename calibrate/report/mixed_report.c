/*
 * mixed_report.c - what a target or a budget of time made of an int8 plan, in the report.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/report/mixed_report.h"

#include "calibrate/mixed/accuracy_target.h"
#include "runtime/cli/html/page.h"

#include <math.h>

/* ---- Terminal ------------------------------------------------------------------------------ */

static void print_for_time(const ft_mixed_report *m, FILE *file)
{
    char found[FT_TARGET_TEXT];
    ft_accuracy_target_describe_exactly(found, m->kind, m->loss);
    fprintf(file,
            "\nmixed precision: of %zu activations %zu have scales per token, %zu per group, %zu "
            "are float: an estimated %.4f ms of a budget of %g, %s on %zu samples\n",
            m->units, m->per_token, m->per_group, m->in_float, m->ms, m->budget_ms, found,
            m->samples);
}

static void print_for_target(const ft_mixed_report *m, ft_scheme scheme, FILE *file)
{
    char found[FT_TARGET_TEXT], initial[FT_TARGET_TEXT], target[FT_TARGET_TEXT];
    ft_accuracy_target_describe(found, m->kind, m->loss);
    ft_accuracy_target_describe(initial, m->kind, m->initial_loss);
    ft_accuracy_target_describe(target, m->kind, m->target);
    if (m->loss == m->initial_loss)
        fprintf(file, "\nmixed precision: the scales of %s reach %s on %zu samples; target %s\n",
                ft_scheme_name(scheme), found, m->samples, target);
    else
        fprintf(file,
                "\nmixed precision: of %zu activations %zu have scales per token, %zu per group, "
                "%zu are "
                "float,\nfor %.1f %% more operations: %s instead of %s on %zu samples; target %s\n",
                m->units, m->per_token, m->per_group, m->in_float, 100.0 * m->cost, found, initial,
                m->samples, target);
    if (m->ms > 0.0)
        fprintf(file, "mixed precision: an estimated %.4f ms with the measured times\n", m->ms);
}

void ft_mixed_report_print(const ft_mixed_report *m, ft_scheme scheme, FILE *file)
{
    if (m->samples == 0)
        return;
    if (m->budget_ms > 0.0)
        print_for_time(m, file);
    else
        print_for_target(m, scheme, file);
}

/* ---- Page ---------------------------------------------------------------------------------- */

void ft_mixed_report_html(const ft_mixed_report *m, FILE *file)
{
    char found[FT_TARGET_TEXT];
    if (m->samples == 0 || m->ms <= 0.0)
        return;
    ft_accuracy_target_describe_exactly(found, m->kind, m->loss);
    fputs("<p>", file);
    ft_html_printf(file,
                   "Of %zu activations %zu have scales per token, %zu per group and %zu are float: "
                   "a pass takes an estimated %.4f ms",
                   m->units, m->per_token, m->per_group, m->in_float, m->ms);
    if (m->budget_ms > 0.0)
        ft_html_printf(file, " of a budget of %g", m->budget_ms);
    ft_html_printf(file, ", and the model reaches %s on %zu samples.", found, m->samples);
    fputs("</p>\n", file);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* JSON has neither infinity nor NaN. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* 0 stands for none. */
static json_t *milliseconds(double value)
{
    return value > 0.0 ? number(value) : json_null();
}

json_t *ft_mixed_report_json(const ft_mixed_report *m)
{
    if (m->samples == 0)
        return json_null();
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}",
                     "loss_name", ft_loss_name(m->kind), "samples", (json_int_t) m->samples,
                     "activations", (json_int_t) m->units, "per_token", (json_int_t) m->per_token,
                     "per_group", (json_int_t) m->per_group, "float", (json_int_t) m->in_float,
                     "target", m->budget_ms > 0.0 ? json_null() : number(m->target), "initial_loss",
                     number(m->initial_loss), "loss", number(m->loss), "added_operations",
                     number(m->cost), "budget_ms", milliseconds(m->budget_ms), "estimated_ms",
                     milliseconds(m->ms), "verified_samples", (json_int_t) m->verified,
                     "verified_loss", number(m->verified_loss));
}
