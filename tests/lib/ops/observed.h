/*
 * observed.h - one observing run on one device, with what it has counted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_OBSERVED_H
#define FT_TESTS_LIB_OPS_OBSERVED_H

#include "tests/lib/ops/planrun.h"

/* Stays where it is, as `run` does. */
typedef struct observed {
    const ft_plan *graph;
    planrun run;
    ft_counts **counts; /* [graph->nvalue], settled; NULL for what is no point */
} observed;

/* Run the fused plan that observes every point of `graph`. */
void observed_start(observed *o, const ft_backend *backend, ft_device *device,
                    const ft_plan *graph);
void observed_end(observed *o);

/* The largest magnitude of every point as a scale, [graph->nvalue]; free with free(). */
float *observed_scales(const observed *o);

/* How many values all points have counted. */
uint64_t observed_total(const observed *o);

#endif
