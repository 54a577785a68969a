/*
 * op_times.c - the measured times of the operations of a graph.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/times/op_times.h"

#include "runtime/error.h"

#include <math.h>
#include <string.h>

static int64_t ns_of_us(double us)
{
    return (int64_t) (us * 1e3 + 0.5);
}

double ft_ms_of_ns(int64_t ns)
{
    return (double) ns / 1e6;
}

int64_t ft_ns_of_ms(double ms)
{
    return (int64_t) (fmin(ms, 1e9) * 1e6);
}

ft_status ft_pass_ns(int64_t *out, const ft_measured_times *times, ft_timed_scheme scheme,
                     ft_error *err)
{
    *out = ns_of_us(times->pass_us[scheme]);
    return times->pass_us[scheme] > 0.0
               ? FT_OK
               : ft_fail(err, FT_EARG,
                         "%s: found no times of scheme %s, expected those of every scheme: write "
                         "the file with ft-bench --ops --json from the float artifact",
                         times->path, ft_timed_scheme_name(scheme));
}

static const ft_op_time *find(const ft_measured_times *times, const char *kind, const char *name,
                              ft_timed_scheme scheme)
{
    for (size_t i = 0; i < times->ops; i++)
        if (times->op[i].scheme == scheme && strcmp(times->op[i].name, name) == 0 &&
            strcmp(times->op[i].kind, kind) == 0)
            return &times->op[i];
    return NULL;
}

static ft_status check_shape(const ft_measured_times *times, const ft_model *model, const ft_op *op,
                             const ft_op_time *found, ft_error *err)
{
    if (op->kind != FT_OP_LINEAR)
        return FT_OK;
    const ft_weight *weight = &model->weight[op->weight[0]];
    return (uint64_t) found->rows == weight->rows && (uint64_t) found->cols == weight->cols
               ? FT_OK
               : ft_fail(err, FT_EARG,
                         "%s: linear %s: found a weight of %lld x %lld, expected %zu x %zu as in "
                         "%s: measure this model with ft-bench --ops --json",
                         times->path, found->name, (long long) found->rows, (long long) found->cols,
                         weight->rows, weight->cols, model->path);
}

ft_status ft_op_ns(int64_t *out, const ft_measured_times *times, const ft_model *model,
                   const ft_op *op, ft_timed_scheme scheme, ft_error *err)
{
    const char *kind = ft_op_name(op->kind);
    const char *name = op->kind == FT_OP_LINEAR ? model->weight[op->weight[0]].name
                                                : model->graph.value[ft_op_label_value(op)].name;
    FT_TRY(ft_pass_ns(out, times, scheme, err));
    const ft_op_time *found = find(times, kind, name, scheme);
    if (found == NULL)
        return ft_fail(err, FT_EARG,
                       "%s: found no time of %s %s in scheme %s, expected one for each operation "
                       "of %s: measure this model with ft-bench --ops --json",
                       times->path, kind, name, ft_timed_scheme_name(scheme), model->path);
    *out = ns_of_us(found->us);
    return check_shape(times, model, op, found, err);
}

int64_t ft_value_ns(const ft_measured_times *times, const char *value, ft_timed_scheme scheme)
{
    int64_t ns = 0;
    for (size_t i = 0; i < times->ops; i++) {
        const ft_op_time *t = &times->op[i];
        if (t->scheme == scheme && strcmp(t->name, value) == 0 && strcmp(t->kind, "linear") != 0 &&
            strcmp(t->kind, ft_op_name(FT_OP_ATTENTION)) != 0)
            ns += ns_of_us(t->us);
    }
    return ns;
}
