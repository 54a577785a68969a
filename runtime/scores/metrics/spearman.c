/*
 * spearman.c - Pearson's correlation of ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/metrics/spearman.h"

#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = **(const double *const *) a, y = **(const double *const *) b;
    return x < y ? -1 : x > y;
}

/* Twice the ranks, which are integers, minus their mean. */
static bool rank(const double *value, size_t count, double *out)
{
    const double **order = ft_calloc(count, sizeof *order);
    if (order == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        order[i] = &value[i];
    qsort(order, count, sizeof *order, by_value);
    for (size_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && *order[end] == *order[first])
            end++;
        for (size_t i = first; i < end; i++)
            out[order[i] - value] = (double) (first + end) - (double) count;
    }
    free(order);
    return true;
}

static double dot(const double *x, const double *y, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

bool ft_spearman(const double *x, const double *y, size_t count, double *correlation)
{
    double *a = ft_calloc(count, sizeof *a), *b = ft_calloc(count, sizeof *b);
    bool ok = a != NULL && b != NULL && rank(x, count, a) && rank(y, count, b);
    if (ok)
        *correlation = dot(a, b, count) / sqrt(dot(a, a, count) * dot(b, b, count));
    free(a);
    free(b);
    return ok;
}
