/*
 * model.h - everything that can be done with the model of an artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_FUZZ_MODEL_H
#define FT_TESTS_FUZZ_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* Bind, lower and plan it, in every way there is, and run it once, where it is small. */
void fuzz_model(const uint8_t *artifact, size_t bytes);

#endif
