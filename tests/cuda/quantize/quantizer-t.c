/*
 * quantizer-t.c - the weight quantizer on a GPU agrees with calibration on the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "tests/cuda/quantize/quantizer.h"
#include "tests/lib/ops/gpu.h"

int main(void)
{
    (void) need_gpu();
    check_quantizer();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
