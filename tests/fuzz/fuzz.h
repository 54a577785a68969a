/*
 * fuzz.h - what fuzz targets define: libFuzzer calls it, and so does replay.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_FUZZ_FUZZ_H
#define FT_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Always 0.  Whatever `data` holds, it neither crashes nor hangs nor aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Change an input in place, in a way that gets past the first checks; a target need not have it. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
    __attribute__((weak));

/* A promise of the tested code; a fuzzer reports an abort as it does a crash. */
#define require(kept) ((kept) ? (void) 0 : broken(#kept, __FILE__, __LINE__))

static inline void broken(const char *promise, const char *file, int line)
{
    fprintf(stderr, "# %s:%d: broken promise: %s\n", file, line, promise);
    abort();
}

#endif
