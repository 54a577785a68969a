/*
 * gemm_mma.cuh - what the two files of the mma.sync product say of their tiles to the launcher.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_MMA_CUH
#define FT_KERNELS_CUDA_GEMM_MMA_CUH

#include "kernels/cuda/gemm_out.cuh"

typedef void ft_mma_kernel(const ft_cuda_product p, const ft_out_shape shape);

/* A block's share of a product; the grid is (tiles of tokens, tiles of columns). */
typedef struct ft_mma_tile {
    int tokens, columns, threads;
    int blocks;               /* that share a multiprocessor */
    int shared;               /* bytes of dynamic shared memory */
    ft_mma_kernel *kernel[3]; /* by ft_epilogue */
} ft_mma_tile;

enum { FT_MMA_MANY = 6, FT_MMA_FEW = 5 };

extern const ft_mma_tile ft_mma_many[FT_MMA_MANY]; /* gemm_mma.cu */
extern const ft_mma_tile ft_mma_few[FT_MMA_FEW];   /* gemm_few.cu */

#endif
