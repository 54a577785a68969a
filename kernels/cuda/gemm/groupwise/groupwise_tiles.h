/*
 * groupwise_tiles.h - tiles of the group-wise GEMM kernels: their choice by cost models, and
 * launches with a given one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_TILES_H
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_TILES_H

#include "kernels/cuda/gemm/groupwise/groupwise.h"

/* groupwise_mma.cu: tokens; x of F32 has the first two, other types all but M32. */
typedef enum ft_cuda_groupwise_mma_tile {
    FT_CUDA_GROUPWISE_MMA_M16,
    FT_CUDA_GROUPWISE_MMA_M32,
    FT_CUDA_GROUPWISE_MMA_M64,
    FT_CUDA_GROUPWISE_MMA_M128,
    FT_CUDA_GROUPWISE_MMA_TILES
} ft_cuda_groupwise_mma_tile;

/* groupwise_wgmma.cu: weight rows and tokens. */
typedef enum ft_cuda_groupwise_wgmma_tile {
    FT_CUDA_GROUPWISE_WGMMA_N192_M16,
    FT_CUDA_GROUPWISE_WGMMA_N192_M32,
    FT_CUDA_GROUPWISE_WGMMA_N192_M64, /* 4 bits */
    FT_CUDA_GROUPWISE_WGMMA_N128_M64,
    FT_CUDA_GROUPWISE_WGMMA_N128_M128,
    FT_CUDA_GROUPWISE_WGMMA_TILES
} ft_cuda_groupwise_wgmma_tile;

/* groupwise_int8.cu: kernels for few tokens, or weight rows and tokens. */
typedef enum ft_cuda_groupwise_int8_tile {
    FT_CUDA_GROUPWISE_INT8_RESIDENT,
    FT_CUDA_GROUPWISE_INT8_SMALL_M,
    FT_CUDA_GROUPWISE_INT8_N32_M16,
    FT_CUDA_GROUPWISE_INT8_N128_M32,
    FT_CUDA_GROUPWISE_INT8_N128_M128,
    FT_CUDA_GROUPWISE_INT8_WGMMA_N64_M32, /* groupwise_int8_wgmma.cu */
    FT_CUDA_GROUPWISE_INT8_WGMMA_N64_M64,
    FT_CUDA_GROUPWISE_INT8_WGMMA_N128_M128,
    FT_CUDA_GROUPWISE_INT8_TILES
} ft_cuda_groupwise_int8_tile;

/* Whether a tile computes a GEMM that the kernel supports. */
bool ft_cuda_groupwise_mma_tile_fits(ft_cuda_groupwise_mma_tile tile,
                                     const ft_cuda_device_props *props,
                                     const ft_cuda_groupwise_args *p);
bool ft_cuda_groupwise_wgmma_tile_fits(ft_cuda_groupwise_wgmma_tile tile,
                                       const ft_cuda_groupwise_args *p);
bool ft_cuda_groupwise_int8_tile_fits(ft_cuda_groupwise_int8_tile tile,
                                      const ft_cuda_device_props *props,
                                      const ft_cuda_groupwise_args *p);

ft_cuda_groupwise_mma_tile ft_cuda_groupwise_mma_select(const ft_cuda_device_props *props,
                                                        const ft_cuda_groupwise_args *p);
ft_cuda_groupwise_wgmma_tile ft_cuda_groupwise_wgmma_select(const ft_cuda_device_props *props,
                                                            const ft_cuda_groupwise_args *p);
ft_cuda_groupwise_int8_tile ft_cuda_groupwise_int8_select(const ft_cuda_device_props *props,
                                                          const ft_cuda_groupwise_args *p);

/* The kernel with a tile that fits. */
int ft_cuda_groupwise_mma(ft_cuda_groupwise_mma_tile tile, const ft_cuda_device_props *props,
                          void *stream, const ft_cuda_groupwise_args *p);
int ft_cuda_groupwise_wgmma(ft_cuda_groupwise_wgmma_tile tile, const ft_cuda_device_props *props,
                            void *stream, const ft_cuda_groupwise_args *p);
int ft_cuda_groupwise_int8(ft_cuda_groupwise_int8_tile tile, const ft_cuda_device_props *props,
                           void *stream, const ft_cuda_groupwise_args *p);

#endif
