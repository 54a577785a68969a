/*
 * weight_times.c - what the units of group-wise matrices take in each precision on the target
 * machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/times/weight_times.h"

#include "calibrate/times/op_times.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* The pass whose time is known: all matrices have 4 bits. */
static const ft_timed_scheme base = FT_TIMED_W4A16;

static ft_timed_scheme timed_scheme(ft_scheme scheme)
{
    return scheme == FT_SCHEME_W4A16        ? FT_TIMED_W4A16
           : scheme == FT_SCHEME_W8A16      ? FT_TIMED_W8A16
           : scheme == FT_SCHEME_W8A8_BLOCK ? FT_TIMED_W8A8_BLOCK
                                            : FT_TIMED_FLOAT;
}

/* Of all linears that read a matrix. */
static ft_status matrix_ns(int64_t *out, const ft_measured_times *times, const ft_model *model,
                           const char *matrix, ft_timed_scheme scheme, ft_error *err)
{
    *out = 0;
    for (int i = 0; i < model->graph.nop; i++) {
        const ft_op *op = &model->graph.op[i];
        int64_t ns;
        if (op->kind != FT_OP_LINEAR || strcmp(model->weight[op->weight[0]].name, matrix) != 0)
            continue;
        FT_TRY(ft_op_ns(&ns, times, model, op, scheme, err));
        *out += ns;
    }
    return FT_OK;
}

/* A matrix without a choice takes the time of its scheme instead of that in the pass. */
static ft_status add_fixed(ft_weight_times *out, const ft_measured_times *times,
                           const ft_model *model, const ft_quantized_weight *matrix, ft_error *err)
{
    int64_t fixed, in_pass;
    const char *name = matrix->weights.name;
    FT_TRY(matrix_ns(&fixed, times, model, name, timed_scheme(matrix->scheme), err));
    FT_TRY(matrix_ns(&in_pass, times, model, name, base, err));
    out->rest += fixed - in_pass;
    return FT_OK;
}

static ft_status add_free(ft_weight_times *out, const ft_measured_times *times,
                          const ft_model *model, const ft_quantized_weight *matrix, size_t unit,
                          ft_error *err)
{
    for (size_t i = 0; i < FT_WEIGHT_CHOICES; i++) {
        const ft_timed_scheme scheme = timed_scheme(ft_weight_choices[i]);
        int64_t ns;
        FT_TRY(matrix_ns(&ns, times, model, matrix->weights.name, scheme, err));
        out->unit[unit * FT_WEIGHT_CHOICES + i] += (uint64_t) ns;
        if (scheme == base)
            out->rest -= ns;
    }
    return FT_OK;
}

ft_status ft_weight_times_init(ft_weight_times *out, const ft_measured_times *times,
                               const ft_model *model, const ft_weight_units *units,
                               const ft_quantized_weight *quantized, ft_error *err)
{
    *out = (ft_weight_times){ .units = units->units };
    out->unit = ft_calloc(units->units + 1, FT_WEIGHT_CHOICES * sizeof *out->unit);
    if (out->unit == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the times of %zu units", units->units);
    FT_TRY(ft_pass_ns(&out->rest, times, base, err));
    for (size_t i = 0; i < units->matrices; i++)
        if (units->of[i] == FT_NO_UNIT)
            FT_TRY(add_fixed(out, times, model, &quantized[i], err));
        else
            FT_TRY(add_free(out, times, model, &quantized[i], units->of[i], err));
    return FT_OK;
}

void ft_weight_times_fini(ft_weight_times *out)
{
    free(out->unit);
    *out = (ft_weight_times){ .unit = NULL };
}

/* All matrices of a unit have one scheme. */
int64_t ft_weight_times_of_plan(const ft_weight_times *t, const ft_weight_units *units,
                                const ft_scheme *scheme)
{
    int64_t ns = t->rest;
    for (size_t unit = 0; unit < t->units; unit++)
        for (size_t i = 0; i < FT_WEIGHT_CHOICES; i++)
            if (scheme[units->first[unit]] == ft_weight_choices[i])
                ns += (int64_t) t->unit[unit * FT_WEIGHT_CHOICES + i];
    return ns;
}

int64_t ft_weight_times_least(const ft_weight_times *t)
{
    int64_t ns = t->rest;
    for (size_t unit = 0; unit < t->units; unit++) {
        const uint64_t *choice = &t->unit[unit * FT_WEIGHT_CHOICES];
        uint64_t least = choice[0];
        for (size_t i = 1; i < FT_WEIGHT_CHOICES; i++)
            least = choice[i] < least ? choice[i] : least;
        ns += (int64_t) least;
    }
    return ns;
}
