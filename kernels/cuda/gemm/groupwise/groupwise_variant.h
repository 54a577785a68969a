/*
 * groupwise_variant.h - the kernels for group-wise GEMMs with each of their tiles, and those that a
 * tuning file has chosen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_VARIANT_H
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_VARIANT_H

#include "kernels/cuda/gemm/groupwise/groupwise.h"
#include "kernels/cuda/gemm_family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel and a tile of groupwise_tiles.h; tile 0 where the kernel has one. */
typedef struct ft_cuda_groupwise_variant {
    ft_cuda_groupwise_kernel kernel;
    int tile;
} ft_cuda_groupwise_variant;

/* All variants, from index 0 on; NULL: there is none any more. */
const ft_cuda_groupwise_variant *ft_cuda_groupwise_variant_at(int index);

/* "wgmma 128x64" */
const char *ft_cuda_groupwise_variant_name(int index);

/* Whether a kernel supports a GEMM, and whether a variant does. */
bool ft_cuda_groupwise_supports(ft_cuda_groupwise_kernel kernel, const ft_cuda_device_props *props,
                                const ft_cuda_groupwise_args *p);
bool ft_cuda_groupwise_variant_supports(const ft_cuda_groupwise_variant *variant,
                                        const ft_cuda_device_props *props,
                                        const ft_cuda_groupwise_args *p);

/* The variant of a kernel with the tile that its cost model selects. */
ft_cuda_groupwise_variant ft_cuda_groupwise_variant_of(ft_cuda_groupwise_kernel kernel,
                                                       const ft_cuda_device_props *props,
                                                       const ft_cuda_groupwise_args *p);

/* cudaErrorNotSupported, and nothing is launched, where the kernel does not support the GEMM. */
int ft_cuda_groupwise_variant_launch(const ft_cuda_groupwise_variant *variant,
                                     const ft_cuda_device_props *props, void *stream,
                                     const ft_cuda_groupwise_args *p);

/* The variant for a GEMM by the tuning file; NULL: the file has none that supports it. */
const ft_cuda_groupwise_variant *ft_cuda_groupwise_variant_tuned(const ft_cuda_device_props *props,
                                                                 const ft_cuda_groupwise_args *p);

#ifdef __cplusplus
}
#endif
#endif
