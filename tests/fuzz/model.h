/*
 * model.h - exercises all operations on the model of an artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_FUZZ_MODEL_H
#define FT_TESTS_FUZZ_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* Binds, lowers and plans the model in every supported way, and runs it once if it is small. */
void fuzz_model(const uint8_t *artifact, size_t bytes);

#endif
