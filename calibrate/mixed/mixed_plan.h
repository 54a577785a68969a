/*
 * mixed_plan.h - chooses the precision of each unit: the cheapest plan that meets a target.
 *
 * The plan of the scheme is measured first, in which units have static scales or scales per token.
 * If it misses the target, units get the next precision, in the order of what each loses alone
 * (sensitivity.h) per cost, as many as the target needs.  If all of them do not suffice, the next
 * precision follows in the same way: per token, per group, float.  The matrices of one unit stay
 * int8.  Every figure comes from the kernels that the artifact will use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIXED_MIXED_PLAN_H
#define FT_CALIBRATE_MIXED_MIXED_PLAN_H

#include "calibrate/mixed/loss.h"
#include "calibrate/mixed/variant.h"

typedef struct ft_mixed_problem {
    ft_variants *variants;
    const ft_reference *reference;
    double target;                 /* the loss that the plan should not exceed */
    ft_precision finest;           /* that units may get */

    /*
     * What a change of unit number `unit` adds to the time of a plan, above 0.  NULL:
     * ft_unit_cost(), the same on every machine.
     */
    double (*cost)(const void *cost_user, size_t unit, ft_precision from, ft_precision to);
    const void *cost_user;

    ft_progress_callback progress; /* may be NULL; the total is an estimate */
    void *user;
} ft_mixed_problem;

typedef struct ft_mixed_plan {
    ft_precision *precision; /* [units] */
    size_t units;

    /* [units]: what each loses alone as in the scheme's plan; NaN: not measured. */
    double *sensitivity;
    double initial_loss, loss; /* of the scheme's and of the chosen plan */
    bool meets_target;
} ft_mixed_plan;

/*
 * What each unit loses alone in a precision (sensitivity.h), [units] each.  FT_ENOMEM; errors of
 * opening and running models.
 */
FT_MUST_USE ft_status ft_mixed_problem_measure_alone(double *loss, const ft_mixed_problem *problem,
                                                     const ft_precision *precision, ft_error *err);

/*
 * The plan of the scheme, whose loss is measured.  fini also accepts a zeroed or failed one.
 * FT_ENOMEM; errors of opening and running models.
 */
FT_MUST_USE ft_status ft_mixed_plan_init(ft_mixed_plan *plan, const ft_mixed_problem *problem,
                                         ft_error *err);
void ft_mixed_plan_fini(ft_mixed_plan *plan);

/* Measures the sensitivities of the scheme's plan; same errors. */
FT_MUST_USE ft_status ft_mixed_plan_measure_units(ft_mixed_plan *plan,
                                                  const ft_mixed_problem *problem, ft_error *err);

/* Changes units until the plan meets the target, or until nothing is left to change; same errors.
 */
FT_MUST_USE ft_status ft_mixed_plan_lower_loss(ft_mixed_plan *plan, const ft_mixed_problem *problem,
                                               ft_error *err);

/* How many units have this precision. */
size_t ft_mixed_plan_count(const ft_mixed_plan *plan, ft_precision precision);

#endif
