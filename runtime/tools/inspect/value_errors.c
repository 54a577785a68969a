/*
 * value_errors.c - runs two models on the same samples and compares every value that both have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/value_errors.h"

#include "kernels/math/elementary.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"
#include "runtime/model/session.h"
#include "runtime/tools/inspect/column_scales.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char float_suffix[] = ".float";

double ft_value_sqnr_db(const ft_value_error *value)
{
    return value->noise > 0.0 ? 10.0 * ft_math_log10(value->signal / value->noise) : HUGE_VAL;
}

/* NaN is worse than every number. */
const ft_value_error *ft_value_errors_first_below(const ft_value_errors *errors, double db)
{
    for (size_t i = 0; i < errors->count; i++)
        if (!(ft_value_sqnr_db(&errors->value[i]) >= db))
            return &errors->value[i];
    return NULL;
}

const ft_value_error *ft_value_errors_worst(const ft_value_errors *errors)
{
    const ft_value_error *found = &errors->value[0];
    for (size_t i = 1; i < errors->count && !isnan(ft_value_sqnr_db(found)); i++)
        if (!(ft_value_sqnr_db(&errors->value[i]) >= ft_value_sqnr_db(found)))
            found = &errors->value[i];
    return found;
}

/* ---- Alignment ----------------------------------------------------------------------------- */

/* Whether a forward pass writes the value where it can be read. */
static bool is_readable(const ft_plan *plan, int value)
{
    const ft_value *v = &plan->value[value];
    return v->input == FT_BATCH_NONE && !v->state && !v->inner && v->dtype != FT_I32 &&
           ft_plan_producer(plan, value) >= 0 && ft_plan_stores(plan, value);
}

/* The value NAME, else NAME.float, or -1. */
static int find_value(const ft_plan *plan, const char *name)
{
    char with_suffix[FT_NAME + sizeof float_suffix];
    int value = ft_plan_find(plan, name);
    if (value >= 0)
        return value;
    snprintf(with_suffix, sizeof with_suffix, "%s%s", name, float_suffix);
    return ft_plan_find(plan, with_suffix);
}

/* The name without ".float" if no other value of the plan has it. */
static void base_name(char out[FT_NAME], const ft_plan *plan, const char *name)
{
    size_t length = strlen(name), suffix = strlen(float_suffix);
    snprintf(out, FT_NAME, "%s", name);
    if (length > suffix && strcmp(name + length - suffix, float_suffix) == 0) {
        out[length - suffix] = '\0';
        if (ft_plan_find(plan, out) >= 0)
            snprintf(out, FT_NAME, "%s", name);
    }
}

static ft_status align(ft_value_errors *out, const ft_model *const model[2], ft_error *err)
{
    const ft_plan *a = &model[0]->plan, *b = &model[1]->plan;
    out->value = ft_calloc((size_t) a->nvalue, sizeof *out->value);
    if (out->value == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %d values", a->nvalue);
    for (int i = 0; i < a->nvalue; i++) {
        char name[FT_NAME];
        base_name(name, a, a->value[i].name);
        int other = find_value(b, name);
        if (other < 0 || !is_readable(a, i) || !is_readable(b, other) ||
            a->value[i].cols != b->value[other].cols)
            continue;
        ft_value_error *v = &out->value[out->count++];
        memcpy(v->name[0], a->value[i].name, FT_NAME);
        memcpy(v->name[1], b->value[other].name, FT_NAME);
    }
    return out->count > 0 ? FT_OK
                          : ft_fail(err, FT_EARG, "%s and %s: their plans have no value in common",
                                    model[0]->path, model[1]->path);
}

/* ---- Runs ---------------------------------------------------------------------------------- */

/* One of the two models, and a value of it. */
typedef struct side {
    ft_session *session;
    const char **names; /* NULL-terminated, borrowed strings */
    float *value;
    size_t capacity, count; /* elements */
    ft_column_scales scales;
} side;

static ft_status open_side(side *s, const ft_value_errors *errors, int which, const ft_model *model,
                           const ft_dataset *data, int threads, ft_error *err)
{
    FT_TRY(ft_column_scales_init(&s->scales, model, err));
    s->names = ft_calloc(errors->count + 1, sizeof *s->names);
    if (s->names == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu names", errors->count);
    for (size_t i = 0; i < errors->count; i++)
        s->names[i] = errors->value[i].name[which];
    return ft_session_open(
        &s->session, model,
        &(ft_session_options){ .threads = threads,
                               .max_tokens = (int64_t) ft_dataset_max_length(data),
                               .max_sequences = 1,
                               .keep = s->names },
        err);
}

static void close_side(side *s)
{
    ft_session_close(s->session);
    free(s->names);
    free(s->value);
    ft_column_scales_fini(&s->scales);
}

/* Undo what was folded into a value; the session has undone its smoothing. */
static void unfold(side *s, const char *name, size_t cols)
{
    const float *divisor = ft_column_scales_of_value(&s->scales, name);
    for (size_t i = 0; divisor != NULL && i < s->count; i++)
        s->value[i] *= divisor[i % cols];
}

static ft_status read_side(side *s, size_t index, size_t sample, ft_error *err)
{
    ft_tensor tensor = { .data = NULL };
    FT_TRY(ft_session_get_rows(s->session, s->names[index], sample, &tensor, err));
    s->count = ft_tensor_numel(&tensor);
    if (s->count > s->capacity) {
        free(s->value);
        s->capacity = s->count;
        s->value = ft_calloc(s->capacity, sizeof *s->value);
    }
    if (s->value == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu elements", s->names[index], s->count);
    tensor.data = s->value;
    FT_TRY(ft_session_get_rows(s->session, s->names[index], sample, &tensor, err));
    unfold(s, s->names[index], (size_t) tensor.dim[tensor.ndim - 1]);
    return FT_OK;
}

static void add_error(ft_value_error *v, const side s[2])
{
    for (size_t i = 0; i < s[0].count && i < s[1].count; i++) {
        double a = (double) s[0].value[i], difference = a - (double) s[1].value[i];
        v->signal += a * a;
        v->noise += difference * difference;
    }
}

static ft_status run_sample(ft_value_errors *out, side s[2], const ft_dataset *data, size_t sample,
                            ft_error *err)
{
    for (int k = 0; k < 2; k++) {
        FT_TRY(ft_dataset_set_inputs(data, sample, 1, s[k].session, err));
        FT_TRY(ft_session_run(s[k].session, err));
    }
    for (size_t i = 0; i < out->count; i++) {
        for (int k = 0; k < 2; k++)
            FT_TRY(read_side(&s[k], i, sample, err));
        add_error(&out->value[i], s);
    }
    return FT_OK;
}

ft_status ft_value_errors_measure(ft_value_errors *out, const ft_model *const model[2],
                                  const ft_dataset *data, size_t samples, int threads,
                                  ft_error *err)
{
    side s[2] = { 0 };
    *out = (ft_value_errors){ 0 };
    ft_status status = align(out, model, err);
    for (int k = 0; k < 2 && status == FT_OK; k++)
        status = open_side(&s[k], out, k, model[k], data, threads, err);
    for (size_t i = 0; i < samples && status == FT_OK; i++)
        status = run_sample(out, s, data, i, err);
    for (int k = 0; k < 2; k++)
        close_side(&s[k]);
    return status;
}

void ft_value_errors_fini(ft_value_errors *errors)
{
    free(errors->value);
    *errors = (ft_value_errors){ 0 };
}
