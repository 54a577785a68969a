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
    FT_CUDA_WGMMA_TURNS_64,  /* ping-pong, 64 tokens by 192 columns */
    FT_CUDA_WGMMA_TURNS_128, /* ... 128 tokens; no residual, no row scales to float32 */
    FT_CUDA_WGMMA_TOGETHER,  /* cooperative, 128 tokens, 64 per warpgroup */
    FT_CUDA_WGMMA_FEW,       /* 64 tokens by 64 columns */
    FT_CUDA_WGMMA_FEW_2,     /* ... split-K over a cluster of 2 */
    FT_CUDA_WGMMA_FEW_4,
    FT_CUDA_WGMMA_FEW_96,    /* 64 tokens by 96 columns */
    FT_CUDA_WGMMA_DEEP_64_2, /* float outputs, one thread block per SM: 64 by 64, 2 splits */
    FT_CUDA_WGMMA_DEEP_96,   /* ... 64 by 96 */
    FT_CUDA_WGMMA_DEEP_128_2,
    FT_CUDA_WGMMA_DEEP_192,
    FT_CUDA_WGMMA_PAIR_64_2, /* 128 tokens */
    FT_CUDA_WGMMA_PAIR_96,
    FT_CUDA_WGMMA_PAIR_128_2,
    FT_CUDA_WGMMA_PAIR_192,
    FT_CUDA_WGMMA_GENERAL, /* any epilogue; ping-pong, 64 tokens by 128 columns */
    FT_CUDA_WGMMA_TILES
} ft_cuda_wgmma_tile;

/* "turns64", ... */
const char *ft_cuda_wgmma_tile_name(ft_cuda_wgmma_tile tile);

/* Whether this tile computes a GEMM that ft_cuda_gemm_wgmma_takes(); GENERAL always does. */
bool ft_cuda_wgmma_tile_takes(ft_cuda_wgmma_tile tile, const ft_cuda_product *p);
ft_cuda_wgmma_tile ft_cuda_wgmma_choose(const ft_cuda_chip *chip, const ft_cuda_product *p);
int ft_cuda_wgmma_run(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                      const ft_cuda_product *p);

/* Kernels by output type, and for small m. */
int ft_cuda_wgmma_codes(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                        const ft_cuda_product *p);
int ft_cuda_wgmma_floats(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                         const ft_cuda_product *p);
int ft_cuda_wgmma_few(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                      const ft_cuda_product *p);
int ft_cuda_wgmma_deep(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                       const ft_cuda_product *p);

#ifdef __cplusplus
}
#endif
#endif
