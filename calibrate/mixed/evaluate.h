/*
 * evaluate.h - the end-to-end error of a quantized model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_EVALUATE_H
#define FT_CALIBRATE_EVALUATE_H

#include "runtime/container/artifact.h"
#include "runtime/data/dataset.h"
#include "runtime/model/model.h"

typedef struct ft_evaluation {
    const char *output; /* that is compared: "logits", "embedding" or "..._hidden_state" */
    size_t samples;     /* evaluated */
    double sqnr_db;     /* of the quantized model against float; may be infinite, NaN on overflow */
    double cosine;      /* mean over rows */
    double agreement;   /* fraction of rows with the same class or labels; NaN without logits */
    double accuracy[2]; /* of the float and the quantized model; NaN without labels */
} ft_evaluation;

/* The two models to compare. */
typedef struct ft_model_pair {
    const char *path; /* a float artifact, run in float ... */

    /*
     * ... against itself, quantized in memory with a configuration of FT_MODE_INT8; or, if that is
     * NULL, against another artifact.
     */
    const ft_quant_config *quantize;
    const char *quantized_path;
} ft_model_pair;

/* Runs both models on all of `data` and compares their outputs. */
FT_MUST_USE ft_status ft_evaluate(ft_evaluation *out, const ft_model_pair *pair,
                                  const ft_dataset *data, const char *device, int threads,
                                  ft_progress_callback progress, void *user, ft_error *err);

#endif
