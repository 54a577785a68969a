/*
 * weight_plan_report.c - what a budget or a target made of the weights, in the report.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/report/weight_plan_report.h"

#include "calibrate/mixed/accuracy_target.h"
#include "runtime/cli/html/page.h"

#include <math.h>

/* Losses as texts. */
typedef struct losses {
    char plan[FT_TARGET_TEXT], uniform[FT_TARGET_TEXT], verified[FT_TARGET_TEXT];
} losses;

static losses describe(const ft_weight_plan_report *r)
{
    losses out;
    ft_accuracy_target_describe_exactly(out.plan, r->kind, r->loss);
    ft_accuracy_target_describe_exactly(out.uniform, r->kind, r->uniform_loss);
    ft_accuracy_target_describe_exactly(out.verified, r->kind, r->verified_loss);
    return out;
}

static size_t count(const ft_weight_plan_report *r)
{
    return r->four_bits + r->eight_bits + r->in_float;
}

void ft_weight_plan_report_print(const ft_weight_plan_report *r, FILE *file)
{
    if (r->samples == 0)
        return;
    losses text = describe(r);
    fprintf(
        file,
        "\nweight precision: of %zu matrices %zu have 4 bits, %zu have 8 and %zu are float, %.3f "
        "bits a weight:\n%s instead of %s with 4 bits for all (%.3f bits a weight) on %zu samples",
        count(r), r->four_bits, r->eight_bits, r->in_float, r->bits, text.plan, text.uniform,
        r->uniform_bits, r->samples);
    if (r->ms > 0.0)
        fprintf(file, "; an estimated %.4f ms of a budget of %g", r->ms, r->budget_ms);
    if (r->verified > 0)
        fprintf(file, "; the artifact %s on %zu %s samples", text.verified, r->verified,
                r->held_out ? "held-out" : "calibration");
    fputc('\n', file);
}

void ft_weight_plan_report_html(const ft_weight_plan_report *r, FILE *file)
{
    if (r->samples == 0)
        return;
    losses text = describe(r);
    fputs("<p>", file);
    ft_html_printf(file,
                   "Of %zu matrices %zu have 4 bits, %zu have 8 and %zu are float: %.3f bits a "
                   "weight, %s instead of %s with 4 bits for all on %zu samples.",
                   count(r), r->four_bits, r->eight_bits, r->in_float, r->bits, text.plan,
                   text.uniform, r->samples);
    if (r->ms > 0.0)
        ft_html_printf(file, " A pass takes an estimated %.4f ms of a budget of %g.", r->ms,
                       r->budget_ms);
    if (r->verified > 0)
        ft_html_printf(file, " The artifact reaches %s on %zu %s samples.", text.verified,
                       r->verified, r->held_out ? "held-out" : "calibration");
    fputs("</p>\n", file);
}

/* JSON has neither infinity nor NaN. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *ft_weight_plan_report_json(const ft_weight_plan_report *r)
{
    if (r->samples == 0)
        return json_null();
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}",
                     "loss_name", ft_loss_name(r->kind), "samples", (json_int_t) r->samples,
                     "passes", (json_int_t) r->passes, "w4a16", (json_int_t) r->four_bits, "w8a16",
                     (json_int_t) r->eight_bits, "float", (json_int_t) r->in_float, "budget_bits",
                     r->budget > 0.0 ? number(r->budget) : json_null(), "budget_ms",
                     r->budget_ms > 0.0 ? number(r->budget_ms) : json_null(), "estimated_ms",
                     r->ms > 0.0 ? number(r->ms) : json_null(), "bits_per_weight", number(r->bits),
                     "loss", number(r->loss), "uniform_bits_per_weight", number(r->uniform_bits),
                     "uniform_loss", number(r->uniform_loss), "verified_samples",
                     (json_int_t) r->verified, "verified_loss", number(r->verified_loss));
}
