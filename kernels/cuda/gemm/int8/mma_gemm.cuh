/*
 * mma_gemm.cuh - tile shapes of the two mma.sync INT8 kernels, for the launcher.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_MMA_GEMM_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_MMA_GEMM_CUH

#include "kernels/cuda/gemm/int8/store_out.cuh"

typedef void ft_mma_kernel(const ft_cuda_gemm_args p, const ft_output_layout shape);

/* The tile of a thread block; the grid is (tiles of tokens, tiles of columns). */
typedef struct ft_mma_tile {
    int tokens, columns, threads;
    int blocks_per_sm; /* thread blocks per SM */
    int smem_bytes;    /* bytes of dynamic shared memory */
    int tile_k;        /* k per mainloop iteration */
    /*
     * cost model, microseconds on an H200: prologue and epilogue, and one iteration of a lone tile
     */
    float us_fixed, us_per_k_tile;
    ft_mma_kernel *kernel[3]; /* by ft_epilogue */
} ft_mma_tile;

enum { FT_MMA_LARGE_M_TILES = 3, FT_MMA_SMALL_M_TILES = 3 };

extern const ft_mma_tile ft_mma_large_m_tiles[FT_MMA_LARGE_M_TILES]; /* mma_gemm.cu */
extern const ft_mma_tile ft_mma_small_m_tiles[FT_MMA_SMALL_M_TILES]; /* small_m_mma.cu */

#endif
