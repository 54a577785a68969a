/*
 * channels.c - the outlier channels of calibration points.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/channels.h"

#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"
#include "runtime/model/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    float x = *(const float *) a, y = *(const float *) b;
    return (x > y) - (x < y);
}

void ft_channel_summary_init(ft_channel_summary *out, float *amax, size_t channels)
{
    *out = (ft_channel_summary){ .channels = channels };
    out->cells = channels < FT_CHANNEL_CELLS ? (int) channels : FT_CHANNEL_CELLS;
    for (size_t i = 0; i < channels; i++) {
        float *cell = &out->cell[i * (size_t) out->cells / channels];
        *cell = fmaxf(*cell, amax[i]);
    }
    qsort(amax, channels, sizeof *amax, by_value);
    out->median = amax[channels / 2];
    for (size_t i = 0; i < channels; i++)
        out->outliers += out->median > 0.0f && amax[i] >= FT_OUTLIER_FACTOR * out->median;
}

/* ---- Measuring ----------------------------------------------------------------------------- */

/* A value whose channels are measured. */
typedef struct channel_point {
    ft_channel_summary *out;
    float *amax; /* [cols] */
    size_t cols;
} channel_point;

typedef struct measurement {
    channel_point *point; /* [count] */
    const char **name;    /* [count + 1], NULL-terminated */
    size_t count;
    ft_session *session;
    float *values;
    size_t capacity;
} measurement;

static ft_status add_point(measurement *m, ft_channel_summary *out, const char *name,
                           const ft_plan *plan, ft_error *err)
{
    int value = ft_plan_find(plan, name);
    if (value < 0 || plan->value[value].inner || !ft_plan_stores(plan, value))
        return FT_OK;
    size_t cols = (size_t) plan->value[value].cols;
    m->name[m->count] = name;
    m->point[m->count] =
        (channel_point){ .out = out, .amax = ft_calloc(cols, sizeof(float)), .cols = cols };
    return m->point[m->count++].amax != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu channels", name, cols);
}

static ft_status open_measurement(measurement *m, ft_channel_summary *out, const char *const *name,
                                  size_t count, const ft_model *model, const ft_dataset *data,
                                  ft_error *err)
{
    m->point = ft_calloc(count, sizeof *m->point);
    m->name = ft_calloc(count + 1, sizeof *m->name);
    if (m->point == NULL || m->name == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu points", count);
    for (size_t i = 0; i < count; i++)
        FT_TRY(add_point(m, &out[i], name[i], &model->plan, err));
    return ft_session_open(
        &m->session, model,
        &(ft_session_options){ .threads = 1,
                               .max_tokens = (int64_t) ft_dataset_max_length(data),
                               .max_sequences = 1,
                               .keep = m->name },
        err);
}

static void close_measurement(measurement *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->point[i].amax);
    ft_session_close(m->session);
    free(m->point);
    free(m->name);
    free(m->values);
}

static void add_values(channel_point *p, const float *x, size_t count)
{
    for (size_t i = 0; i < count; i += p->cols)
        for (size_t k = 0; k < p->cols; k++)
            p->amax[k] = fmaxf(p->amax[k], fabsf(x[i + k]));
}

static ft_status add_sample(measurement *m, size_t index, size_t sample, ft_error *err)
{
    ft_tensor tensor = { .data = NULL };
    FT_TRY(ft_session_get_rows(m->session, m->name[index], sample, &tensor, err));
    size_t count = ft_tensor_numel(&tensor);
    if (count > m->capacity) {
        free(m->values);
        m->values = ft_calloc(count, sizeof *m->values);
        m->capacity = m->values != NULL ? count : 0;
    }
    if (m->values == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu values", m->name[index], count);
    tensor.data = m->values;
    FT_TRY(ft_session_get_rows(m->session, m->name[index], sample, &tensor, err));
    add_values(&m->point[index], m->values, count);
    return FT_OK;
}

static ft_status run(measurement *m, const ft_dataset *data, size_t first, size_t last,
                     ft_error *err)
{
    for (size_t sample = first; sample < last; sample++) {
        FT_TRY(ft_dataset_set_inputs(data, sample, 1, m->session, err));
        FT_TRY(ft_session_run(m->session, err));
        for (size_t i = 0; i < m->count; i++)
            FT_TRY(add_sample(m, i, sample, err));
    }
    for (size_t i = 0; i < m->count; i++)
        ft_channel_summary_init(m->point[i].out, m->point[i].amax, m->point[i].cols);
    return FT_OK;
}

ft_status ft_measure_channels(ft_channel_summary *out, const char *const *name, size_t count,
                              const ft_model *model, const ft_dataset *data, size_t first,
                              size_t last, ft_error *err)
{
    measurement m = { 0 };
    ft_status status = open_measurement(&m, out, name, count, model, data, err);
    if (status == FT_OK)
        status = run(&m, data, first, last, err);
    close_measurement(&m);
    return status;
}
