/*
 * histogram.c - counters to the histogram of the reference, and the quantization error of an amax.
 *
 * Bins and edges follow torch.histc and torch.linspace as NVIDIA's HistogramCalibrator calls them
 * with all values at once: float arithmetic in the same order, without contraction.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/histogram.h"

#include "kernels/half.h"
#include "kernels/math/elementary.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* All keys stand for smaller magnitudes than the tail, so keys followed by the tail are sorted. */
static ft_status collect_magnitudes(ft_histogram *h, const ft_counters *point, ft_error *err)
{
    const ft_counts *counts = &point->counts;
    size_t capacity = counts->tail_used;
    for (size_t key = 0; key < FT_COUNT_KEYS; key++)
        capacity += counts->key[key] > 0;
    h->magnitude = ft_calloc(capacity, sizeof *h->magnitude);
    h->counts = ft_calloc(capacity, sizeof *h->counts);
    if (h->magnitude == NULL || h->counts == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu magnitudes", point->name, capacity);

    for (uint32_t key = 0; key < FT_COUNT_KEYS; key++)
        if (counts->key[key] > 0) {
            h->magnitude[h->size] = ft_float_from_bits(ft_count_magnitude(key));
            h->counts[h->size++] = counts->key[key];
        }
    for (size_t i = 0; i < counts->tail_used; i++) {
        float magnitude = ft_float_from_bits(counts->tail[i]);
        if (h->size == 0 || h->magnitude[h->size - 1] != magnitude)
            h->magnitude[h->size++] = magnitude;
        h->counts[h->size - 1]++;
    }
    return FT_OK;
}

static void fill_bins(ft_histogram *h)
{
    for (size_t i = 0; i < h->size; i++) {
        float position = h->magnitude[i] * (float) FT_BINS / h->amax;
        size_t bin = position < (float) FT_BINS ? (size_t) position : FT_BINS - 1;
        h->bin[bin] += h->counts[i];
    }
}

/* As in torch.linspace, each half is computed from its own end. */
static void set_edges(ft_histogram *h)
{
    float width = h->amax / (float) FT_BINS;
    for (int i = 0; i <= FT_BINS; i++)
        h->edge[i] =
            i < (FT_BINS + 1) / 2 ? width * (float) i : h->amax - width * (float) (FT_BINS - i);
}

ft_status ft_histogram_init(ft_histogram *h, ft_counters *point, ft_error *err)
{
    *h = (ft_histogram){ .total = ft_counts_total(&point->counts) };
    const ft_counts *counts = &point->counts;
    if (counts->nans > 0 || counts->infinities > 0)
        return ft_fail(err, FT_EFORMAT,
                       "%s: %" PRIu64 " NaN and %" PRIu64 " infinities beside %" PRIu64
                       " finite values",
                       point->name, counts->nans, counts->infinities, h->total);
    if (h->total == 0)
        return ft_fail(err, FT_EFORMAT, "%s: no value was counted", point->name);

    ft_counts_finalize(&point->counts);
    ft_status rc = collect_magnitudes(h, point, err);
    if (rc != FT_OK) {
        ft_histogram_fini(h);
        return rc;
    }
    h->amax = h->magnitude[h->size - 1];
    if (h->amax > 0.0f) {
        fill_bins(h);
        set_edges(h);
    }
    return FT_OK;
}

void ft_histogram_fini(ft_histogram *h)
{
    free(h->magnitude);
    free(h->counts);
    *h = (ft_histogram){ 0 };
}

void ft_histogram_coarse_bins(const ft_histogram *h, uint64_t out[FT_COARSE_BINS])
{
    for (int i = 0; i < FT_COARSE_BINS; i++)
        out[i] = 0;
    for (int i = 0; i < FT_BINS; i++)
        out[i / (FT_BINS / FT_COARSE_BINS)] += h->bin[i];
}

ft_distortion ft_histogram_distortion(const ft_histogram *h, float amax)
{
    float scale = ft_scale_from_amax(amax), inverse = ft_inverse_scale(scale);
    double signal = 0.0, noise = 0.0;
    uint64_t clipped = 0;
    for (size_t i = 0; i < h->size; i++) {
        double value = (double) h->magnitude[i], n_times = (double) h->counts[i];
        double error = value - (double) (scale * ft_quantize_to_float(h->magnitude[i], inverse));
        signal += n_times * value * value;
        noise += n_times * error * error;
        clipped += h->magnitude[i] > amax ? h->counts[i] : 0;
    }
    return (ft_distortion){ .clipped = (double) clipped / (double) h->total,
                            .sqnr_db =
                                noise > 0.0 ? 10.0 * ft_math_log10(signal / noise) : HUGE_VAL };
}
