/*
 * quantizer_emulated-t.c - the weight quantizer agrees with calibration on the CPU, also without a
 * GPU: emulated.c runs its kernels on the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "tests/cuda/quantize/quantizer.h"

int main(void)
{
    check_quantizer();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
