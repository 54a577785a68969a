/*
 * device.c - see device.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/ops/device.h"

#ifdef HAVE_CUDA

#include <cuda_runtime_api.h>
#include <stdio.h>

static bool absent(cudaError_t status, char text[CHIP_TEXT])
{
    snprintf(text, CHIP_TEXT, "no CUDA device: %s",
             status == cudaSuccess ? "the driver lists none" : cudaGetErrorString(status));
    return false;
}

bool find_chip(ft_cuda_chip *chip, char text[CHIP_TEXT])
{
    struct cudaDeviceProp properties;
    int count = 0, built_for = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0)
        status = cudaGetDeviceProperties(&properties, 0);
    if (status == cudaSuccess && count > 0)
        status = (cudaError_t) ft_cuda_probe(&built_for);
    if (status != cudaSuccess || count == 0)
        return absent(status, text);
    *chip = (ft_cuda_chip){
        .capability = 10 * properties.major + properties.minor,
        .multiprocessors = properties.multiProcessorCount,
        .shared = properties.sharedMemPerBlockOptin,
        .overlaps = built_for >= 90,
    };
#ifdef HAVE_WGMMA
    chip->has_wgmma = chip->capability == 90 && built_for == 90;
#endif
    snprintf(text, CHIP_TEXT, "%.200s, capability %d", properties.name, chip->capability);
    return true;
}

#endif
