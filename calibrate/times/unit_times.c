/*
 * unit_times.c - what the units of an int8 plan take in each precision on the target machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/times/unit_times.h"

#include "calibrate/times/op_times.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

/* What the look-up works with. */
typedef struct lookup {
    ft_unit_times *out;
    const ft_measured_times *times;
    const ft_model *model;
    bool (*is_int8)(const void *user, const char *weight);
    const void *user;
    ft_precision base; /* that all units of the pass have whose time is known */
} lookup;

static ft_timed_scheme scheme_of(ft_precision precision)
{
    static const ft_timed_scheme schemes[FT_PRECISIONS] = { FT_TIMED_INT8, FT_TIMED_W8A8_DYNAMIC,
                                                            FT_TIMED_W8A8_BLOCK, FT_TIMED_FLOAT };
    return schemes[precision];
}

static bool is_int8_linear(const lookup *l, const ft_op *op)
{
    return op->kind == FT_OP_LINEAR && l->is_int8(l->user, l->model->weight[op->weight[0]].name);
}

/* Whether the time of an operation depends on the precision of a unit that it reads. */
static bool is_timed_with(const lookup *l, const ft_unit *unit, const ft_op *op)
{
    return ft_unit_is_read_by(unit, op) &&
           (unit->is_attention ? ft_op_info_of(op->kind)->reads == FT_READS_STATIC
                               : is_int8_linear(l, op));
}

static ft_status find_unit(int64_t *ns, const lookup *l, const ft_unit *unit,
                           ft_precision precision, ft_error *err)
{
    const ft_plan *graph = &l->model->graph;
    const ft_timed_scheme scheme = scheme_of(precision);
    *ns = unit->is_attention ? 0 : ft_value_ns(l->times, unit->name, scheme);
    for (int i = 0; i < graph->nop; i++) {
        int64_t op_ns;
        if (!is_timed_with(l, unit, &graph->op[i]))
            continue;
        FT_TRY(ft_op_ns(&op_ns, l->times, l->model, &graph->op[i], scheme, err));
        *ns += op_ns;
    }
    return FT_OK;
}

static ft_status find_units(const lookup *l, const ft_unit *unit, ft_error *err)
{
    for (size_t i = 0; i < l->out->units; i++)
        for (ft_precision p = FT_PRECISION_STATIC; p < FT_PRECISIONS; p++)
            if (p == l->base || ft_unit_can_have(&unit[i], p))
                FT_TRY(find_unit(&l->out->unit[i][p], l, &unit[i], p, err));
    return FT_OK;
}

/* Rules of the recipe leave matrices float that the pass has in int8. */
static ft_status add_float_linears(const lookup *l, ft_error *err)
{
    const ft_plan *graph = &l->model->graph;
    for (int i = 0; i < graph->nop; i++) {
        int64_t in_float, in_pass;
        if (graph->op[i].kind != FT_OP_LINEAR || is_int8_linear(l, &graph->op[i]))
            continue;
        FT_TRY(ft_op_ns(&in_float, l->times, l->model, &graph->op[i], FT_TIMED_FLOAT, err));
        FT_TRY(ft_op_ns(&in_pass, l->times, l->model, &graph->op[i], scheme_of(l->base), err));
        l->out->rest += in_float - in_pass;
    }
    return FT_OK;
}

/* The pass without its units. */
static ft_status find_rest(const lookup *l, ft_error *err)
{
    ft_unit_times *out = l->out;
    FT_TRY(ft_pass_ns(&out->rest, l->times, scheme_of(l->base), err));
    FT_TRY(add_float_linears(l, err));
    for (size_t i = 0; i < out->units; i++)
        out->rest -= out->unit[i][l->base];
    return FT_OK;
}

/* The pass of the recipe's scheme: that of most of its units. */
static ft_precision base_of(const ft_unit *unit, size_t units)
{
    ft_precision base = FT_PRECISION_STATIC;
    for (size_t i = 0; i < units; i++)
        base = unit[i].initial > base ? unit[i].initial : base;
    return base;
}

ft_status ft_unit_times_init(ft_unit_times *out, const ft_measured_times *times,
                             const ft_model *model, const ft_unit *unit, size_t units,
                             bool (*is_int8)(const void *user, const char *weight),
                             const void *user, ft_error *err)
{
    const lookup l = { out, times, model, is_int8, user, base_of(unit, units) };
    *out = (ft_unit_times){ .units = units };
    out->unit = ft_calloc(units + 1, sizeof *out->unit);
    if (out->unit == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the times of %zu units", units);
    FT_TRY(find_units(&l, unit, err));
    return find_rest(&l, err);
}

void ft_unit_times_fini(ft_unit_times *out)
{
    free(out->unit);
    *out = (ft_unit_times){ .unit = NULL };
}

int64_t ft_unit_times_of_plan(const ft_unit_times *t, const ft_precision *precision)
{
    int64_t ns = t->rest;
    for (size_t i = 0; i < t->units; i++)
        ns += t->unit[i][precision[i]];
    return ns;
}

int64_t ft_unit_times_least(const ft_unit_times *t, const ft_unit *unit)
{
    int64_t ns = t->rest;
    for (size_t i = 0; i < t->units; i++) {
        int64_t least = t->unit[i][unit[i].initial];
        for (ft_precision p = FT_PRECISION_STATIC; p < FT_PRECISIONS; p++)
            if (ft_unit_can_have(&unit[i], p) && t->unit[i][p] < least)
                least = t->unit[i][p];
        ns += least;
    }
    return ns;
}
