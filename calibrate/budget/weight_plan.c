/*
 * weight_plan.c - chooses the precision of each weight matrix by measured loss.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/budget/weight_plan.h"

#include "calibrate/budget/knapsack.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHOICES = FT_WEIGHT_CHOICES, PASSES = 3 }; /* of the plans that are always measured */

const ft_scheme ft_weight_choices[CHOICES] = { FT_SCHEME_W4A16, FT_SCHEME_W8A16, FT_SCHEME_FLOAT };

/* What the choice works with. */
typedef struct chooser {
    const ft_weight_problem *problem;
    ft_weight_plan *plan;
    uint64_t measured, total; /* passes, for the progress */
} chooser;

/* ---- Measuring ---------------------------------------------------------------------------- */

static ft_status measure(double *loss, chooser *c, ft_error *err)
{
    const ft_weight_problem *p = c->problem;
    FT_TRY(ft_weight_variants_measure(loss, p->variants, p->reference, err));
    *loss = isfinite(*loss) ? fmax(*loss, 0.0) : FT_WORST_LOSS;
    c->measured++;
    if (p->progress != NULL)
        p->progress(p->user, c->measured, c->measured > c->total ? c->measured : c->total);
    return FT_OK;
}

static ft_status set_unit(chooser *c, size_t unit, ft_scheme scheme, ft_error *err)
{
    const ft_weight_units *units = c->problem->units;
    for (size_t i = units->first[unit]; i < units->matrices; i++)
        if (units->of[i] == unit)
            FT_TRY(ft_weight_variants_set(c->problem->variants, i, scheme, err));
    return FT_OK;
}

/* The loss when this unit alone has 4 bits. */
static ft_status measure_unit(chooser *c, size_t unit, ft_error *err)
{
    FT_TRY(set_unit(c, unit, FT_SCHEME_W4A16, err));
    FT_TRY(measure(&c->plan->sensitivity[unit], c, err));
    return set_unit(c, unit, FT_SCHEME_FLOAT, err);
}

/* The loss of the model with the schemes of the plan. */
static ft_status measure_plan(double *loss, chooser *c, ft_error *err)
{
    for (size_t i = 0; i < c->plan->matrices; i++)
        FT_TRY(ft_weight_variants_set(c->problem->variants, i, c->plan->scheme[i], err));
    return measure(loss, c, err);
}

/* ---- Bytes -------------------------------------------------------------------------------- */

/* A head that stays float is no part of the budget. */
static bool is_counted(const ft_quantized_weight *matrix)
{
    return matrix->scheme != FT_SCHEME_FLOAT || strcmp(matrix->weights.name, FT_HEAD_WEIGHT) != 0;
}

static const ft_quantized_weight *matrix_at(const ft_weight_problem *p, size_t index)
{
    return &p->variants->options.quantized[index];
}

static uint64_t bytes_of(const ft_weight_problem *p, size_t index, ft_scheme scheme)
{
    return ft_scheme_bytes(p->variants->options.recipe, &matrix_at(p, index)->weights, scheme);
}

/* Of the matrices for which nothing is to choose. */
static uint64_t fixed_bytes(const ft_weight_problem *p)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->units->matrices; i++)
        if (p->units->of[i] == FT_NO_UNIT && is_counted(matrix_at(p, i)))
            bytes += bytes_of(p, i, matrix_at(p, i)->scheme);
    return bytes;
}

static uint64_t unit_bytes(const ft_weight_problem *p, size_t unit, ft_scheme scheme)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->units->matrices; i++)
        if (p->units->of[i] == unit)
            bytes += bytes_of(p, i, scheme);
    return bytes;
}

static double count_weights(const ft_weight_problem *p)
{
    double weights = 0.0;
    for (size_t i = 0; i < p->units->matrices; i++)
        if (is_counted(matrix_at(p, i)))
            weights +=
                (double) matrix_at(p, i)->weights.rows * (double) matrix_at(p, i)->weights.cols;
    return weights;
}

static double bits_of_bytes(const ft_weight_problem *p, uint64_t bytes)
{
    return 8.0 * (double) bytes / count_weights(p);
}

static uint64_t uniform_bytes(const ft_weight_problem *p, ft_scheme scheme)
{
    uint64_t bytes = fixed_bytes(p);
    for (size_t i = 0; i < p->units->units; i++)
        bytes += unit_bytes(p, i, scheme);
    return bytes;
}

/* The bytes that a budget of bits allows; a larger budget than all floats need means no more. */
static uint64_t budget_bytes(const ft_weight_problem *p, double bits)
{
    double most = bits_of_bytes(p, uniform_bytes(p, FT_SCHEME_FLOAT));
    return (uint64_t) (fmin(bits, most) * count_weights(p) / 8.0);
}

ft_status ft_weight_plan_check_bits(const ft_weight_problem *p, double bits, ft_error *err)
{
    uint64_t smallest = uniform_bytes(p, FT_SCHEME_W4A16);
    return budget_bytes(p, bits) >= smallest
               ? FT_OK
               : ft_fail(err, FT_EARG,
                         "%s: --budget bits=%g is too small: the smallest possible is %.4f bits a "
                         "weight, with all scales",
                         p->variants->options.path, bits, bits_of_bytes(p, smallest));
}

static double plan_bits(const chooser *c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->plan->matrices; i++)
        if (is_counted(matrix_at(c->problem, i)))
            bytes += bytes_of(c->problem, i, c->plan->scheme[i]);
    return bits_of_bytes(c->problem, bytes);
}

/* ---- Plans -------------------------------------------------------------------------------- */

/* All free matrices get the same scheme. */
static ft_status measure_uniform(ft_measured_plan *out, chooser *c, ft_scheme scheme, ft_error *err)
{
    const ft_weight_problem *p = c->problem;
    for (size_t i = 0; i < c->plan->matrices; i++)
        c->plan->scheme[i] = p->units->of[i] != FT_NO_UNIT ? scheme : matrix_at(p, i)->scheme;
    out->bits = plan_bits(c);
    return measure_plan(&out->loss, c, err);
}

/* What 8 bits lose of what 4 bits do. */
static double loss_ratio(const ft_weight_plan *plan)
{
    const double four = plan->uniform[0].loss, eight = plan->uniform[1].loss;
    return four > 0.0 ? fmin(1.0, eight / four) : 0.0;
}

/* With these costs [units, choices], or bytes if they are NULL. */
static void list_choices(ft_knapsack_choice *out, const chooser *c, const uint64_t *cost)
{
    for (size_t unit = 0; unit < c->plan->units; unit++) {
        const double loss[CHOICES] = { c->plan->sensitivity[unit],
                                       c->plan->sensitivity[unit] * loss_ratio(c->plan), 0.0 };
        for (size_t i = 0; i < CHOICES; i++)
            *out++ = (ft_knapsack_choice){
                cost != NULL ? *cost++ : unit_bytes(c->problem, unit, ft_weight_choices[i]), loss[i]
            };
    }
}

/* All in float but one would fit into as many bytes. */
static uint64_t most_bytes(const ft_weight_problem *p)
{
    return uniform_bytes(p, FT_SCHEME_FLOAT) - 1;
}

static bool is_quantized(const void *unused, size_t unit, uint8_t choice)
{
    (void) unused;
    (void) unit;
    return ft_weight_choices[choice] != FT_SCHEME_FLOAT;
}

/* Within a number of bytes, at least the smallest. */
static ft_status solve_bytes(uint8_t *solution, const ft_knapsack *knapsack, const chooser *c,
                             uint64_t bytes, ft_error *err)
{
    const uint64_t most = most_bytes(c->problem);
    return ft_knapsack_solve(solution, knapsack,
                             (bytes < most ? bytes : most) - fixed_bytes(c->problem), err);
}

/* Of a plan that was tried before, its loss is known. */
static bool knows_loss(ft_weight_plan *plan)
{
    for (size_t i = 0; i < plan->tried_plans; i++)
        if (plan->bits == plan->tried[i].bits) {
            plan->loss = plan->tried[i].loss;
            return true;
        }
    return false;
}

static ft_status find_loss(chooser *c, ft_error *err)
{
    ft_weight_plan *plan = c->plan;
    if (knows_loss(plan))
        return FT_OK;
    FT_TRY(measure_plan(&plan->loss, c, err));
    plan->tried[plan->tried_plans++] = (ft_measured_plan){ plan->bits, plan->loss };
    return FT_OK;
}

/* The plan that should lose least within a capacity of these costs, or of bytes. */
static ft_status choose_by(chooser *c, const uint64_t *cost, uint64_t capacity, ft_error *err)
{
    ft_weight_plan *plan = c->plan;
    ft_knapsack_choice *choice = ft_calloc(plan->units, CHOICES * sizeof *choice);
    uint8_t *solution = ft_calloc(plan->units, sizeof *solution);
    const ft_knapsack knapsack = { choice, plan->units, CHOICES };
    ft_status status = FT_OK;
    if (choice == NULL || solution == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for %zu units", plan->units);
    else {
        list_choices(choice, c, cost);
        status = cost != NULL ? ft_knapsack_solve_with_one(solution, &knapsack, capacity,
                                                           is_quantized, NULL, err)
                              : solve_bytes(solution, &knapsack, c, capacity, err);
    }
    for (size_t i = 0; i < plan->matrices && status == FT_OK; i++)
        if (c->problem->units->of[i] != FT_NO_UNIT)
            plan->scheme[i] = ft_weight_choices[solution[c->problem->units->of[i]]];
    free(choice);
    free(solution);
    FT_TRY(status);
    plan->bits = plan_bits(c);
    return find_loss(c, err);
}

static ft_status choose(chooser *c, uint64_t bytes, ft_error *err)
{
    return choose_by(c, NULL, bytes, err);
}

static ft_status measure_units(chooser *c, ft_error *err)
{
    ft_weight_plan *plan = c->plan;
    for (size_t i = 0; i < plan->units; i++)
        FT_TRY(measure_unit(c, i, err));
    FT_TRY(measure_uniform(&plan->uniform[1], c, FT_SCHEME_W8A16, err));
    FT_TRY(measure_uniform(&plan->uniform[0], c, FT_SCHEME_W4A16, err));
    plan->bits = plan->uniform[0].bits;
    plan->loss = plan->uniform[0].loss;
    return FT_OK;
}

ft_status ft_weight_plan_init(ft_weight_plan *plan, const ft_weight_problem *problem, ft_error *err)
{
    const ft_weight_units *units = problem->units;
    *plan = (ft_weight_plan){ .matrices = units->matrices, .units = units->units };
    chooser c = { .problem = problem, .plan = plan, .total = units->units + PASSES };
    plan->scheme = ft_calloc(plan->matrices, sizeof *plan->scheme);
    plan->sensitivity = ft_calloc(plan->units, sizeof *plan->sensitivity);
    if (plan->scheme == NULL || plan->sensitivity == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu matrices", plan->matrices);
    return measure_units(&c, err);
}

void ft_weight_plan_fini(ft_weight_plan *plan)
{
    free(plan->scheme);
    free(plan->sensitivity);
    *plan = (ft_weight_plan){ 0 };
}

ft_status ft_weight_plan_for_bits(ft_weight_plan *plan, const ft_weight_problem *problem,
                                  double bits, ft_error *err)
{
    chooser c = { .problem = problem,
                  .plan = plan,
                  .measured = plan->units + PASSES - 1,
                  .total = plan->units + PASSES };
    FT_TRY(ft_weight_plan_check_bits(problem, bits, err));
    return choose(&c, budget_bytes(problem, bits), err);
}

ft_status ft_weight_plan_for_cost(ft_weight_plan *plan, const ft_weight_problem *problem,
                                  const uint64_t *cost, uint64_t capacity, ft_error *err)
{
    chooser c = { .problem = problem,
                  .plan = plan,
                  .measured = plan->units + PASSES - 1,
                  .total = plan->units + PASSES };
    return choose_by(&c, cost, capacity, err);
}

/* ---- Targets ------------------------------------------------------------------------------ */

/*
 * Bisects between a number of bytes that is too small and one that may be enough.  Numbers between
 * two plans lead to one of them, which takes no forward pass.
 */
static ft_status bisect(chooser *c, uint64_t too_few, uint64_t enough, double loss, ft_error *err)
{
    while (enough - too_few > 1 && c->plan->tried_plans < FT_MAX_PLANS - 1) {
        uint64_t middle = too_few + (enough - too_few) / 2;
        FT_TRY(choose(c, middle, err));
        if (c->plan->loss <= loss)
            enough = middle;
        else
            too_few = middle;
    }
    return choose(c, enough, err);
}

ft_status ft_weight_plan_for_loss(ft_weight_plan *plan, const ft_weight_problem *problem,
                                  double loss, ft_error *err)
{
    chooser c = { .problem = problem,
                  .plan = plan,
                  .measured = plan->units + PASSES - 1,
                  .total = plan->units + PASSES + FT_MAX_PLANS };
    const uint64_t fewest = uniform_bytes(problem, FT_SCHEME_W4A16),
                   eight = uniform_bytes(problem, FT_SCHEME_W8A16);
    if (plan->uniform[0].loss <= loss)
        return FT_OK;
    if (eight >= most_bytes(problem))
        return bisect(&c, fewest, most_bytes(problem), loss, err);
    return plan->uniform[1].loss <= loss ? bisect(&c, fewest, eight, loss, err)
                                         : bisect(&c, eight, most_bytes(problem), loss, err);
}
