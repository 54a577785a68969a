/*
 * histogram.h - the values of one point as the methods see them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_RANGES_HISTOGRAM_H
#define FT_CALIBRATE_RANGES_HISTOGRAM_H

#include "calibrate/ranges/counters.h"

enum { FT_BINS = 2048 };

typedef struct ft_histogram {
    uint64_t total; /* values counted */
    float amax;     /* the largest magnitude, exact; 0 for no values and for zeros alone */

    /* Equal bins on [0, amax] and their edges, in float as the reference computes them. */
    uint64_t bin[FT_BINS];
    float edge[FT_BINS + 1];

    /* The distinct magnitudes, ascending, and how often each was counted. */
    size_t size;
    float *magnitude;
    uint64_t *times;
} ft_histogram;

/*
 * Derive the histogram of a point (whose counters get settled).  With amax 0 all bins are empty.
 * FT_EFORMAT, with the point's name and the numbers, when a NaN or an infinity was counted, or
 * nothing at all.  fini takes a failed or zeroed one too.
 */
ft_status ft_histogram_init(ft_histogram *histogram, ft_counters *point, ft_error *err);
void ft_histogram_fini(ft_histogram *histogram);

/* What quantizing all values with the scale of `amax` does to them. */
typedef struct ft_distortion {
    double clipped; /* the fraction of the values greater than amax */
    double sqnr_db; /* 10 log10(sum x^2 / sum (x - scale code)^2); infinite where nothing is lost */
} ft_distortion;

ft_distortion ft_histogram_distortion(const ft_histogram *histogram, float amax);

#endif
