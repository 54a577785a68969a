/*
 * range_error.c - what the range of a point costs its float values, apart from all other errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/range_error.h"

#include "kernels/half.h"
#include "kernels/math/elementary.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <stdlib.h>

enum { STEPS = 48, STEPS_OF_OCTAVE = 8 };

/* Distinct magnitudes and how often each occurs. */
typedef struct magnitudes {
    float *value;
    double *times;
    size_t count;
} magnitudes;

static bool collect(magnitudes *m, const ft_counts *counts)
{
    size_t capacity = counts->tail_used;
    for (size_t key = 0; key < FT_COUNT_KEYS; key++)
        capacity += counts->key[key] > 0;
    *m = (magnitudes){ .value = ft_calloc(capacity, sizeof *m->value),
                       .times = ft_calloc(capacity, sizeof *m->times) };
    if (m->value == NULL || m->times == NULL)
        return false;
    for (uint32_t key = 0; key < FT_COUNT_KEYS; key++)
        if (counts->key[key] > 0) {
            m->value[m->count] = ft_float_from_bits(ft_count_magnitude(key));
            m->times[m->count++] = (double) counts->key[key];
        }
    for (size_t i = 0; i < counts->tail_used; i++) {
        m->value[m->count] = ft_float_from_bits(counts->tail[i]);
        m->times[m->count++] = 1.0;
    }
    return true;
}

static double sqnr_of(const magnitudes *m, float amax)
{
    float scale = ft_scale_from_amax(amax), inverse = ft_inverse_scale(scale);
    double signal = 0.0, noise = 0.0;
    for (size_t i = 0; i < m->count; i++) {
        double value = (double) m->value[i];
        double error = value - (double) (scale * ft_quantize_to_float(m->value[i], inverse));
        signal += m->times[i] * value * value;
        noise += m->times[i] * error * error;
    }
    return noise > 0.0 ? 10.0 * ft_math_log10(signal / noise) : HUGE_VAL;
}

static void measure(ft_range_error *out, const magnitudes *m)
{
    double beyond = 0.0, total = 0.0;
    for (size_t i = 0; i < m->count; i++) {
        out->max = fmaxf(out->max, m->value[i]);
        total += m->times[i];
        beyond += m->value[i] > out->amax ? m->times[i] : 0.0;
    }
    out->clipped = total > 0.0 ? beyond / total : 0.0;
    out->sqnr_db = out->best_db = sqnr_of(m, out->amax);
    out->best_amax = out->amax;
    for (int k = 0; k <= STEPS && out->max > 0.0f; k++) {
        float amax = out->max * (float) ft_math_pow(2.0, -(double) k / STEPS_OF_OCTAVE);
        double sqnr = sqnr_of(m, amax);
        if (sqnr > out->best_db) {
            out->best_db = sqnr;
            out->best_amax = amax;
        }
    }
}

ft_status ft_range_error_measure(ft_range_error *out, const char *name, ft_counts *counts,
                                 float amax, ft_error *err)
{
    magnitudes m;
    *out = (ft_range_error){ .amax = amax };
    if (counts->nans > 0 || counts->infinities > 0)
        return ft_fail(err, FT_EFORMAT,
                       "%s: %" PRIu64 " NaN and %" PRIu64 " infinities in the float model", name,
                       counts->nans, counts->infinities);
    bool has_memory = collect(&m, counts);
    if (has_memory)
        measure(out, &m);
    free(m.value);
    free(m.times);
    return has_memory ? FT_OK : ft_fail(err, FT_ENOMEM, "%s: no memory for its values", name);
}
