/*
 * fuzz.h - the functions of a fuzz target, called by libFuzzer and by replay.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_FUZZ_FUZZ_H
#define FT_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns 0.  Must not crash, hang or abort for any `data`. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Mutates an input in place so that it passes the first checks; optional for a target. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
    __attribute__((weak));

/* A requirement on the tested code; a fuzzer reports an abort as a crash. */
#define require(kept) ((kept) ? (void) 0 : broken(#kept, __FILE__, __LINE__))

static inline void broken(const char *promise, const char *file, int line)
{
    fprintf(stderr, "# %s:%d: requirement not met: %s\n", file, line, promise);
    abort();
}

#endif
