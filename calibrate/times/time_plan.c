/*
 * time_plan.c - chooses the precision of each unit of an int8 plan: the least loss within a budget
 * of time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/times/time_plan.h"

#include "calibrate/budget/knapsack.h"
#include "calibrate/times/op_times.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

ft_status ft_time_budget_check(int64_t least_ns, double ms, const char *model, const char *file,
                               ft_error *err)
{
    return ft_ns_of_ms(ms) >= least_ns
               ? FT_OK
               : ft_fail(err, FT_EARG,
                         "%s: --budget ms=%g is too small: the fastest plan takes %.4f ms with the "
                         "times of %s",
                         model, ms, ft_ms_of_ns(least_ns), file);
}

/* ---- Solving ------------------------------------------------------------------------------ */

/* A unit with few precisions has its initial one several times: choices need the same number. */
static ft_precision precision_of(const ft_unit *unit, size_t choice)
{
    return ft_unit_can_have(unit, (ft_precision) choice) ? (ft_precision) choice : unit->initial;
}

static void list_choices(ft_knapsack_choice *out, const ft_unit_times *times, const ft_unit *unit,
                         double (*loss)[FT_PRECISIONS])
{
    for (size_t i = 0; i < times->units; i++)
        for (size_t choice = 0; choice < FT_PRECISIONS; choice++) {
            const ft_precision p = precision_of(&unit[i], choice);
            *out++ = (ft_knapsack_choice){ (uint64_t) times->unit[i][p], loss[i][p] };
        }
}

static bool has_int8_matrix(const void *unit, size_t item, uint8_t choice)
{
    const ft_unit *u = (const ft_unit *) unit + item;
    return ft_unit_is_int8(u, precision_of(u, choice));
}

ft_status ft_time_plan_solve(ft_precision *precision, const ft_unit_times *times,
                             const ft_unit *unit, double (*loss)[FT_PRECISIONS], int64_t capacity,
                             ft_error *err)
{
    const int64_t left = capacity - times->rest;
    ft_knapsack_choice *choice = ft_calloc(times->units + 1, FT_PRECISIONS * sizeof *choice);
    uint8_t *solution = ft_calloc(times->units + 1, sizeof *solution);
    const ft_knapsack knapsack = { choice, times->units, FT_PRECISIONS };
    ft_status status = FT_OK;
    if (choice == NULL || solution == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for %zu units", times->units);
    else {
        list_choices(choice, times, unit, loss);
        status = ft_knapsack_solve_with_one(solution, &knapsack, left > 0 ? (uint64_t) left : 0,
                                            has_int8_matrix, unit, err);
    }
    if (status == FT_EARG)
        status = ft_fail(err, FT_EARG,
                         "no plan with an int8 matrix takes at most %.4f ms with the measured "
                         "times",
                         ft_ms_of_ns(capacity));
    for (size_t i = 0; i < times->units && status == FT_OK; i++)
        precision[i] = precision_of(&unit[i], solution[i]);
    free(choice);
    free(solution);
    return status;
}

/* ---- Measuring ---------------------------------------------------------------------------- */

/* What the choice works with. */
typedef struct chooser {
    const ft_mixed_problem *problem;
    const ft_unit *unit; /* [plan->units] */
    const ft_unit_times *times;
    int64_t capacity;
    ft_mixed_plan *plan;
    ft_precision *precision;       /* [plan->units]: of the plan that is measured next */
    double (*loss)[FT_PRECISIONS]; /* [plan->units]: that a choice adds */
    bool has_plan;                 /* *plan is a measured plan within the budget */
} chooser;

static bool is_measured(const ft_unit *unit, ft_precision precision)
{
    return ft_unit_can_have(unit, precision) && precision < ft_unit_finest(unit);
}

/* What each unit that can have a precision loses alone in it. */
static ft_status measure_precision(chooser *c, double *alone, ft_precision precision, ft_error *err)
{
    for (size_t i = 0; i < c->plan->units; i++)
        c->precision[i] =
            is_measured(&c->unit[i], precision) ? precision : ft_unit_finest(&c->unit[i]);
    FT_TRY(ft_mixed_problem_measure_alone(alone, c->problem, c->precision, err));
    for (size_t i = 0; i < c->plan->units; i++)
        if (c->precision[i] == precision)
            c->loss[i][precision] = alone[i];
    return FT_OK;
}

static ft_status find_losses(chooser *c, ft_error *err)
{
    double *alone = ft_calloc(c->plan->units + 1, sizeof *alone);
    ft_status status =
        alone != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for %zu losses", c->plan->units);
    for (ft_precision p = FT_PRECISION_STATIC; p < FT_PRECISION_FLOAT && status == FT_OK; p++)
        status = measure_precision(c, alone, p, err);
    free(alone);
    return status;
}

/* Of the scheme's precision. */
static void report_sensitivities(chooser *c)
{
    for (size_t i = 0; i < c->plan->units; i++)
        c->plan->sensitivity[i] = c->loss[i][c->unit[i].initial];
}

/* ---- Choosing ----------------------------------------------------------------------------- */

/* Takes c->precision as the plan if it is within the budget, and loses less than the last one. */
static ft_status consider(chooser *c, ft_error *err)
{
    double loss;
    ft_model *model;
    if (ft_unit_times_of_plan(c->times, c->precision) > c->capacity)
        return FT_OK;
    FT_TRY(ft_variant_open(&model, c->problem->variants, c->precision, err));
    ft_status status = ft_loss_measure(&loss, c->problem->reference, model, err);
    ft_model_close(model);
    FT_TRY(status);
    if (c->has_plan && !(loss < c->plan->loss))
        return FT_OK;
    memcpy(c->plan->precision, c->precision, c->plan->units * sizeof *c->precision);
    c->plan->loss = loss;
    c->has_plan = true;
    return FT_OK;
}

static ft_status choose(chooser *c, ft_error *err)
{
    FT_TRY(find_losses(c, err));
    report_sensitivities(c);
    FT_TRY(ft_time_plan_solve(c->precision, c->times, c->unit, c->loss, c->capacity, err));
    FT_TRY(consider(c, err));
    for (size_t i = 0; i < c->plan->units; i++)
        c->precision[i] = FT_PRECISION_PER_TOKEN;
    FT_TRY(consider(c, err));
    for (size_t i = 0; i < c->plan->units; i++)
        c->precision[i] = c->unit[i].initial;
    return consider(c, err);
}

ft_status ft_time_plan_choose(ft_mixed_plan *plan, const ft_mixed_problem *problem,
                              const ft_unit_times *times, double ms, ft_error *err)
{
    chooser c = { .problem = problem,
                  .unit = problem->variants->options.unit,
                  .times = times,
                  .capacity = ft_ns_of_ms(ms),
                  .plan = plan };
    c.precision = ft_calloc(plan->units + 1, sizeof *c.precision);
    c.loss = ft_calloc(plan->units + 1, sizeof *c.loss);
    ft_status status = c.precision != NULL && c.loss != NULL
                           ? choose(&c, err)
                           : ft_fail(err, FT_ENOMEM, "no memory for %zu units", plan->units);
    free(c.precision);
    free(c.loss);
    return status;
}
