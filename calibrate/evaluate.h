/*
 * evaluate.h - what quantization costs at the end of the model, before anything is packed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_EVALUATE_H
#define FT_CALIBRATE_EVALUATE_H

#include "runtime/artifact.h"
#include "runtime/dataset.h"
#include "runtime/model.h"

typedef struct ft_evaluation {
    const char *output; /* the compared one: "logits", "embedding", "last_hidden_state" */
    size_t samples;     /* evaluated */
    double sqnr_db;     /* of faked int8 against float; may be infinite, NaN where they overflow */
    double cosine;      /* mean over rows */
    double agreement;   /* fraction of rows with the same largest logit; NaN without logits */
    double accuracy[2]; /* float, int8; NaN without labels */
} ft_evaluation;

/*
 * Run `path`, a float artifact, in float and for the purpose `fake` of FT_MODE_FAKE, on all of
 * `data`, and compare their outputs.
 */
FT_MUST_USE ft_status ft_evaluate(ft_evaluation *out, const char *path, const ft_purpose *fake,
                                  const ft_dataset *data, const char *device, int threads,
                                  ft_progress progress, void *user, ft_error *err);

#endif
