/*
 * planrun.h - runs one plan on one device with all values kept, and compares two runs.
 *
 * The batch is always the same: four sequences of mixed lengths with random tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_PLANRUN_H
#define FT_TESTS_LIB_OPS_PLANRUN_H

#include "kernels/backend.h"
#include "runtime/graph/lower.h"

enum { PLANRUN_TOKENS = 181, PLANRUN_SEQUENCES = 4 };

/* Must not be moved: `exec` points into it. */
typedef struct planrun {
    const ft_backend *backend;
    ft_plan plan;
    ft_exec *exec;
} planrun;

/* Stop the test unless `status` is FT_OK. */
void planrun_must(ft_status status, const ft_error *err);

/* Lowers, prepares, runs.  With counts: one set for each value of the graph, whose calibration
 * points the plan observes. */
void planrun_start(planrun *r, const ft_backend *backend, ft_device *device, const ft_plan *graph,
                   const ft_lower_options *how, ft_counts *const *counts);

/* Run once more. */
void planrun_again(planrun *r);
void planrun_end(planrun *r);

/* A value as floats; *count receives their number, 0 for a value that this plan does not have. */
float *planrun_values(const planrun *r, const char *name, size_t *count);

/* One check: every value that both have is equal, and there are at least `least` of them. */
void planrun_agree(const planrun *a, const planrun *b, int least, const char *sentence);

/* The same for two devices, whose BLAS libraries sum in different orders. */
void planrun_agree_across(const planrun *a, const planrun *b, int least, const char *sentence);

/* The RMS error of a value, relative to its size in `a`. */
double planrun_distance(const planrun *a, const planrun *b, const char *name);

#endif
