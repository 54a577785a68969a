/*
 * fuzz.h - what every fuzz target defines: libFuzzer calls it, and so does replay.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_FUZZ_FUZZ_H
#define FT_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Always 0.  Whatever `data` holds, it neither crashes nor hangs nor aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A promise of the tested code; a fuzzer reports an abort as it does a crash. */
static inline void require(int kept)
{
    if (!kept)
        abort();
}

#endif
