/*
 * wgmma_kernels.h - tile shapes of the wgmma INT8 GEMM, for tile selection and for tests of each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_WGMMA_KERNELS_H
#define FT_KERNELS_CUDA_GEMM_INT8_WGMMA_KERNELS_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ping-pong or cooperative consumer warpgroups (wgmma_gemm.cuh), or kernels for small m. */
typedef enum ft_cuda_wgmma_tile {
    FT_CUDA_WGMMA_PINGPONG_64,       /* ping-pong, 64 tokens by 192 columns */
    FT_CUDA_WGMMA_PINGPONG_128,      /* ... 128 tokens; no residual, no row scales to float32 */
    FT_CUDA_WGMMA_COOPERATIVE_128,   /* cooperative, 128 tokens, 64 per warpgroup */
    FT_CUDA_WGMMA_SMALL_M_64,        /* 64 tokens by 64 columns */
    FT_CUDA_WGMMA_SMALL_M_64_SPLIT2, /* ... split-K over a cluster of 2 */
    FT_CUDA_WGMMA_SMALL_M_64_SPLIT4,
    FT_CUDA_WGMMA_SMALL_M_96,     /* 64 tokens by 96 columns */
    FT_CUDA_WGMMA_M64_N64_SPLIT2, /* float outputs, one thread block per SM: 64 by 64, 2 splits */
    FT_CUDA_WGMMA_M64_N96,        /* ... 64 by 96 */
    FT_CUDA_WGMMA_M64_N128_SPLIT2,
    FT_CUDA_WGMMA_M64_N192,
    FT_CUDA_WGMMA_M128_N64_SPLIT2, /* 128 tokens */
    FT_CUDA_WGMMA_M128_N96,
    FT_CUDA_WGMMA_M128_N128_SPLIT2,
    FT_CUDA_WGMMA_M128_N192,
    FT_CUDA_WGMMA_ANY_EPILOGUE, /* any epilogue; ping-pong, 64 tokens by 128 columns */
    FT_CUDA_WGMMA_TILE_COUNT
} ft_cuda_wgmma_tile;

/* "pingpong64", ... */
const char *ft_cuda_wgmma_tile_name(ft_cuda_wgmma_tile tile);

/* Whether this tile computes a GEMM that ft_cuda_gemm_wgmma_supports(); GENERAL always does. */
bool ft_cuda_wgmma_tile_supports(ft_cuda_wgmma_tile tile, const ft_cuda_gemm_args *p);
ft_cuda_wgmma_tile ft_cuda_wgmma_select(const ft_cuda_device_props *props,
                                        const ft_cuda_gemm_args *p);
int ft_cuda_wgmma_launch(ft_cuda_wgmma_tile tile, const ft_cuda_device_props *props, void *stream,
                         const ft_cuda_gemm_args *p);

/* Kernels by output type, and for small m. */
int ft_cuda_wgmma_int8_out(ft_cuda_wgmma_tile tile, const ft_cuda_device_props *props, void *stream,
                           const ft_cuda_gemm_args *p);
int ft_cuda_wgmma_float_out(ft_cuda_wgmma_tile tile, const ft_cuda_device_props *props,
                            void *stream, const ft_cuda_gemm_args *p);
int ft_cuda_wgmma_small_m(ft_cuda_wgmma_tile tile, const ft_cuda_device_props *props, void *stream,
                          const ft_cuda_gemm_args *p);
int ft_cuda_wgmma_split_k(ft_cuda_wgmma_tile tile, const ft_cuda_device_props *props, void *stream,
                          const ft_cuda_gemm_args *p);

#ifdef __cplusplus
}
#endif
#endif
