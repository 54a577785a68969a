/*
 * weight_units.c - the matrices of a model in units that get the same precision.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/budget/weight_units.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What the grouping works with. */
typedef struct grouping {
    ft_weight_units *units;
    const ft_quantized_weight *quantized;
    bool *is_free; /* [matrices] */
    size_t free;   /* how many of them */
} grouping;

/* Whether two names are equal but for their numbers: "layer.3.ffn.up.weight". */
static bool have_same_place(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        if (isdigit((unsigned char) *a) && isdigit((unsigned char) *b)) {
            a += strspn(a, "0123456789");
            b += strspn(b, "0123456789");
        } else if (*a++ != *b++)
            return false;
    }
    return *a == *b;
}

static bool shares_place(const grouping *g, size_t a, size_t b)
{
    return g->is_free[b] &&
           have_same_place(g->quantized[a].weights.name, g->quantized[b].weights.name);
}

/* The matrices with the same place as this one, and how many of them come before it. */
static size_t count_places(const grouping *g, size_t matrix, size_t *before)
{
    size_t count = 0;
    *before = 0;
    for (size_t i = 0; i < g->units->matrices; i++)
        if (shares_place(g, matrix, i)) {
            *before += i < matrix;
            count++;
        }
    return count;
}

/* The run of neighbouring layers, of those with this place, that a matrix belongs to. */
static size_t run_of(const grouping *g, size_t matrix)
{
    size_t before, count = count_places(g, matrix, &before);
    size_t runs = g->free <= FT_MAX_WEIGHT_UNITS ? count : FT_MAX_WEIGHT_UNITS * count / g->free;
    return before * (runs > 0 ? runs : 1) / count;
}

/* The unit of an earlier matrix in the same run, or a new one. */
static void assign(const grouping *g, size_t matrix)
{
    ft_weight_units *units = g->units;
    size_t run = run_of(g, matrix);
    for (size_t i = 0; i < matrix; i++)
        if (shares_place(g, matrix, i) && run_of(g, i) == run) {
            units->of[matrix] = units->of[i];
            return;
        }
    units->first[units->units] = matrix;
    units->of[matrix] = units->units++;
}

ft_status ft_weight_units_init(ft_weight_units *units, const ft_quantized_weight *quantized,
                               size_t count,
                               bool (*is_free)(const void *user, const ft_quantized_weight *matrix),
                               const void *user, ft_error *err)
{
    *units = (ft_weight_units){ .matrices = count };
    units->of = ft_calloc(count, sizeof *units->of);
    units->first = ft_calloc(count, sizeof *units->first);
    grouping g = { .units = units, .quantized = quantized };
    g.is_free = ft_calloc(count, sizeof *g.is_free);
    if (units->of == NULL || units->first == NULL || g.is_free == NULL) {
        free(g.is_free);
        return ft_fail(err, FT_ENOMEM, "no memory for %zu matrices", count);
    }
    for (size_t i = 0; i < count; i++) {
        g.is_free[i] = is_free(user, &quantized[i]);
        g.free += g.is_free[i];
    }
    for (size_t i = 0; i < count; i++)
        if (g.is_free[i])
            assign(&g, i);
        else
            units->of[i] = FT_NO_UNIT;
    free(g.is_free);
    return FT_OK;
}

void ft_weight_units_fini(ft_weight_units *units)
{
    free(units->of);
    free(units->first);
    *units = (ft_weight_units){ 0 };
}

size_t ft_weight_unit_size(const ft_weight_units *units, size_t unit)
{
    size_t count = 0;
    for (size_t i = 0; i < units->matrices; i++)
        count += units->of[i] == unit;
    return count;
}
