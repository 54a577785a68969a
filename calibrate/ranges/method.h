/*
 * method.h - calibration methods: from the histogram of a point to its amax.
 *
 * max, percentile, mse and entropy select what NVIDIA's HistogramCalibrator selects from all values
 * in one collect() (2048 bins, 8 bits, signed). The known differences are intentional:
 *
 *   amax is never 0: a percentile that falls into the first bin is raised to the next of 99.9,
 *   99.99 and 99.999 that does not, or to the maximum;
 *   a point without a magnitude above 2^-24 (the smallest of half precision) gets 1, not a number
 *   without a finite inverse;
 *   entropy skips ranges without any value, whose divergence is undefined: there the reference
 *   prefers the undefined result to every number.
 *
 * Source: pytorch-quantization 2.2.1 and ModelOpt, calib/histogram.py; arXiv 2004.09602, section 3.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_RANGES_METHOD_H
#define FT_CALIBRATE_RANGES_METHOD_H

#include "calibrate/ranges/histogram.h"

typedef enum ft_method {
#define FT_METHOD(NAME, name, help) FT_METHOD_##NAME,
#include "calibrate/ranges/methods.def"
#undef FT_METHOD
    FT_METHODS
} ft_method;

/* "percentile", and a one-line description; NULL for a value that is not a method. */
const char *ft_method_name(ft_method method);
const char *ft_method_help(ft_method method);
bool ft_method_parse(const char *name, ft_method *out);

typedef struct ft_method_options {
    double percentile; /* 0 < p <= 100; default 99.99 */
} ft_method_options;

typedef enum ft_amax_status {
    FT_AMAX_OK,
    FT_AMAX_ZERO, /* no magnitude above 2^-24: amax is 1, and every quantized value is 0 */
    FT_AMAX_TOO_FEW_SAMPLES, /* fewer than ten values lie beyond the requested percentile */
    FT_AMAX_RAISED,          /* the requested percentile is 0; a higher one was used */
} ft_amax_status;

/* "ok", "all zero", ... in reports. */
const char *ft_amax_status_name(ft_amax_status status);

typedef struct ft_amax_result {
    char method[24]; /* what determined amax in the end: "percentile-99.99", "mse", "zero" */
    ft_amax_status status;
    float amax;       /* > 0 */
    int index;        /* of the bin (mse), of the edge (percentile, entropy), FT_BINS (max) */
    double objective; /* minimized (mse, entropy) or reached (percentile: fraction of the values) */
    double second_best; /* the next best objective; NaN if nothing is minimized */
    ft_distortion distortion;
} ft_amax_result;

/* Computes amax with one method; NULL options mean the defaults. */
void ft_compute_amax(ft_amax_result *out, ft_method method, const ft_histogram *histogram,
                     const ft_method_options *options);

/*
 * The candidates that `auto` compares: max, percentile 99, 99.9, 99.99 and 99.999, mse, entropy.
 */
enum { FT_AMAX_CANDIDATES = 7 };
void ft_compute_amax_candidates(ft_amax_result out[FT_AMAX_CANDIDATES],
                                const ft_histogram *histogram);

/* The candidate with the highest SQNR; ties go to the largest amax, then to the first. */
size_t ft_best_amax_candidate(const ft_amax_result *candidate, size_t count);

/* The searches over a histogram with amax > 0; they set index, amax, objective and second. */
void ft_search_mse(ft_amax_result *out, const ft_histogram *histogram);
void ft_search_entropy(ft_amax_result *out, const ft_histogram *histogram);

#endif
