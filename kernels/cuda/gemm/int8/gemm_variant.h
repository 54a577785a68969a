/*
 * gemm_variant.h - the kernels for INT8 GEMMs with each of their tiles, and those that a tuning
 * file has chosen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_GEMM_VARIANT_H
#define FT_KERNELS_CUDA_GEMM_INT8_GEMM_VARIANT_H

#include "kernels/cuda/gemm_family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel and a tile of it: "wgmma pingpong64"; tile -1: the kernel has one. */
typedef struct ft_cuda_gemm_variant {
    ft_cuda_gemm_kernel kernel;
    int tile;
} ft_cuda_gemm_variant;

/* All variants, from index 0 on; false: there is none any more. */
bool ft_cuda_gemm_variant_at(int index, ft_cuda_gemm_variant *out);
void ft_cuda_gemm_variant_name(const ft_cuda_gemm_variant *variant, char *text, size_t size);
bool ft_cuda_gemm_variant_supports(const ft_cuda_gemm_variant *variant,
                                   const ft_cuda_device_props *props, const ft_cuda_gemm_args *p);
int ft_cuda_gemm_variant_launch(const ft_cuda_gemm_variant *variant,
                                const ft_cuda_device_props *props, void *stream,
                                const ft_cuda_gemm_args *p);

/* The variant for a GEMM by the tuning file; false: the file has none that supports it. */
bool ft_cuda_gemm_variant_tuned(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p,
                                ft_cuda_gemm_variant *out);

#ifdef __cplusplus
}
#endif
#endif
