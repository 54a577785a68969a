/*
 * use_tuned.c - what identifies a device in a tuning file, and the kernels that a file has chosen
 * for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/device.h"
#include "kernels/cuda/tune/families.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <dlfcn.h>
#include <stdlib.h>

/* ---- Identity ----------------------------------------------------------------------------- */

/*
 * The version of the driver itself, such as 580.159.03.  CUDA names only the version of CUDA that
 * it supports, which many drivers share; NVML, which comes with the driver, names the driver.
 */
static bool read_driver_version(char *out, unsigned capacity)
{
    enum { NO_GPUS = 1, NO_ATTACH = 2 };
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (nvml == NULL)
        return false;
    int (*init)(unsigned) = (int (*)(unsigned)) dlsym(nvml, "nvmlInitWithFlags");
    int (*version)(char *, unsigned) =
        (int (*)(char *, unsigned)) dlsym(nvml, "nvmlSystemGetDriverVersion");
    int (*shutdown)(void) = (int (*)(void)) dlsym(nvml, "nvmlShutdown");
    bool found = false;
    if (init != NULL && version != NULL && shutdown != NULL && init(NO_GPUS | NO_ATTACH) == 0) {
        found = version(out, capacity) == 0;
        (void) shutdown();
    }
    (void) dlclose(nvml);
    return found;
}

ft_status ft_cuda_identify(const ft_device *device, ft_device_identity *out, ft_error *err)
{
    struct cudaDeviceProp properties;
    int cuda = 0, code = (int) cudaGetDeviceProperties(&properties, device->props.index);
    if (code == 0)
        code = (int) cudaDriverGetVersion(&cuda);
    if (code != 0)
        return ft_cuda_fail(err, &device->props, code, "its name");
    snprintf(out->name, sizeof out->name, "%.95s", properties.name);
    if (!read_driver_version(out->driver, sizeof out->driver))
        snprintf(out->driver, sizeof out->driver, "CUDA %d.%d", cuda / 1000, cuda % 1000 / 10);
    return FT_OK;
}

/* ---- Kernels ------------------------------------------------------------------------------ */

ft_status ft_cuda_use_tuned(ft_device *device, const ft_tuned_gemm *tuned, size_t count,
                            ft_error *err)
{
    ft_cuda_tuned_gemm *own = ft_calloc(count, sizeof *own);
    if (own == NULL && count > 0)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu tuned GEMMs", count);
    for (size_t i = 0; i < count; i++) {
        const ft_cuda_gemm_family *family = ft_cuda_gemm_family_of(&tuned[i].problem);
        int candidate = family == NULL ? -1 : ft_cuda_gemm_candidate_named(family, tuned[i].kernel);
        own[i] = (ft_cuda_tuned_gemm){ tuned[i].problem, candidate };
    }
    free((void *) (uintptr_t) device->props.tuned);
    device->props.tuned = own;
    device->props.num_tuned = count;
    return FT_OK;
}
