/*
 * evaluate.h - what quantization costs at the end of the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_EVALUATE_H
#define FT_CALIBRATE_EVALUATE_H

#include "runtime/container/artifact.h"
#include "runtime/data/dataset.h"
#include "runtime/model/model.h"

typedef struct ft_evaluation {
    const char *output; /* the compared one: "logits", "embedding", "last_hidden_state" */
    size_t samples;     /* evaluated */
    double sqnr_db;     /* of codes against float; may be infinite, NaN where they overflow */
    double cosine;      /* mean over rows */
    double agreement;   /* fraction of rows with the same class or labels; NaN without logits */
    double accuracy[2]; /* float, codes; NaN without labels */
} ft_evaluation;

/* Two forms of one model. */
typedef struct ft_compared {
    const char *path; /* a float artifact, run in float ... */

    /* ... against itself for a purpose of FT_MODE_FAKE; or, where that is NULL, against another. */
    const ft_purpose *fake;
    const char *other;
} ft_compared;

/* Run both on all of `data`, and compare their outputs. */
FT_MUST_USE ft_status ft_evaluate(ft_evaluation *out, const ft_compared *what,
                                  const ft_dataset *data, const char *device, int threads,
                                  ft_progress progress, void *user, ft_error *err);

#endif
