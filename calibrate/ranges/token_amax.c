/*
 * token_amax.c - the largest magnitude of each token of a point: are there massive tokens?
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/token_amax.h"

#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Collecting --------------------------------------------------------------------------- */

static ft_status reserve(ft_token_amax *t, size_t rows, ft_error *err)
{
    size_t capacity = t->capacity > 0 ? t->capacity : 256;
    while (capacity - t->count < rows)
        capacity *= 2;
    if (capacity == t->capacity)
        return FT_OK;
    float *amax = realloc(t->amax, capacity * sizeof *amax);
    t->amax = amax != NULL ? amax : t->amax;
    bool *is_first = realloc(t->is_first, capacity * sizeof *is_first);
    t->is_first = is_first != NULL ? is_first : t->is_first;
    if (amax == NULL || is_first == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", t->count + rows);
    t->capacity = capacity;
    return FT_OK;
}

ft_status ft_token_amax_add(ft_token_amax *t, const char *name, const float *x, size_t rows,
                            size_t cols, ft_error *err)
{
    FT_TRY(reserve(t, rows, err));
    for (size_t row = 0; row < rows; row++) {
        float amax = 0.0f;
        for (size_t i = 0; i < cols; i++) {
            float value = x[row * cols + i];
            if (!isfinite(value))
                return ft_fail(err, FT_EFORMAT, "%s: token %zu, column %zu is not finite", name,
                               row, i);
            amax = fmaxf(amax, fabsf(value));
        }
        t->amax[t->count] = amax;
        t->is_first[t->count++] = row < FT_FIRST_TOKENS;
    }
    return FT_OK;
}

void ft_token_amax_fini(ft_token_amax *t)
{
    free(t->amax);
    free(t->is_first);
    *t = (ft_token_amax){ .count = 0 };
}

/* ---- Summary ------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    float x = *(const float *) a, y = *(const float *) b;
    return (x > y) - (x < y);
}

static void count_massive(ft_token_summary *out, const ft_token_amax *t)
{
    for (size_t i = 0; i < t->count; i++) {
        bool is_massive = (double) t->amax[i] > FT_MASSIVE_RATIO * out->median;
        out->massive += is_massive;
        out->massive_first += is_massive && t->is_first[i];
    }
}

ft_status ft_token_amax_summarize(ft_token_summary *out, const ft_token_amax *t, ft_error *err)
{
    *out = (ft_token_summary){ .ratio = 1.0 };
    if (t->count == 0)
        return FT_OK;
    float *sorted = ft_calloc(t->count, sizeof *sorted);
    if (sorted == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", t->count);
    memcpy(sorted, t->amax, t->count * sizeof *sorted);
    qsort(sorted, t->count, sizeof *sorted, compare);
    out->median = (double) sorted[(t->count - 1) / 2];
    out->most = (double) sorted[t->count - 1];
    free(sorted);
    if (out->most > 0.0)
        out->ratio = out->median > 0.0 ? out->most / out->median : (double) INFINITY;
    count_massive(out, t);
    return FT_OK;
}
