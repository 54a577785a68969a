/*
 * make_selftest.h - makes the self-test of a quantized artifact from a few samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_SELFTEST_MAKE_SELFTEST_H
#define FT_CALIBRATE_SELFTEST_MAKE_SELFTEST_H

#include "runtime/data/dataset.h"
#include "runtime/model/model.h"

/* The float and the quantized model. Both run on the CPU. */
typedef struct ft_selftest_models {
    const char *path; /* the float artifact */

    /* It is quantized in memory; or, if that is NULL, the quantized artifact is another file. */
    const ft_quant_config *quantize;
    const char *quantized_path;
} ft_selftest_models;

/*
 * Runs both models on the first samples of `data` and formats the entry
 * (runtime/selftest/selftest.h). Long samples are cut, large images shrunk. The caller frees
 * *bytes. FT_ENOMEM; the errors of models and images.
 */
FT_MUST_USE ft_status ft_selftest_make(char **bytes, size_t *size, const ft_selftest_models *models,
                                       const ft_dataset *data, ft_error *err);

#endif
