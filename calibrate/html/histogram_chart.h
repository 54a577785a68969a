/*
 * histogram_chart.h - the values of a point, and what each calibration method makes of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_HTML_HISTOGRAM_CHART_H
#define FT_CALIBRATE_HTML_HISTOGRAM_CHART_H

#include "calibrate/ranges/method.h"

#include <stdio.h>

typedef struct ft_histogram_chart {
    const char *name;                /* of the point */
    const char *note;                /* how it is used */
    uint64_t n_values;               /* number of values */
    const uint64_t *bin;             /* [FT_COARSE_BINS] equal bins on 0 .. max of magnitudes */
    const ft_amax_result *candidate; /* [FT_AMAX_CANDIDATES]; the first is max */
    const ft_amax_result *chosen;

    /* Largest magnitudes of groups of channels and of the median channel; cells 0: not measured. */
    const float *cell;
    int cells;
    float median;
    const char *channels; /* what the cells show */
} ft_histogram_chart;

/*
 * Write a card: a histogram of magnitudes with counts on a log scale, one line for each method,
 * a heat strip of its channels, and a table of the methods with the range, the clipped share and
 * the SQNR of each.
 */
void ft_html_histogram_chart(FILE *file, const ft_histogram_chart *chart);

#endif
