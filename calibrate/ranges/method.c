/*
 * method.c - the table of methods, max and percentile, and automatic selection.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/ranges/method.h"

#include "runtime/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * The smallest positive number of half precision; the quantizer of the reference treats smaller
 * amax as zero too.
 */
static const float min_amax = 0x1p-24f;

static const double default_percentile = 99.99;
static const double percentiles[] = { 99.0, 99.9, 99.99, 99.999 };

static const struct {
    const char *name, *help;
} methods[FT_METHODS] = {
#define FT_METHOD(NAME, name, help) [FT_METHOD_##NAME] = { #name, help },
#include "calibrate/ranges/methods.def"
#undef FT_METHOD
};

const char *ft_method_name(ft_method method)
{
    return (size_t) method < FT_METHODS ? methods[method].name : NULL;
}

const char *ft_method_help(ft_method method)
{
    return (size_t) method < FT_METHODS ? methods[method].help : NULL;
}

bool ft_method_parse(const char *name, ft_method *out)
{
    for (size_t i = 0; i < FT_METHODS; i++)
        if (strcmp(methods[i].name, name) == 0) {
            *out = (ft_method) i;
            return true;
        }
    return false;
}

const char *ft_amax_status_name(ft_amax_status status)
{
    switch (status) {
    case FT_AMAX_OK:
        return "ok";
    case FT_AMAX_ZERO:
        return "all zero";
    case FT_AMAX_TOO_FEW_SAMPLES:
        return "too few samples";
    case FT_AMAX_RAISED:
        return "raised";
    }
    return "unknown";
}

/* ---- Single methods ----------------------------------------------------------------------- */

static void compute_max(ft_amax_result *out, const ft_histogram *h,
                        const ft_method_options *options)
{
    (void) options;
    out->index = FT_BINS;
    out->amax = h->amax;
    out->objective = out->second_best = nan("");
}

/*
 * The first bin at whose end `fraction` of the values is reached; FT_BINS if rounding prevents
 * that.
 */
static int percentile_bin(const ft_histogram *h, double fraction, double *reached)
{
    *reached = 0.0;
    for (int i = 0; i < FT_BINS; i++) {
        *reached += (double) h->bin[i] / (double) h->total;
        if (*reached >= fraction)
            return i;
    }
    return FT_BINS;
}

/* amax is the lower edge of the bin, as in the reference. */
static void compute_one_percentile(ft_amax_result *out, const ft_histogram *h, double percentile)
{
    snprintf(out->method, sizeof out->method, "percentile-%.6g", percentile);
    out->index = percentile_bin(h, percentile / 100.0, &out->objective);
    out->amax = h->edge[out->index];
    out->second_best = nan("");
}

static void compute_percentile(ft_amax_result *out, const ft_histogram *h,
                               const ft_method_options *options)
{
    double requested = options->percentile > 0.0 ? options->percentile : default_percentile;
    compute_one_percentile(out, h, requested);
    if (requested < 100.0 && (double) h->total * (1.0 - requested / 100.0) < 10.0)
        out->status = FT_AMAX_TOO_FEW_SAMPLES;

    for (size_t i = 0; out->amax <= 0.0f && i < FT_COUNT(percentiles); i++)
        if (percentiles[i] > requested) {
            out->status = FT_AMAX_RAISED;
            compute_one_percentile(out, h, percentiles[i]);
        }
    if (out->amax <= 0.0f) {
        out->status = FT_AMAX_RAISED;
        snprintf(out->method, sizeof out->method, "max");
        compute_max(out, h, options);
    }
}

static void compute_mse(ft_amax_result *out, const ft_histogram *h,
                        const ft_method_options *options)
{
    (void) options;
    ft_search_mse(out, h);
}

static void compute_entropy(ft_amax_result *out, const ft_histogram *h,
                            const ft_method_options *options)
{
    (void) options;
    ft_search_entropy(out, h);
}

static void compute_auto(ft_amax_result *out, const ft_histogram *h,
                         const ft_method_options *options)
{
    (void) options;
    ft_amax_result candidate[FT_AMAX_CANDIDATES];
    ft_compute_amax_candidates(candidate, h);
    *out = candidate[ft_best_amax_candidate(candidate, FT_AMAX_CANDIDATES)];
}

/* ---- All methods -------------------------------------------------------------------------- */

void ft_compute_amax(ft_amax_result *out, ft_method method, const ft_histogram *h,
                     const ft_method_options *options)
{
    static void (*const compute[FT_METHODS])(ft_amax_result *, const ft_histogram *,
                                             const ft_method_options *) = {
#define FT_METHOD(NAME, name, help) [FT_METHOD_##NAME] = compute_##name,
#include "calibrate/ranges/methods.def"
#undef FT_METHOD
    };
    *out = (ft_amax_result){ .status = FT_AMAX_OK };
    snprintf(out->method, sizeof out->method, "%s", methods[method].name);
    if (h->amax <= min_amax) {
        *out = (ft_amax_result){ .method = "zero",
                                 .status = FT_AMAX_ZERO,
                                 .amax = 1.0f,
                                 .objective = nan(""),
                                 .second_best = nan("") };
    } else
        compute[method](out, h, options != NULL ? options : &(ft_method_options){ 0 });
    out->distortion = ft_histogram_distortion(h, out->amax);
}

void ft_compute_amax_candidates(ft_amax_result out[FT_AMAX_CANDIDATES], const ft_histogram *h)
{
    size_t n = 0;
    ft_compute_amax(&out[n++], FT_METHOD_MAX, h, NULL);
    for (size_t i = 0; i < FT_COUNT(percentiles); i++)
        ft_compute_amax(&out[n++], FT_METHOD_PERCENTILE, h,
                        &(ft_method_options){ .percentile = percentiles[i] });
    ft_compute_amax(&out[n++], FT_METHOD_MSE, h, NULL);
    ft_compute_amax(&out[n++], FT_METHOD_ENTROPY, h, NULL);
}

size_t ft_best_amax_candidate(const ft_amax_result *candidate, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        double gain = candidate[i].distortion.sqnr_db - candidate[best].distortion.sqnr_db;
        bool equal = candidate[i].distortion.sqnr_db == candidate[best].distortion.sqnr_db;
        if (gain > 0.0 || (equal && candidate[i].amax > candidate[best].amax))
            best = i;
    }
    return best;
}
