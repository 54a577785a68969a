/*
 * backend.cu - the CUDA backend: which devices there are.
 *
 * It describes devices and holds the first kernels; it does not run plans yet, and says so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/backend.h"
#include "kernels/cuda/common.cuh"

extern "C" {
#include "runtime/error.h"
}

static bool describe(int index, ft_device_info *out)
{
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    cudaDeviceProp properties;
    if (status == cudaSuccess && index < count)
        status = cudaGetDeviceProperties(&properties, index);
    if (status != cudaSuccess || index >= count) {
        snprintf(out->name, sizeof out->name, "cuda");
        snprintf(out->detail, sizeof out->detail, "no CUDA device: %.100s",
                 status == cudaSuccess ? "the driver lists none" : cudaGetErrorString(status));
        return false;
    }
    snprintf(out->name, sizeof out->name, "cuda:%d", index);
    snprintf(out->detail, sizeof out->detail, "%.60s, sm_%d%d, %zu MiB; does not run plans yet",
             properties.name, properties.major, properties.minor, properties.totalGlobalMem >> 20);
    return true;
}

static ft_status open_cuda(ft_device **out, int index, ft_error *err)
{
    ft_device_info info = {};
    *out = NULL;
    if (!describe(index, &info))
        return ft_fail(err, FT_EDEVICE, "device cuda:%d: %s", index, info.detail);
    return ft_fail(err, FT_EUNSUPPORTED, "device %s (%s)", info.name, info.detail);
}

static void close_cuda(ft_device *device)
{
    (void) device;
}

extern "C" const ft_backend ft_backend_cuda = {
    "cuda", describe, open_cuda, close_cuda, NULL, NULL, NULL, NULL, NULL, NULL,
};
