/*
 * mixed_plan.c - chooses the precision of each unit: the cheapest plan that meets a target.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/mixed_plan.h"

#include "calibrate/mixed/sensitivity.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A unit that could change, and what that gains for what it costs. */
typedef struct candidate {
    size_t unit;
    double gain, cost;
} candidate;

typedef struct chooser {
    const ft_mixed_problem *problem;
    ft_mixed_plan *plan;
    candidate *candidate; /* [units], in the order in which they change */
    size_t candidates;
    size_t measured; /* losses so far */
} chooser;

/* ---- Losses ------------------------------------------------------------------------------- */

static void report_progress(chooser *c)
{
    c->measured++;
    if (c->problem->progress != NULL)
        c->problem->progress(c->problem->user, c->measured, c->plan->units + 1);
}

static ft_status measure(double *loss, chooser *c, const ft_precision *precision, ft_error *err)
{
    ft_model *model;
    FT_TRY(ft_variant_open(&model, c->problem->variants, precision, err));
    ft_status status = ft_loss_measure(loss, c->problem->reference, model, err);
    ft_model_close(model);
    report_progress(c);
    return status;
}

/* ---- Order -------------------------------------------------------------------------------- */

/* By gain per cost; the first of equals in the order of the graph. */
static int compare_candidates(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    double by_ratio = y->gain * x->cost - x->gain * y->cost;
    if (by_ratio != 0.0)
        return by_ratio > 0.0 ? 1 : -1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Whether a unit can have a precision that it does not have yet. */
static bool can_change(const chooser *c, size_t unit, ft_precision precision)
{
    return c->plan->precision[unit] < precision &&
           ft_unit_can_have(&c->problem->variants->options.unit[unit], precision);
}

ft_status ft_mixed_problem_measure_alone(double *loss, const ft_mixed_problem *p,
                                         const ft_precision *precision, ft_error *err)
{
    const ft_sensitivity_options options = { .variants = p->variants,
                                             .reference = p->reference,
                                             .precision = precision,
                                             .progress = p->progress,
                                             .user = p->user };
    return ft_sensitivities_measure(loss, &options, err);
}

/*
 * What the units that can change lose alone as they are now.  Those in the scheme's precision have
 * been measured before.
 */
static ft_status measure_candidates(double *loss, chooser *c, ft_precision precision, ft_error *err)
{
    const ft_unit *unit = c->problem->variants->options.unit;
    size_t units = c->plan->units;
    ft_precision *now = ft_calloc(units, sizeof *now);
    if (now == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu precisions", units);
    for (size_t i = 0; i < units; i++) {
        bool measures = can_change(c, i, precision) && c->plan->precision[i] != unit[i].initial;
        now[i] = measures ? c->plan->precision[i] : ft_unit_finest(&unit[i]);
    }
    ft_status status = ft_mixed_problem_measure_alone(loss, c->problem, now, err);
    free(now);
    for (size_t i = 0; i < units; i++)
        if (c->plan->precision[i] == unit[i].initial)
            loss[i] = c->plan->sensitivity[i];
    return status;
}

static double change_cost(const chooser *c, size_t unit, ft_precision precision)
{
    const ft_mixed_problem *p = c->problem;
    return p->cost != NULL
               ? p->cost(p->cost_user, unit, c->plan->precision[unit], precision)
               : ft_unit_cost(&p->variants->options.unit[unit], p->variants->real, precision);
}

/*
 * Orders all units that can change.  What a unit loses alone stands for what its change gains: the
 * next precision loses little of it.
 */
static ft_status rank_changes(chooser *c, ft_precision precision, ft_error *err)
{
    size_t units = c->plan->units;
    double *loss = ft_calloc(units, sizeof *loss);
    if (loss == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the losses of %zu units", units);
    ft_status status = measure_candidates(loss, c, precision, err);
    c->candidates = 0;
    for (size_t i = 0; i < units; i++)
        if (can_change(c, i, precision))
            c->candidate[c->candidates++] = (candidate){
                .unit = i,
                .gain = loss[i],
                .cost = change_cost(c, i, precision),
            };
    free(loss);
    qsort(c->candidate, c->candidates, sizeof *c->candidate, compare_candidates);
    return status;
}

/* ---- Search ------------------------------------------------------------------------------- */

static void set_first(chooser *c, size_t count, ft_precision precision)
{
    for (size_t i = 0; i < count; i++)
        c->plan->precision[c->candidate[i].unit] = precision;
}

/* The loss when the first `count` candidates change; the plan stays. */
static ft_status measure_first(double *loss, chooser *c, size_t count, ft_precision precision,
                               ft_error *err)
{
    size_t units = c->plan->units;
    ft_precision *before = ft_calloc(units, sizeof *before);
    if (before == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu precisions", units);
    memcpy(before, c->plan->precision, units * sizeof *before);
    set_first(c, count, precision);
    ft_status status = measure(loss, c, c->plan->precision, err);
    memcpy(c->plan->precision, before, units * sizeof *before);
    free(before);
    return status;
}

/*
 * Changes as few of the candidates as meet the target, in their order: by bisection, since the loss
 * falls with their number; all of them if even that does not suffice.
 */
static ft_status change_enough(double *loss, chooser *c, ft_precision precision, ft_error *err)
{
    size_t too_few = 0, enough = c->candidates;
    FT_TRY(measure_first(loss, c, enough, precision, err));
    while (*loss <= c->problem->target && enough - too_few > 1) {
        double halfway;
        size_t middle = too_few + (enough - too_few) / 2;
        FT_TRY(measure_first(&halfway, c, middle, precision, err));
        if (halfway <= c->problem->target) {
            enough = middle;
            *loss = halfway;
        } else {
            too_few = middle;
        }
    }
    set_first(c, enough, precision);
    return FT_OK;
}

static bool is_int8(const chooser *c, size_t unit)
{
    return ft_unit_is_int8(&c->problem->variants->options.unit[unit], c->plan->precision[unit]);
}

/* If the matrices of all units would change, the last candidate stays. */
static void keep_one_int8(chooser *c)
{
    size_t left = 0, last = 0;
    for (size_t i = 0; i < c->plan->units; i++)
        left += is_int8(c, i);
    for (size_t i = 0; i < c->candidates; i++)
        if (is_int8(c, c->candidate[i].unit)) {
            left--;
            last = i;
        }
    if (left > 0)
        return;
    c->candidates--;
    memmove(&c->candidate[last], &c->candidate[last + 1],
            (c->candidates - last) * sizeof *c->candidate);
}

static ft_status lower_loss(chooser *c, ft_precision precision, ft_error *err)
{
    ft_mixed_plan *plan = c->plan;
    FT_TRY(rank_changes(c, precision, err));
    if (precision > FT_PRECISION_PER_TOKEN && c->candidates > 0)
        keep_one_int8(c);
    return c->candidates > 0 ? change_enough(&plan->loss, c, precision, err) : FT_OK;
}

/* Units that have scales per token from the start are smoothed by now. */
static ft_status measure_smoothed(chooser *c, ft_error *err)
{
    const ft_variants *variants = c->problem->variants;
    for (size_t i = 0; i < c->plan->units; i++)
        if (c->plan->precision[i] == FT_PRECISION_PER_TOKEN &&
            ft_variants_smoothing(variants, &variants->options.unit[i]) != NULL)
            return measure(&c->plan->loss, c, c->plan->precision, err);
    return FT_OK;
}

ft_status ft_mixed_plan_measure_units(ft_mixed_plan *plan, const ft_mixed_problem *problem,
                                      ft_error *err)
{
    return ft_mixed_problem_measure_alone(plan->sensitivity, problem, plan->precision, err);
}

ft_status ft_mixed_plan_lower_loss(ft_mixed_plan *plan, const ft_mixed_problem *problem,
                                   ft_error *err)
{
    chooser c = { .problem = problem, .plan = plan, .measured = 1 };
    c.candidate = ft_calloc(plan->units, sizeof *c.candidate);
    if (c.candidate == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu units", plan->units);
    ft_status status = measure_smoothed(&c, err);
    if (status == FT_OK && plan->loss > problem->target)
        status = ft_mixed_plan_measure_units(plan, problem, err);
    for (ft_precision p = FT_PRECISION_PER_TOKEN; p <= problem->finest; p++)
        if (status == FT_OK && plan->loss > problem->target)
            status = lower_loss(&c, p, err);
    plan->meets_target = plan->loss <= problem->target;
    free(c.candidate);
    return status;
}

ft_status ft_mixed_plan_init(ft_mixed_plan *plan, const ft_mixed_problem *problem, ft_error *err)
{
    size_t units = problem->variants->options.units;
    *plan = (ft_mixed_plan){ .units = units };
    chooser c = { .problem = problem, .plan = plan };
    plan->precision = ft_calloc(units, sizeof *plan->precision);
    plan->sensitivity = ft_calloc(units, sizeof *plan->sensitivity);
    if (plan->precision == NULL || plan->sensitivity == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu units", units);
    for (size_t i = 0; i < units; i++) {
        plan->precision[i] = problem->variants->options.unit[i].initial;
        plan->sensitivity[i] = (double) NAN;
    }
    FT_TRY(measure(&plan->initial_loss, &c, plan->precision, err));
    plan->loss = plan->initial_loss;
    plan->meets_target = plan->loss <= problem->target;
    return FT_OK;
}

void ft_mixed_plan_fini(ft_mixed_plan *plan)
{
    free(plan->precision);
    free(plan->sensitivity);
    *plan = (ft_mixed_plan){ .units = 0 };
}

size_t ft_mixed_plan_count(const ft_mixed_plan *plan, ft_precision precision)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->units; i++)
        count += plan->precision[i] == precision;
    return count;
}
