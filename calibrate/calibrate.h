/*
 * calibrate.h - the calibration pipeline: observe, choose ranges, quantize, report, pack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_CALIBRATE_H
#define FT_CALIBRATE_CALIBRATE_H

#include "calibrate/ranges/counters.h"
#include "calibrate/ranges/method.h"
#include "calibrate/stats/shard.h"
#include "calibrate/weights/recipe.h"
#include "calibrate/report/report.h"
#include "calibrate/budget/budget.h"
#include "calibrate/mixed/accuracy_target.h"
#include "runtime/container/artifact.h"
#include "runtime/cli/image_options.h"
#include "runtime/data/model_texts.h"

/* SmoothQuant of int8 matrices. */
typedef enum ft_smooth_mode {
    FT_SMOOTH_AUTO,   /* search where it is known to help: prepare.h */
    FT_SMOOTH_SEARCH, /* search alpha for each input */
    FT_SMOOTH_NONE,   /* do not smooth */
    FT_SMOOTH_ALPHA,  /* smooth every input with `smooth_alpha` */
} ft_smooth_mode;

typedef struct ft_calibration_options {
    const char *input;        /* float artifact */
    const char *output;       /* quantized artifact; NULL: none */
    const char *data;         /* samples; NULL when merging, or if none are needed */
    const char *eval;         /* held-out samples, or NULL */
    ft_text_source texts;     /* how data and eval are read if they are texts; path NULL: not */
    ft_image_paths images;    /* image files and folders, of which data is the first; eval is one */
    const char *save;         /* path for the counters, or NULL */
    const char *save_stats;   /* path for what the shard contributes, or NULL */
    ft_shard shard;           /* run this part of the samples alone; count 0: all of them */
    bool resume;              /* keep the file of save_stats if it exists */
    const char *report;       /* path for the report, NAME.html or JSON; or NULL */
    const char *amax;         /* file with the ranges, instead of observing, or NULL */
    const char *const *merge; /* counters files to use instead of observing, or NULL */
    size_t n_merge;
    const char *const *stats; /* files of shards to merge, or NULL */
    size_t n_stats;
    uint64_t first, last; /* observe samples first .. last - 1; last 0: all */
    ft_method method;
    double percentile; /* 0: the default */
    bool int8_residual;
    ft_accuracy_target target; /* of w8a8 and w4a16 */
    ft_budget budget;          /* bits: of w4a16; ms: also of w8a8 and w8a8-dynamic */
    const char *times;         /* file of ft-bench that ms, and costs of a target, use; or NULL */
    bool best_effort;          /* a target that is missed is no error */
    ft_smooth_mode smooth;
    double smooth_alpha;     /* 0 .. 1 */
    const ft_recipe *recipe; /* scheme of each matrix; NULL: all linears w8a8 */
    bool force;              /* replace existing files */
    bool dry_run;            /* choose and report, but keep no artifact */
    bool no_selftest;        /* store no self-test in the artifact */
    bool json;               /* generate the JSON text of the report */
    int threads;             /* >= 1 */
    size_t memory;           /* bytes for input statistics; 0: half of what is available */
    const char *device;      /* where to run the model: "cpu" (also NULL) or "cuda:N" */
} ft_calibration_options;

/* Progress callbacks; each may be NULL. */
typedef struct ft_calibration_callbacks {
    void (*stage)(void *user, const char *name, const char *unit); /* a new stage starts */
    ft_progress_callback progress;
    void *user;
} ft_calibration_callbacks;

/*
 * Runs a calibration. All errors in the model, the data, the options or the output paths are
 * reported before the first sample is observed. `callbacks` may be NULL. The caller frees *report
 * with ft_report_fini(), also after a failure.
 */
FT_MUST_USE ft_status ft_calibrate(const ft_calibration_options *options,
                                   const ft_calibration_callbacks *callbacks, ft_report *report,
                                   ft_error *err);

#endif
