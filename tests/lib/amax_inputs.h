/*
 * amax_inputs.h - the inputs of make-amax.py, bit for bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_AMAX_INPUTS_H
#define FT_TESTS_LIB_AMAX_INPUTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct amax_input {
    const char *name;
    size_t n;
    float *value; /* [n], to be freed */
} amax_input;

size_t amax_input_count(void);
amax_input make_amax_input(size_t index);

/* FNV-1a of `size` bytes. */
uint64_t fnv(const void *bytes, size_t size);

#endif
