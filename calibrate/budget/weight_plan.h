/*
 * weight_plan.h - chooses the precision of each weight matrix by measured loss.
 *
 * First each unit of matrices (weight_units.h) alone is quantized to 4 bits, all others staying
 * float: what the model loses then is the sensitivity of the unit.  The loss of 8 bits is too small
 * to be measured for each unit.  It is measured for all at once and shared out in proportion to the
 * sensitivities.  Losses of units nearly add up, so that a knapsack (knapsack.h) over them and the
 * bytes of each choice gives the plan, whose loss is then measured.
 *
 * Forward passes of each sample: one in float, one for each unit, of which there are about
 * FT_MAX_WEIGHT_UNITS at most, and one for each plan: all in 4 bits, all in 8, and the chosen one,
 * or on the way to a target at most FT_MAX_PLANS.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_BUDGET_WEIGHT_PLAN_H
#define FT_CALIBRATE_BUDGET_WEIGHT_PLAN_H

#include "calibrate/budget/weight_units.h"
#include "calibrate/budget/weight_variants.h"

enum { FT_MAX_PLANS = 10 };

/* What a free matrix can have: w4a16, w8a16, float. */
enum { FT_WEIGHT_CHOICES = 3 };
extern const ft_scheme ft_weight_choices[FT_WEIGHT_CHOICES];

typedef struct ft_weight_problem {
    ft_weight_variants *variants;
    const ft_weight_units *units;
    const ft_reference *reference;
    ft_progress_callback progress; /* may be NULL; the total is an estimate */
    void *user;
} ft_weight_problem;

/* A plan whose loss was measured. */
typedef struct ft_measured_plan {
    double bits, loss;
} ft_measured_plan;

typedef struct ft_weight_plan {
    ft_scheme *scheme;   /* [matrices]: of the chosen plan; of others as the recipe says */
    double *sensitivity; /* [units]: the loss of the unit in 4 bits */
    size_t matrices, units;
    double bits, loss;           /* of the chosen plan; bits: mean per weight, with scales */
    ft_measured_plan uniform[2]; /* all free matrices in 4 and in 8 bits */
    ft_measured_plan tried[FT_MAX_PLANS]; /* and between them, in the order of measurement */
    size_t tried_plans;
} ft_weight_plan;

/*
 * FT_EARG if even 4 bits for all free matrices take more than `bits` bits a weight, with the
 * smallest possible number.
 */
FT_MUST_USE ft_status ft_weight_plan_check_bits(const ft_weight_problem *problem, double bits,
                                                ft_error *err);

/*
 * Measures the units, and chooses 4 bits for all.  fini also accepts a zeroed or failed one.
 * FT_ENOMEM; errors of quantizing and running models.
 */
FT_MUST_USE ft_status ft_weight_plan_init(ft_weight_plan *plan, const ft_weight_problem *problem,
                                          ft_error *err);
void ft_weight_plan_fini(ft_weight_plan *plan);

/*
 * Chooses the plan with the least loss of those with at most `bits` bits a weight.  At least one
 * matrix stays quantized.  The errors of ft_weight_plan_check_bits() and ft_weight_plan_init().
 */
FT_MUST_USE ft_status ft_weight_plan_for_bits(ft_weight_plan *plan,
                                              const ft_weight_problem *problem, double bits,
                                              ft_error *err);

/*
 * Chooses the plan with the least loss of those whose units cost at most `capacity`; the cost of a
 * unit in each of the choices is cost[unit * FT_WEIGHT_CHOICES + choice].  At least one matrix
 * stays quantized.  FT_EARG if the capacity has no such plan; the errors of ft_weight_plan_init().
 */
FT_MUST_USE ft_status ft_weight_plan_for_cost(ft_weight_plan *plan,
                                              const ft_weight_problem *problem,
                                              const uint64_t *cost, uint64_t capacity,
                                              ft_error *err);

/*
 * Chooses the plan with the fewest bits whose measured loss is at most `loss`, found by
 * bisection of the bytes; the one with most bits if none suffices.  Same errors.
 */
FT_MUST_USE ft_status ft_weight_plan_for_loss(ft_weight_plan *plan,
                                              const ft_weight_problem *problem, double loss,
                                              ft_error *err);

#endif
