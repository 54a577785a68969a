/*
 * calibrate.h - the whole job: observe, choose, report, pack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_CALIBRATE_H
#define FT_CALIBRATE_CALIBRATE_H

#include "calibrate/ranges/counters.h"
#include "calibrate/ranges/method.h"
#include "calibrate/weights/recipe.h"
#include "calibrate/report.h"
#include "runtime/container/artifact.h"

typedef struct ft_calibration_options {
    const char *input;        /* float artifact */
    const char *output;       /* artifact of codes; NULL: pack nothing */
    const char *data;         /* samples; NULL when merging, or when nothing is learnt from them */
    const char *eval;         /* held-out samples, or NULL */
    const char *save;         /* write the counters here, or NULL */
    const char *report;       /* write the report here as JSON, or NULL */
    const char *const *merge; /* counters files to use instead of observing, or NULL */
    size_t nmerge;
    uint64_t first, last; /* observe samples first .. last - 1; last 0: all */
    ft_method method;
    double percentile; /* 0: the default */
    bool int8_residual;
    const ft_recipe *recipe; /* what becomes of each matrix; NULL: all linears w8a8 */
    bool force;              /* replace files that exist */
    bool dry_run;            /* choose and report, but leave no artifact */
    bool json;               /* make the text of the report */
    int threads;             /* >= 1 */
    size_t memory;           /* bytes for sums over inputs; 0: half of what is free */
    const char *device;      /* where to run the model: "cpu" (also NULL) or "cuda:N" */
} ft_calibration_options;

/* What long work is shown by; each may be NULL. */
typedef struct ft_calibration_view {
    void (*stage)(void *user, const char *what, const char *unit); /* what begins now */
    ft_progress progress;
    void *user;
} ft_calibration_view;

/*
 * Calibrate.  Everything that can be wrong with the model, the data, the options or the places of
 * the outputs is refused before the first sample is observed.  `view` may be NULL.  *report is to
 * be freed by ft_report_fini(), also after a failure.
 */
FT_MUST_USE ft_status ft_calibrate(const ft_calibration_options *options,
                                   const ft_calibration_view *view, ft_report *report,
                                   ft_error *err);

#endif
