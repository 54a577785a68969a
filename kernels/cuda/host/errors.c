/*
 * errors.c - texts of GPU errors: no device, out of memory, or a lost context.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/device.h"
#include "runtime/error.h"

bool ft_cuda_is_context_lost(int code)
{
    switch ((cudaError_t) code) {
    case cudaErrorAssert:
    case cudaErrorContextIsDestroyed:
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
    case cudaErrorNvlinkUncorrectable:
        return true;
    default:
        return false;
    }
}

static const char context_lost[] = "the device's context is lost: this process cannot use it again";

ft_status ft_cuda_fail(ft_error *err, const ft_cuda_device_props *props, int code, const char *what)
{
    (void) cudaGetLastError(); /* this error has been reported */
    if (code == cudaErrorMemoryAllocation)
        return ft_fail(err, FT_ENOMEM, "cuda:%d: %s: %s", props->index, what,
                       cudaGetErrorString((cudaError_t) code));
    return ft_fail(err, FT_EDEVICE, "cuda:%d: %s: %s%s%s", props->index, what,
                   cudaGetErrorString((cudaError_t) code),
                   ft_cuda_is_context_lost(code) ? "; " : "",
                   ft_cuda_is_context_lost(code) ? context_lost : "");
}

ft_status ft_cuda_alloc(void **out, const ft_cuda_device_props *props, size_t bytes,
                        const char *what, ft_error *err)
{
    size_t available = 0, total = 0;
    *out = NULL;
    cudaError_t status = cudaMalloc(out, bytes > 0 ? bytes : 1);
    if (status == cudaSuccess)
        return FT_OK;
    if (status != cudaErrorMemoryAllocation)
        return ft_cuda_fail(err, props, (int) status, what);
    (void) cudaGetLastError();
    (void) cudaMemGetInfo(&available, &total);
    return ft_fail(err, FT_ENOMEM, "cuda:%d: %s: %zu bytes asked, %zu free of %zu", props->index,
                   what, bytes, available, total);
}

void ft_cuda_explain_no_device(int code, int driver, char *out, size_t capacity)
{
    if (code == cudaErrorInsufficientDriver && driver > 0)
        snprintf(out, capacity, "the driver supports CUDA %d.%d, this build needs %d.%d",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                 CUDART_VERSION % 1000 / 10);
    else if (code == cudaErrorInsufficientDriver)
        snprintf(out, capacity, "no CUDA device: no driver");
    else if (ft_cuda_is_context_lost(code))
        snprintf(out, capacity, "%s", context_lost);
    else
        snprintf(out, capacity, "no CUDA device: %.90s",
                 code == cudaSuccess ? "the driver lists none"
                                     : cudaGetErrorString((cudaError_t) code));
}

void ft_cuda_explain_unusable(const char *device, int code, char *out, size_t capacity)
{
    const char *reason = cudaGetErrorString((cudaError_t) code);
    if (code == cudaErrorNoKernelImageForDevice)
        reason = "this build has no code for its architecture";
    else if (ft_cuda_is_context_lost(code))
        reason = context_lost;
    snprintf(out, capacity, "%.40s: %.80s", device, reason);
}
