/*
 * ops-decoder.c - operations of decoders against the oracle.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops.h"

#define UNTESTED(name)                                                                             \
    void test_##name(bench *on)                                                                    \
    {                                                                                              \
        (void) on;                                                                                 \
    }

UNTESTED(note)
UNTESTED(choose)
