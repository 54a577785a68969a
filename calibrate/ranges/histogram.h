/*
 * histogram.h - the values of one point, as the calibration methods see them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_RANGES_HISTOGRAM_H
#define FT_CALIBRATE_RANGES_HISTOGRAM_H

#include "calibrate/ranges/counters.h"

enum { FT_BINS = 2048 };

typedef struct ft_histogram {
    uint64_t total; /* number of values */
    float amax;     /* the largest magnitude, exact; 0 if there are no values, or only zeros */

    /*
     * Equal bins on [0, amax] and their edges, in float as the reference implementation computes
     * them.
     */
    uint64_t bin[FT_BINS];
    float edge[FT_BINS + 1];

    /* The distinct magnitudes in ascending order, and how often each was counted. */
    size_t size;
    float *magnitude;
    uint64_t *counts;
} ft_histogram;

/*
 * Computes the histogram of a point, whose counters are finalized. With amax 0 all bins are empty.
 * FT_EFORMAT, with the name of the point and the numbers, if a NaN or an infinity was counted, or
 * nothing at all. fini also accepts a failed or zeroed one.
 */
ft_status ft_histogram_init(ft_histogram *histogram, ft_counters *point, ft_error *err);
void ft_histogram_fini(ft_histogram *histogram);

/*
 * The bins for a chart, each the sum of FT_BINS / FT_COARSE_BINS neighbours.
 */
enum { FT_COARSE_BINS = 64 };
void ft_histogram_coarse_bins(const ft_histogram *histogram, uint64_t out[FT_COARSE_BINS]);

/* The error of quantizing all values with the scale of `amax`. */
typedef struct ft_distortion {
    double clipped; /* the fraction of the values above amax */
    double sqnr_db; /* 10 log10(sum x^2 / sum (x - scale q)^2); infinite if there is no error */
} ft_distortion;

ft_distortion ft_histogram_distortion(const ft_histogram *histogram, float amax);

#endif
