/*
 * budget.h - what the weights of a model may take.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_BUDGET_BUDGET_H
#define FT_CALIBRATE_BUDGET_BUDGET_H

#include <stdbool.h>

typedef struct ft_budget {
    double bits; /* mean stored bits of a weight, with scales and zero points; 0: no budget */
} ft_budget;

/* "bits=5.0"; false for other texts, and for numbers of bits that are not between 0 and 32. */
bool ft_budget_parse(ft_budget *out, const char *text);

#endif
