/*
 * use_tuned.c - the kernels that a tuning file has chosen for a device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/gemm/int8/gemm_variant.h"
#include "kernels/cuda/host/device.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

ft_status ft_cuda_identify(const ft_device *device, ft_device_identity *out, ft_error *err)
{
    struct cudaDeviceProp properties;
    int driver = 0, code = (int) cudaGetDeviceProperties(&properties, device->props.index);
    if (code == 0)
        code = (int) cudaDriverGetVersion(&driver);
    if (code != 0)
        return ft_cuda_fail(err, &device->props, code, "its name");
    snprintf(out->name, sizeof out->name, "%.95s", properties.name);
    snprintf(out->driver, sizeof out->driver, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    return FT_OK;
}

ft_status ft_cuda_use_tuned(ft_device *device, const ft_tuned_gemm *tuned, size_t count,
                            ft_error *err)
{
    size_t known = 0;
    ft_cuda_tuned_gemm *own = ft_calloc(count, sizeof *own);
    if (own == NULL && count > 0)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu tuned GEMMs", count);
    for (size_t i = 0; i < count; i++) {
        own[known].problem = tuned[i].problem;
        known += ft_cuda_gemm_variant_named(tuned[i].kernel, &own[known].variant);
    }
    free((void *) (uintptr_t) device->props.tuned);
    device->props.tuned = own;
    device->props.num_tuned = known;
    return FT_OK;
}
