/*
 * random_artifact.h - an int8 BERT of any size, made of random codes, as a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_RANDOM_ARTIFACT_H
#define FT_TESTS_BENCH_RANDOM_ARTIFACT_H

#include "runtime/families/family.h"

/* Write a new file; every range is 4, so what it computes means nothing. */
FT_MUST_USE ft_status random_artifact_write(const char *path, const ft_config *config,
                                            ft_error *err);

#endif
