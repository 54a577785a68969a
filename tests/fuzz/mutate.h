/*
 * mutate.h - mutations of bytes, and of JSON that remains valid JSON.
 *
 * All mutations are a function of a seed, so that they are reproducible.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_FUZZ_MUTATE_H
#define FT_TESTS_FUZZ_MUTATE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* The next random number, and one in [0, n), where n is at least 1. */
uint64_t mutate_next(uint64_t *state);
size_t mutate_below(uint64_t *state, size_t n);

/* Changes, inserts, removes or repeats some bytes; returns the new size, at most `room`. */
size_t mutate_bytes(uint8_t *data, size_t size, size_t room, uint64_t *state);

/*
 * Changes values of a document: one value, two values swapped, or all equal numbers, so that
 * related values may remain consistent.
 */
void mutate_json(json_t *root, uint64_t *state);

/* Mutates JSON text, or some of its bytes if it is not valid JSON. */
size_t mutate_text(uint8_t *data, size_t size, size_t room, uint64_t *state);

#endif
