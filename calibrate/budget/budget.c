/*
 * budget.c - what the weights of a model may take.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/budget/budget.h"

#include <stdlib.h>
#include <string.h>

bool ft_budget_parse(ft_budget *out, const char *text)
{
    static const char prefix[] = "bits=";
    char *end;
    if (strncmp(text, prefix, strlen(prefix)) != 0)
        return false;
    text += strlen(prefix);
    out->bits = strtod(text, &end);
    return end != text && *end == '\0' && out->bits > 0.0 && out->bits <= 32.0;
}
