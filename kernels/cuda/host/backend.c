/*
 * backend.c - the CUDA backend: lists, opens and closes devices, and checks operations.
 *
 * The host side is C and calls the CUDA runtime API; only kernels and their launchers are .cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/device.h"
#include "kernels/cuda/host/h2d_copy.h"
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

static bool query_device(int index, ft_cuda_device_props *props, ft_device_info *out)
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
            ft_cuda_explain_no_device((int) status, driver_version(), out->detail,
                                      sizeof out->detail);
        return false;
    }
    snprintf(properties.name, sizeof properties.name, "device");
    status = cudaGetDeviceProperties(&properties, index);
    if (status == cudaSuccess)
        status = cudaSetDevice(index);
    if (status == cudaSuccess)
        status = (cudaError_t) ft_cuda_probe_arch(&built_for);
    if (status != cudaSuccess) {
        (void) cudaGetLastError();
        ft_cuda_explain_unusable(properties.name, (int) status, out->detail, sizeof out->detail);
        return false;
    }
    *props = (ft_cuda_device_props){
        .index = index,
        .capability = 10 * properties.major + properties.minor,
        .sm_count = properties.multiProcessorCount,
        .smem_bytes = properties.sharedMemPerBlockOptin,
        .has_pdl = built_for >= 90, /* older code does not wait for its predecessor */
    };
#ifdef HAVE_WGMMA
    props->has_wgmma = props->capability == 90 && built_for == 90;
#endif
    snprintf(out->detail, sizeof out->detail, "%.60s, sm_%d, %zu MiB", properties.name,
             props->capability, properties.totalGlobalMem >> 20);
    return true;
}

static bool describe(int index, ft_device_info *out)
{
    ft_cuda_device_props props;
    out->usable = query_device(index, &props, out);
    return out->usable;
}

/* cuBLASLt does not support COL32 from sm_90 on; older devices are probed. */
static bool has_imma(const ft_cuda_device_props *props)
{
    cublasHandle_t blas;
    if (props->capability >= 90 || cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS)
        return false;
    bool supported = ft_cuda_gemm_cublaslt_probe(blas);
    (void) cublasDestroy(blas);
    return supported;
}

static ft_status open_cuda(ft_device **out, int index, ft_error *err)
{
    ft_device_info info = { 0 };
    ft_cuda_device_props props;
    *out = NULL;
    if (!query_device(index, &props, &info))
        return ft_fail(err, FT_EDEVICE, "device cuda:%d: %s", index, info.detail);
    *out = ft_calloc(1, sizeof **out);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a device");
    (*out)->props = props;
    (*out)->props.has_imma = has_imma(&props);
    (*out)->opening = ft_cuda_h2d_begin(index);
    return FT_OK;
}

static void read_ahead(ft_device *device, const void *file, size_t bytes)
{
    ft_cuda_h2d_read_ahead(device->opening, file, bytes);
}

/* Check that heads fit the tiles of the kernels and are aligned for their vector loads. */
static ft_status check_heads(const ft_plan *plan, const ft_op *op, const char *what, ft_error *err)
{
    bool kv_only = op->in[0] < 0; /* keys and values without queries */
    int width =
        plan->value[op->in[kv_only ? 1 : 0]].cols / (kv_only ? op->attr.kv_heads : op->attr.heads);
    const char *name = plan->value[ft_op_label_value(op)].name;
    if (width > FT_CUDA_MAX_HEAD_SIZE)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: %s %s: heads of %d elements, but the GPU kernels support at most %d",
                       what, ft_op_name(op->kind), name, width, FT_CUDA_MAX_HEAD_SIZE);
    if (ft_op_uses_cache(op->kind) && width % 8 != 0)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: %s %s: heads of %d elements, but the GPU kernels need a multiple of 8",
                       what, ft_op_name(op->kind), name, width);
    return FT_OK;
}

static ft_status check_op(const ft_plan *plan, const ft_op *op, const char *what, ft_error *err)
{
    return ft_op_has_heads(op->kind) ? check_heads(plan, op, what, err) : FT_OK;
}

static ft_status free_memory(ft_device *device, size_t *bytes, ft_error *err)
{
    size_t total;
    int code = (int) cudaSetDevice(device->props.index);
    if (code == 0)
        code = (int) cudaMemGetInfo(bytes, &total);
    return code == 0 ? FT_OK : ft_cuda_fail(err, &device->props, code, "free memory");
}

static void close_cuda(ft_device *device)
{
    ft_cuda_h2d_abandon(device->opening);
    ft_cuda_h2d_finish_close(device->closing);
    (void) cudaSetDevice(device->props.index);
    for (int i = 0; i < device->uploads; i++)
        (void) cudaFree(device->weights[i]);
    ft_cuda_generator_free(device->generator);
    free((void *) (uintptr_t) device->props.tuned);
    free(device->weights);
    free(device);
}

const ft_backend ft_backend_cuda = {
    .name = "cuda",
    .f16_activations = true,
    .runs_async = true,
    .describe = describe,
    .open = open_cuda,
    .close = close_cuda,
    .free_memory = free_memory,
    .read_ahead = read_ahead,
    .upload = ft_cuda_upload,
    .supports_op = check_op,
    .prepare = ft_cuda_prepare,
    .release = ft_cuda_release,
    .write = ft_cuda_write,
    .read = ft_cuda_read,
    .chosen = ft_cuda_poll_tokens,
    .run = ft_cuda_run,
    .run_range = ft_cuda_run_range,
    .alloc_saved = ft_cuda_alloc_saved,
    .free_saved = ft_cuda_free_saved,
    .save = ft_cuda_save,
    .restore = ft_cuda_restore,
    .run_op = ft_cuda_run_op,
    .describe_gemm = ft_cuda_describe_gemm,
    .wait = ft_cuda_wait,
    .collect = ft_cuda_collect,
    .benchmark_gemm = ft_cuda_benchmark_gemm,
    .tune_gemm = ft_cuda_tune_gemm,
    .identify = ft_cuda_identify,
    .use_tuned = ft_cuda_use_tuned,
    .fill_normal = ft_cuda_fill_normal,
    .quantizer = &ft_cuda_weight_quantizer,
};
