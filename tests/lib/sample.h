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
    unsigned char seed; /* other seeds, other weights */
    size_t piece;       /* bytes that a producer gives at once; 0: all that it is asked for */
    size_t large;       /* columns of one more I8 matrix of 130 rows; 0: none */
    const char *name;   /* of that one; NULL: large.weight */
    bool mixed;         /* in state int8, one matrix is in blocks */
    bool force;
    ft_progress_callback progress;
    void *user;
} sample;

/* Write it; the weights are a function of seed, tensor and position alone. */
ft_status sample_write(const char *path, const sample *what, ft_error *err);

/* What byte `index` of tensor number `tensor` is. */
unsigned char sample_byte(const sample *what, int tensor, size_t index);

/* What byte `index` of the scales, or zeros, of a matrix in blocks is, of so many rows. */
unsigned char sample_group_byte(bool zeros, size_t rows, size_t index);

/* Whether the artifact holds the weights of that sample. */
bool sample_holds(const ft_artifact *artifact, const sample *what);

#endif
