/*
 * random_artifact.h - writes an int8 BERT of any size with random weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_RANDOM_ARTIFACT_H
#define FT_TESTS_BENCH_RANDOM_ARTIFACT_H

#include "runtime/families/family.h"

/* Writes a new file; every amax is 4, so its results are meaningless. */
FT_MUST_USE ft_status random_artifact_write(const char *path, const ft_config *config,
                                            ft_error *err);

#endif
