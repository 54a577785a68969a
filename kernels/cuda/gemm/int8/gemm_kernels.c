/*
 * gemm_kernels.c - names, support predicates and launchers of the INT8 GEMM kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/gemm/int8/gemm_kernels.h"

#include <cuda_runtime_api.h>
#include <string.h>

/* FT_CUDA_GEMM accepts both names. */
typedef struct gemm_kernel {
    const char *name, *former_name;
    bool (*supports)(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p);
    int (*launch)(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p);
} gemm_kernel;

static const gemm_kernel kernels[FT_CUDA_GEMM_KERNELS] = {
    { "simt", "plain", ft_cuda_gemm_simt_supports, ft_cuda_gemm_simt },
    { "mma", "mma", ft_cuda_gemm_mma_supports, ft_cuda_gemm_mma },
    { "cublaslt", "lt", ft_cuda_gemm_cublaslt_supports, ft_cuda_gemm_cublaslt },
    { "wgmma", "wgmma", ft_cuda_gemm_wgmma_supports, ft_cuda_gemm_wgmma },
    { "gemv", "stream", ft_cuda_gemm_gemv_supports, ft_cuda_gemm_gemv },
};

static bool is_kernel(ft_cuda_gemm_kernel kernel)
{
    return (int) kernel >= 0 && kernel < FT_CUDA_GEMM_KERNELS;
}

const char *ft_cuda_gemm_name(ft_cuda_gemm_kernel kernel)
{
    return is_kernel(kernel) ? kernels[kernel].name : "?";
}

int ft_cuda_gemm_kernel_named(const char *name)
{
    int kernel = 0;
    while (kernel < FT_CUDA_GEMM_KERNELS && strcmp(name, kernels[kernel].name) != 0 &&
           strcmp(name, kernels[kernel].former_name) != 0)
        kernel++;
    return kernel;
}

bool ft_cuda_gemm_supports(ft_cuda_gemm_kernel kernel, const ft_cuda_device_props *props,
                           const ft_cuda_gemm_args *p)
{
    return kernels[kernel].supports(props, p);
}

int ft_cuda_gemm_launch_kernel(ft_cuda_gemm_kernel kernel, const ft_cuda_device_props *props,
                               void *stream, const ft_cuda_gemm_args *p)
{
    if (!ft_cuda_gemm_args_valid(p))
        return (int) cudaErrorInvalidValue;
    if (!is_kernel(kernel) || !ft_cuda_gemm_supports(kernel, props, p))
        return (int) cudaErrorNotSupported;
    return kernels[kernel].launch(props, stream, p);
}
