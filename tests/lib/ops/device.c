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

static bool absent(cudaError_t status, char text[GPU_TEXT])
{
    snprintf(text, GPU_TEXT, "no CUDA device: %s",
             status == cudaSuccess ? "the driver lists none" : cudaGetErrorString(status));
    return false;
}

bool find_gpu(ft_cuda_device_props *props, char text[GPU_TEXT])
{
    struct cudaDeviceProp properties;
    int count = 0, built_for = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0)
        status = cudaGetDeviceProperties(&properties, 0);
    if (status == cudaSuccess && count > 0)
        status = (cudaError_t) ft_cuda_probe_arch(&built_for);
    if (status != cudaSuccess || count == 0)
        return absent(status, text);
    *props = (ft_cuda_device_props){
        .capability = 10 * properties.major + properties.minor,
        .sm_count = properties.multiProcessorCount,
        .smem_bytes = properties.sharedMemPerBlockOptin,
        .has_pdl = built_for >= 90,
    };
#ifdef HAVE_WGMMA
    props->has_wgmma = props->capability == 90 && built_for == 90;
#endif
    snprintf(text, GPU_TEXT, "%.200s, capability %d", properties.name, props->capability);
    return true;
}

#endif
