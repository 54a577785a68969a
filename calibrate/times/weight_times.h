/*
 * weight_times.h - what the units of group-wise matrices take in each precision on the target
 * machine: the linears that read them, timed in the schemes w4a16, w8a16 and float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_TIMES_WEIGHT_TIMES_H
#define FT_CALIBRATE_TIMES_WEIGHT_TIMES_H

#include "calibrate/budget/weight_plan.h"
#include "calibrate/times/times_file.h"

typedef struct ft_weight_times {
    uint64_t
        *unit; /* [units, FT_WEIGHT_CHOICES]: nanoseconds, as ft_weight_plan_for_cost() reads */
    size_t units;
    int64_t rest; /* of what is in no unit */
} ft_weight_times;

/*
 * Looks all matrices of the units up; others have the scheme of `quantized` [units->matrices].
 * fini also accepts a zeroed or failed one.  FT_EARG: the file has no time for one of them;
 * FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_weight_times_init(ft_weight_times *out, const ft_measured_times *times,
                                           const ft_model *model, const ft_weight_units *units,
                                           const ft_quantized_weight *quantized, ft_error *err);
void ft_weight_times_fini(ft_weight_times *out);

/* The time of a plan with a scheme for each matrix, and of the fastest. */
int64_t ft_weight_times_of_plan(const ft_weight_times *times, const ft_weight_units *units,
                                const ft_scheme *scheme);
int64_t ft_weight_times_least(const ft_weight_times *times);

#endif
