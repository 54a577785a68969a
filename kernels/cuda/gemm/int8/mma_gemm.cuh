/*
 * mma_gemm.cuh - what the two files of the mma.sync product tell the launcher of their tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_MMA_GEMM_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_MMA_GEMM_CUH

#include "kernels/cuda/gemm/int8/store_out.cuh"

typedef void ft_mma_kernel(const ft_cuda_product p, const ft_out_shape shape);

/* A block's share of a product; the grid is (tiles of tokens, tiles of columns). */
typedef struct ft_mma_tile {
    int tokens, columns, threads;
    int blocks; /* that may share a multiprocessor */
    int shared; /* bytes of dynamic shared memory */
    int depth;  /* codes of k that a block takes in a step */
    /* microseconds on an H200: of a block's begin and end, and of a step where the tile is alone */
    float fixed, step;
    ft_mma_kernel *kernel[3]; /* by ft_epilogue */
} ft_mma_tile;

enum { FT_MMA_MANY = 3, FT_MMA_FEW = 3 };

extern const ft_mma_tile ft_mma_many[FT_MMA_MANY]; /* mma_gemm.cu */
extern const ft_mma_tile ft_mma_few[FT_MMA_FEW];   /* small_m_mma.cu */

#endif
