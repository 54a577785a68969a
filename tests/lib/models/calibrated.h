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
    char codes[CALIBRATED_PATH];   /* the int8 artifact, residual streams in float */
} calibrated;

/* Write the checkpoint as it stands, convert it, and calibrate it; ends the test on a failure. */
void calibrated_make(calibrated *out, tiny *t);

/* Open what must open. */
ft_model *calibrated_open(const char *path, const ft_model_options *options);
ft_session *calibrated_session(const ft_model *model, const ft_session_options *options);

/* Matrices [rows, cols]; NULL: not set. */
typedef struct model_input {
    int rows, cols;
    const int32_t *ids, *mask, *types;
} model_input;

/* Set and run what must run. */
void calibrated_run(ft_session *session, const model_input *input);

/* A result that must be there: all its elements, for free(). */
float *calibrated_get(const ft_session *session, const char *name, size_t *count);

/* Both at once, in a session of its own with the defaults but one thread. */
float *calibrated_result(const ft_model *model, const model_input *input, const char *name,
                         size_t *count);

#endif
