/*
 * mma_gemm.cuh - tile shapes of the two mma.sync INT8 kernels, for the launcher.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_MMA_GEMM_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_MMA_GEMM_CUH

#include "kernels/cuda/gemm/int8/store_out.cuh"

typedef void ft_mma_kernel(const ft_cuda_product p, const ft_out_shape shape);

/* The tile of a thread block; the grid is (tiles of tokens, tiles of columns). */
typedef struct ft_mma_tile {
    int tokens, columns, threads;
    int blocks; /* thread blocks per SM */
    int shared; /* bytes of dynamic shared memory */
    int depth;  /* k per mainloop iteration */
    /*
     * cost model, microseconds on an H200: prologue and epilogue, and one iteration of a lone tile
     */
    float fixed, step;
    ft_mma_kernel *kernel[3]; /* by ft_epilogue */
} ft_mma_tile;

enum { FT_MMA_MANY = 3, FT_MMA_FEW = 3 };

extern const ft_mma_tile ft_mma_many[FT_MMA_MANY]; /* mma_gemm.cu */
extern const ft_mma_tile ft_mma_few[FT_MMA_FEW];   /* small_m_mma.cu */

#endif
