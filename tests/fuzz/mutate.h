/*
 * mutate.h - changes that a fuzzer makes: to bytes, and to JSON that stays JSON.
 *
 * All are decided by a number alone, so that a run can be repeated.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_FUZZ_MUTATE_H
#define FT_TESTS_FUZZ_MUTATE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* The next number, and one below n, which is at least 1. */
uint64_t mutate_next(uint64_t *state);
size_t mutate_below(uint64_t *state, size_t n);

/* Change, insert, remove or repeat some bytes; returns how many there are then, at most `room`. */
size_t mutate_bytes(uint8_t *data, size_t size, size_t room, uint64_t *state);

/*
 * Change values of a document: one alone, two for each other, or a number wherever it stands, so
 * that what belongs together may still fit.
 */
void mutate_json(json_t *root, uint64_t *state);

/* The same for its text, or some bytes of it where it is none. */
size_t mutate_text(uint8_t *data, size_t size, size_t room, uint64_t *state);

#endif
