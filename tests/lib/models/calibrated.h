/*
 * calibrated.h - a tiny checkpoint as a float and as an int8 artifact, opened and run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_CALIBRATED_H
#define FT_TESTS_LIB_MODELS_CALIBRATED_H

#include "runtime/ft.h"
#include "tests/lib/models/tiny.h"

enum { CALIBRATED_PATH = 96, CALIBRATED_SAMPLES = 24 };

/* In the checkpoint's folder. */
typedef struct calibrated {
    char real[CALIBRATED_PATH];    /* the float artifact */
    char samples[CALIBRATED_PATH]; /* CALIBRATED_SAMPLES rows of up to 8 random tokens, masked */
    char quantized[CALIBRATED_PATH]; /* the int8 artifact, residual streams in float */
} calibrated;

/* Writes the checkpoint, converts it and calibrates it; a failure ends the test. */
void calibrated_make(calibrated *out, tiny *t);

/* Open a model or a session; a failure ends the test. */
ft_model *calibrated_open(const char *path, const ft_model_options *options);
ft_session *calibrated_session(const ft_model *model, const ft_session_options *options);

/* Matrices [rows, cols]; NULL: not set. */
typedef struct model_input {
    int rows, cols;
    const int32_t *ids, *mask, *types;
} model_input;

/* Sets the inputs and runs; a failure ends the test. */
void calibrated_run(ft_session *session, const model_input *input);

/* All elements of a result, for free(); a missing result ends the test. */
float *calibrated_get(const ft_session *session, const char *name, size_t *count);

/* Both at once, in a new session with one thread and defaults otherwise. */
float *calibrated_result(const ft_model *model, const model_input *input, const char *name,
                         size_t *count);

#endif
