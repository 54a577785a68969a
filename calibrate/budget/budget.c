/*
 * budget.c - what the weights of a model, or its passes, may take.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/budget/budget.h"

#include "runtime/base/affix.h"

#include <stdlib.h>

/* A number above 0 and at most `most`. */
static bool parse_number(double *out, const char *text, double most)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out > 0.0 && *out <= most;
}

bool ft_budget_parse(ft_budget *out, const char *text)
{
    *out = (ft_budget){ .bits = 0.0 };
    if (ft_starts_with(text, "bits="))
        return parse_number(&out->bits, text + 5, 32.0);
    return ft_starts_with(text, "ms=") && parse_number(&out->ms, text + 3, 1e6);
}
