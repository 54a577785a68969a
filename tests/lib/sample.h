/*
 * sample.h - a small artifact with an entry of every kind, for tests that write or break one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_SAMPLE_H
#define FT_TESTS_LIB_SAMPLE_H

#include "runtime/container/artifact.h"

typedef struct sample {
    ft_artifact_state state;
    unsigned char seed; /* different seeds give different weights */
    size_t piece;       /* bytes that a producer returns per call; 0: all that are requested */
    size_t large;       /* columns of an additional I8 matrix of 130 rows; 0: none */
    const char *name;   /* of that matrix; NULL: large.weight */
    bool mixed;         /* in state int8, one matrix is group-wise quantized */
    bool force;
    ft_progress_callback progress;
    void *user;
} sample;

/* Writes the artifact; the weights depend only on seed, tensor and position. */
ft_status sample_write(const char *path, const sample *what, ft_error *err);

/* Byte `index` of tensor number `tensor`. */
unsigned char sample_byte(const sample *what, int tensor, size_t index);

/* Byte `index` of the scales or zero points of a group-wise matrix with `rows` rows. */
unsigned char sample_group_byte(bool zeros, size_t rows, size_t index);

/* Whether the artifact holds the weights of that sample. */
bool sample_holds(const ft_artifact *artifact, const sample *what);

#endif
