/*
 * observed_counts.c - counters of what a quantized model quantizes, if its values were exact.
 *
 * The session counts the values that are quantized as they are.  It keeps those that are divided
 * first, and they are counted here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/observed_counts.h"

#include "kernels/half.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/session.h"

#include <math.h>
#include <stdlib.h>

typedef struct observer {
    const ft_plan *plan;
    ft_session *session;
    ft_counts **counted;   /* [nvalue]: by the session */
    const float **divisor; /* [nvalue]: of the values that are counted here */
    const char **kept;     /* their names, then NULL */
    float *value;
    size_t capacity; /* elements */
} observer;

/* ---- Setting up ----------------------------------------------------------------------------- */

static ft_status init_counts(ft_observed_counts *out, const ft_plan *plan, ft_error *err)
{
    *out = (ft_observed_counts){ .count = plan->nvalue };
    out->of_value = ft_calloc((size_t) plan->nvalue, sizeof *out->of_value);
    bool has_memory = out->of_value != NULL;
    for (int i = 0; i < plan->nvalue && has_memory; i++)
        if (plan->value[i].point)
            has_memory = ft_counts_init(&out->of_value[i]);
    return has_memory ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for counters");
}

static ft_status init_observer(observer *o, ft_observed_counts *out, const ft_plan *plan,
                               const ft_column_scales *scales, ft_error *err)
{
    size_t nvalue = (size_t) plan->nvalue, kept = 0;
    *o = (observer){ .plan = plan,
                     .counted = ft_calloc(nvalue, sizeof *o->counted),
                     .divisor = ft_calloc(nvalue, sizeof *o->divisor),
                     .kept = ft_calloc(nvalue + 1, sizeof *o->kept) };
    if (o->counted == NULL || o->divisor == NULL || o->kept == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for counters");
    for (size_t i = 0; i < nvalue; i++) {
        if (!plan->value[i].point)
            continue;
        o->divisor[i] = ft_column_scales_of_point(scales, plan->value[i].name);
        if (o->divisor[i] != NULL)
            o->kept[kept++] = plan->value[i].name;
        else
            o->counted[i] = &out->of_value[i];
    }
    return FT_OK;
}

static void observer_fini(observer *o)
{
    ft_session_close(o->session);
    free(o->counted);
    free(o->divisor);
    free(o->kept);
    free(o->value);
}

static ft_status open_session(observer *o, const ft_model *model, const ft_dataset *data,
                              ft_error *err)
{
    return ft_session_open(
        &o->session, model,
        &(ft_session_options){ .threads = 1,
                               .max_tokens = (int64_t) ft_dataset_max_length(data),
                               .max_sequences = 1,
                               .keep = o->kept },
        err);
}

/* ---- Counting ------------------------------------------------------------------------------- */

static ft_status count_divided(observer *o, ft_counts *counts, int value, size_t sample,
                               ft_error *err)
{
    const char *name = o->plan->value[value].name;
    size_t cols = (size_t) o->plan->value[value].cols;
    ft_tensor tensor = { .data = NULL };
    FT_TRY(ft_session_get_rows(o->session, name, sample, &tensor, err));
    size_t count = ft_tensor_numel(&tensor);
    if (count > o->capacity) {
        free(o->value);
        o->value = ft_calloc(count, sizeof *o->value);
        o->capacity = o->value != NULL ? count : 0;
    }
    if (o->capacity < count)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu elements", name, count);
    tensor.data = o->value;
    FT_TRY(ft_session_get_rows(o->session, name, sample, &tensor, err));
    for (size_t i = 0; i < count; i++)
        ft_counts_add_value(
            counts, ft_bits_from_float(fabsf(o->value[i] / o->divisor[value][i % cols])), 1);
    return FT_OK;
}

static ft_status observe_sample(observer *o, ft_observed_counts *out, const ft_dataset *data,
                                size_t sample, ft_error *err)
{
    FT_TRY(ft_dataset_set_inputs(data, sample, 1, o->session, err));
    FT_TRY(ft_session_run_observed(o->session, o->counted, err));
    for (int i = 0; i < o->plan->nvalue; i++)
        if (o->divisor[i] != NULL)
            FT_TRY(count_divided(o, &out->of_value[i], i, sample, err));
    return FT_OK;
}

static ft_status observe(observer *o, ft_observed_counts *out, const ft_model *model,
                         const ft_dataset *data, size_t samples, ft_error *err)
{
    FT_TRY(open_session(o, model, data, err));
    for (size_t i = 0; i < samples; i++)
        FT_TRY(observe_sample(o, out, data, i, err));
    FT_TRY(ft_session_collect_counts(o->session, o->counted, err));
    for (int i = 0; i < o->plan->nvalue; i++)
        if (o->plan->value[i].point)
            ft_counts_finalize(&out->of_value[i]);
    return FT_OK;
}

ft_status ft_observed_counts_measure(ft_observed_counts *out, const ft_model *model,
                                     const ft_column_scales *scales, const ft_dataset *data,
                                     size_t samples, ft_error *err)
{
    observer o = { 0 };
    ft_status status = init_counts(out, &model->plan, err);
    if (status == FT_OK)
        status = init_observer(&o, out, &model->plan, scales, err);
    if (status == FT_OK)
        status = observe(&o, out, model, data, samples, err);
    observer_fini(&o);
    return status;
}

void ft_observed_counts_fini(ft_observed_counts *counts)
{
    for (int i = 0; i < counts->count && counts->of_value != NULL; i++)
        ft_counts_fini(&counts->of_value[i]);
    free(counts->of_value);
    *counts = (ft_observed_counts){ 0 };
}
