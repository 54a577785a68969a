/*
 * wgmma_f16_large_m_epilogue.cuh - epilogue of wgmma_f16_large_m.cuh: bias, activation, rounding,
 * and TMA stores.
 *
 * A warp finishes its 16 rows without the others: it writes 64 columns at a time to shared memory
 * with stmatrix, in the 128-byte swizzle, and one lane stores them. The tensor map clips what lies
 * beyond y.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_LARGE_M_EPILOGUE_CUH
#define FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_LARGE_M_EPILOGUE_CUH

#include "kernels/cuda/gemm/f16/wgmma_f16_large_m.cuh"

#ifdef FT_HAS_WGMMA

/* The bias of a tile's columns, on its way from memory to shared memory. */
template <class TILE> struct large_m_bias {
    static constexpr int count =
        (TILE::cols + LARGE_M_WARPGROUP_THREADS - 1) / LARGE_M_WARPGROUP_THREADS;
    float value[count];

    /* No bias is -0, which changes no sum. */
    __device__ __forceinline__ large_m_bias(const large_m_params &a, const large_m_coord &coord)
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            int col = (int) threadIdx.x % LARGE_M_WARPGROUP_THREADS + i * LARGE_M_WARPGROUP_THREADS;
            large_m_column column = large_m_column_of(a, coord.col + col);
            const float *bias = a.bias[column.gemm];
            value[i] =
                bias != NULL && col < TILE::cols && column.col < a.n ? bias[column.col] : -0.0f;
        }
    }
    __device__ __forceinline__ void store_smem(float (&to)[TILE::cols]) const
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            int col = (int) threadIdx.x % LARGE_M_WARPGROUP_THREADS + i * LARGE_M_WARPGROUP_THREADS;
            if (col < TILE::cols)
                to[col] = value[i];
        }
    }
};

/* 16 columns of a warp's 16 rows, from column `col` of the tile: two 8 x 8 blocks, each of 16 rows.
 */
template <ft_activation activation, ft_dtype dtype>
__device__ __forceinline__ void large_m_write_x16(char *chunk, const float *sums, const float *bias,
                                                  int col)
{
    unsigned lane = threadIdx.x % 32, row = lane % 16;
    uint32_t matrix[4];
    const float2 *pair = (const float2 *) (bias + col) + lane % 4;
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        v[i] = sums[i] + (i % 2 == 0 ? pair[i / 4 * 4].x : pair[i / 4 * 4].y);
    ft_activate_vec_as<activation, 8>(v);
#pragma unroll
    for (int i = 0; i < 4; i++)
        matrix[i] = ft_pack_f16x2<dtype>(v[2 * i], v[2 * i + 1]);
    unsigned vector = (unsigned) col % LARGE_M_STORE_COLS / 8 + lane / 16;
    ft_stmatrix_x4(ft_smem_address(chunk) + row * 128 + (vector ^ row % 8) * 16, matrix);
}

/* Stores a warp's 16 rows of y, from row `row`; sums are those of all columns of the tile. */
template <class TILE, ft_activation activation, ft_dtype dtype>
__device__ __forceinline__ void
large_m_store_rows(large_m_smem<TILE> &s, const large_m_params &a, const large_m_coord &coord,
                   int row, const float *bias, const float (&sums)[TILE::cols / 2])
{
    bool leads = threadIdx.x % 32 == 0;
#pragma unroll
    for (int col = 0; col < TILE::cols; col += LARGE_M_STORE_COLS) {
        char *chunk = s.y[threadIdx.x / 32 - 4][col / LARGE_M_STORE_COLS % TILE::stores];
        if (leads)
            ft_bulk_wait_read_all_but<TILE::stores - 1>();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < LARGE_M_STORE_COLS; i += 16)
            large_m_write_x16<activation, dtype>(chunk, &sums[(col + i) / 2], bias, col + i);
        ft_fence_proxy_async();
        __syncwarp();
        large_m_column column = large_m_column_of(a, coord.col + col);
        if (leads && row < a.m && column.col < a.n)
            ft_tma_store_2d(chunk, &a.y[column.gemm], row, 2 * column.col);
        ft_bulk_commit();
    }
}

/*
 * Blocks of 64 rows one after the other through the same code, in the registers of the first: a
 * loop that exceeds the instruction cache runs at less than half the speed.
 */
template <class TILE, ft_activation activation, ft_dtype dtype>
__device__ __forceinline__ void large_m_epilogue(large_m_smem<TILE> &s, const large_m_params &a,
                                                 const large_m_coord &coord, int own_row,
                                                 const float *bias, large_m_acc<TILE> &sums)
{
    int row = coord.row + own_row + (int) threadIdx.x % LARGE_M_WARPGROUP_THREADS / 32 * 16;
#pragma unroll 1
    for (int block = 0;; block++, row += 64) {
        large_m_store_rows<TILE, activation, dtype>(s, a, coord, row, bias, sums[0]);
        if (block + 1 == TILE::m64_blocks)
            break;
#pragma unroll
        for (int i = 0; i < TILE::cols / 2; i++)
            sums[0][i] = sums[TILE::m64_blocks - 1][i];
    }
}

#endif
#endif
