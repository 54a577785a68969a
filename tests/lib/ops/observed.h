/*
 * observed.h - one calibration run on one device, and its counters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_OBSERVED_H
#define FT_TESTS_LIB_OPS_OBSERVED_H

#include "tests/lib/ops/planrun.h"

/* Must not be moved, because of `run`. */
typedef struct observed {
    const ft_plan *graph;
    planrun run;
    ft_counts **counts; /* [graph->nvalue], finalized; NULL for values that are no point */
} observed;

/* Runs the fused plan that observes every calibration point of `graph`. */
void observed_start(observed *o, const ft_backend *backend, ft_device *device,
                    const ft_plan *graph);
void observed_end(observed *o);

/* The amax of every point as a scale, [graph->nvalue]; free with free(). */
float *observed_scales(const observed *o);

/* The number of values that all points have counted. */
uint64_t observed_total(const observed *o);

#endif
