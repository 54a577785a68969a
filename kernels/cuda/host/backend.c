/*
 * backend.c - the CUDA backend: which devices there are, and opening one.
 *
 * The host side is C and speaks to the CUDA runtime; only kernels and their launchers are .cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/device.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <cublas_v2.h>
#include <stdlib.h>

static int driver_version(void)
{
    int version = 0;
    (void) cudaDriverGetVersion(&version);
    return version;
}

static bool inspect(int index, ft_cuda_chip *chip, ft_device_info *out)
{
    int count = 0, built_for = 0;
    struct cudaDeviceProp properties;
    cudaError_t status = cudaGetDeviceCount(&count);
    snprintf(out->name, sizeof out->name, "cuda:%d", index);
    if (status != cudaSuccess || index >= count) {
        (void) cudaGetLastError();
        if (count == 0)
            snprintf(out->name, sizeof out->name, "cuda");
        if (count > 0)
            snprintf(out->detail, sizeof out->detail, "no such device: the driver lists %d", count);
        else
            ft_cuda_explain_absence((int) status, driver_version(), out->detail,
                                    sizeof out->detail);
        return false;
    }
    snprintf(properties.name, sizeof properties.name, "device");
    status = cudaGetDeviceProperties(&properties, index);
    if (status == cudaSuccess)
        status = cudaSetDevice(index);
    if (status == cudaSuccess)
        status = (cudaError_t) ft_cuda_probe(&built_for);
    if (status != cudaSuccess) {
        (void) cudaGetLastError();
        ft_cuda_explain_refusal(properties.name, (int) status, out->detail, sizeof out->detail);
        return false;
    }
    *chip = (ft_cuda_chip){
        .index = index,
        .capability = 10 * properties.major + properties.minor,
        .multiprocessors = properties.multiProcessorCount,
        .shared = properties.sharedMemPerBlockOptin,
        .overlaps = built_for >= 90, /* older code does not wait for its predecessor */
    };
#ifdef HAVE_WGMMA
    chip->has_wgmma = chip->capability == 90 && built_for == 90;
#endif
    snprintf(out->detail, sizeof out->detail, "%.60s, sm_%d, %zu MiB", properties.name,
             chip->capability, properties.totalGlobalMem >> 20);
    return true;
}

static bool describe(int index, ft_device_info *out)
{
    ft_cuda_chip chip;
    out->usable = inspect(index, &chip, out);
    return out->usable;
}

/* The library refuses from sm_90 on; before that it is asked. */
static bool has_imma(const ft_cuda_chip *chip)
{
    cublasHandle_t blas;
    if (chip->capability >= 90 || cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS)
        return false;
    bool takes = ft_cuda_gemm_lt_probe(blas);
    (void) cublasDestroy(blas);
    return takes;
}

static ft_status open_cuda(ft_device **out, int index, ft_error *err)
{
    ft_device_info info = { 0 };
    ft_cuda_chip chip;
    *out = NULL;
    if (!inspect(index, &chip, &info))
        return ft_fail(err, FT_EDEVICE, "device cuda:%d: %s", index, info.detail);
    *out = ft_array(1, sizeof **out);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a device");
    (*out)->chip = chip;
    (*out)->chip.has_imma = has_imma(&chip);
    return FT_OK;
}

/* Heads that kernels have room for, and that lie as their loads need them. */
static ft_status accept_heads(const ft_plan *plan, const ft_op *op, const char *what, ft_error *err)
{
    bool plain = op->in[0] < 0; /* keys and values without queries */
    int width =
        plan->value[op->in[plain ? 1 : 0]].cols / (plain ? op->attr.kv_heads : op->attr.heads);
    const char *name = plan->value[ft_op_named(op)].name;
    if (width > FT_CUDA_WIDEST_HEAD)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: %s %s: heads of %d elements, but on a GPU they have at most %d", what,
                       ft_op_name(op->kind), name, width, FT_CUDA_WIDEST_HEAD);
    if (op->kind != FT_OP_ATTENTION && width % 8 != 0)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: %s %s: heads of %d elements, but on a GPU a multiple of 8 is needed",
                       what, ft_op_name(op->kind), name, width);
    return FT_OK;
}

static ft_status accept_op(const ft_plan *plan, const ft_op *op, const char *what, ft_error *err)
{
    if (op->kind == FT_OP_ATTENTION || op->kind == FT_OP_STORE || op->kind == FT_OP_ATTEND)
        return accept_heads(plan, op, what, err);
    return FT_OK;
}

static void close_cuda(ft_device *device)
{
    (void) cudaSetDevice(device->chip.index);
    for (int i = 0; i < device->uploads; i++)
        (void) cudaFree(device->weights[i]);
    free(device->weights);
    free(device);
}

const ft_backend ft_backend_cuda = {
    .name = "cuda",
    .keeps_half = true,
    .runs_on = true,
    .describe = describe,
    .open = open_cuda,
    .close = close_cuda,
    .upload = ft_cuda_upload,
    .accept = accept_op,
    .prepare = ft_cuda_prepare,
    .release = ft_cuda_release,
    .write = ft_cuda_write,
    .read = ft_cuda_read,
    .chosen = ft_cuda_chosen,
    .run = ft_cuda_run,
    .run_op = ft_cuda_run_op,
    .explain = ft_cuda_explain,
    .wait = ft_cuda_wait,
    .collect = ft_cuda_collect,
    .compare = ft_cuda_compare,
};
