/*
 * time_plan.h - chooses the precision of each unit of an int8 plan: the least loss within a budget
 * of time.
 *
 * The loss of a choice is what the output loses when the unit alone has that precision
 * (mixed/sensitivity.h), for each precision that the recipe allows.  Such losses nearly add up.  A
 * knapsack over them and the measured times chooses the plan, which is then measured.  The plan of
 * the scheme and the one with scales per token are measured, too, and the best of those within the
 * budget is taken.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_TIMES_TIME_PLAN_H
#define FT_CALIBRATE_TIMES_TIME_PLAN_H

#include "calibrate/mixed/mixed_plan.h"
#include "calibrate/times/unit_times.h"

/*
 * FT_EARG if a budget of milliseconds is below the time of the fastest plan, which the message
 * names; `model` and `file` are for the message.
 */
FT_MUST_USE ft_status ft_time_budget_check(int64_t least_ns, double ms, const char *model,
                                           const char *file, ft_error *err);

/*
 * Chooses the least loss of plans within `capacity` nanoseconds, and at least one int8 matrix, from
 * the loss of each choice [units].  Of a unit only choices that ft_unit_can_have() count.  FT_EARG:
 * the capacity is too small; FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_time_plan_solve(ft_precision *precision, const ft_unit_times *times,
                                         const ft_unit *unit, double (*loss)[FT_PRECISIONS],
                                         int64_t capacity, ft_error *err);

/*
 * Gives a plan of ft_mixed_plan_init() the precisions that lose least within `ms` milliseconds; the
 * target of the problem has no effect.  Errors of ft_time_plan_solve() and of opening and running
 * models.
 */
FT_MUST_USE ft_status ft_time_plan_choose(ft_mixed_plan *plan, const ft_mixed_problem *problem,
                                          const ft_unit_times *times, double ms, ft_error *err);

#endif
