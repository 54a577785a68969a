/*
 * decoder_missing.c - operations of decoders that this backend does not compute yet: plans with
 * them are refused when a model is opened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/device.h"

#define MISSING(name)                                                                              \
    int ft_cuda_##name(const ft_cuda_args *args)                                                   \
    {                                                                                              \
        (void) args;                                                                               \
        return (int) cudaErrorNotSupported;                                                        \
    }

MISSING(note)
MISSING(choose)
