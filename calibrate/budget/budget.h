/*
 * budget.h - what the weights of a model, or its passes, may take.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_BUDGET_BUDGET_H
#define FT_CALIBRATE_BUDGET_BUDGET_H

#include <stdbool.h>

typedef struct ft_budget {
    double bits; /* mean stored bits of a weight, with scales and zero points; 0: no budget */
    double ms;   /* milliseconds of a pass on the target machine; 0: no budget */
} ft_budget;

/*
 * "bits=5.0" or "ms=2.5", which replaces an earlier budget; false for other texts, for bits that
 * are not between 0 and 32, and for milliseconds that are not between 0 and a million.
 */
bool ft_budget_parse(ft_budget *out, const char *text);

#endif
