/*
 * wgmma_kernels.h - the tiles of the int8 product of sm_90a, for the file that chooses and for
 * tests of each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_WGMMA_KERNELS_H
#define FT_KERNELS_CUDA_GEMM_INT8_WGMMA_KERNELS_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How two warpgroups share the work (wgmma_gemm.cuh), or kernels for few tokens. */
typedef enum ft_cuda_wgmma_tile {
    FT_CUDA_WGMMA_TURNS_64,  /* tiles of 64 tokens by 192 weights */
    FT_CUDA_WGMMA_TURNS_128, /* ... of 128 tokens; no residual, no scales of rows to float32 */
    FT_CUDA_WGMMA_TOGETHER,  /* 128 tokens, 64 a warpgroup */
    FT_CUDA_WGMMA_FEW,       /* 64 tokens by 64 weights */
    FT_CUDA_WGMMA_FEW_2,     /* ... a tile by 2 blocks, each half of k */
    FT_CUDA_WGMMA_FEW_4,
    FT_CUDA_WGMMA_FEW_96,    /* 64 tokens by 96 weights */
    FT_CUDA_WGMMA_DEEP_64_2, /* to floats only, one block a multiprocessor: 64 by 64 by 2 blocks */
    FT_CUDA_WGMMA_DEEP_96,   /* ... 64 by 96 */
    FT_CUDA_WGMMA_DEEP_128_2,
    FT_CUDA_WGMMA_DEEP_192,
    FT_CUDA_WGMMA_PAIR_64_2, /* the same with 128 tokens */
    FT_CUDA_WGMMA_PAIR_96,
    FT_CUDA_WGMMA_PAIR_128_2,
    FT_CUDA_WGMMA_PAIR_192,
    FT_CUDA_WGMMA_GENERAL, /* any epilogue; in turns, 64 tokens by 128 weights */
    FT_CUDA_WGMMA_TILES
} ft_cuda_wgmma_tile;

/* "turns64", ... */
const char *ft_cuda_wgmma_tile_name(ft_cuda_wgmma_tile tile);

/* Whether this tile computes a product that ft_cuda_gemm_wgmma_takes(); GENERAL always does. */
bool ft_cuda_wgmma_tile_takes(ft_cuda_wgmma_tile tile, const ft_cuda_product *p);
ft_cuda_wgmma_tile ft_cuda_wgmma_choose(const ft_cuda_chip *chip, const ft_cuda_product *p);
int ft_cuda_wgmma_run(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                      const ft_cuda_product *p);

/* The kernels: by what they write, and for few tokens. */
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
