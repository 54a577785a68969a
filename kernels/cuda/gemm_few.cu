/*
 * gemm_few.cu - the int8 product by mma.sync, for few rows: weights stream through once.
 *
 * With few rows the weights are all the traffic, so they stand on the side of the instruction that
 * has 16 rows, and the tokens on the side of 8.  A warp takes 32 rows of w by 32 codes of k at a
 * time, 1,024 neighbouring bytes of COL4_4R2_8C: lane (g, t) = (lane / 4, lane % 4) reads the
 * chunks 2t and 2t + 1 of half-tile g, whose words 0, 1 and 2, 3 are operands of two instructions:
 * rows 8 (g / 2) + g % 2 + {0, 2} and + {4, 6}, and the codes 8t .. 8t + 7 of k, which are eight
 * neighbouring bytes of x.  (Sums of integers do not care about the order of k, as long as both
 * operands agree.)
 *
 * The warps of a block share its columns and split k, and each has a ring of its own in shared
 * memory, filled by asynchronous copies: nobody waits for anybody before the sums are added at the
 * end.  Eight stages are 64 KiB under way on a multiprocessor; 36 would cover 1 us at 4.8 TB/s.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/gemm_mma.cuh"
#include "kernels/cuda/gemm_out.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/layout.h"

enum { WARPS = 8, THREADS = 32 * WARPS, SLAB = 32, W_BYTES = 32 * SLAB };

/* A block's tile; `splits` warps share 32 columns. */
template <int tokens_, int columns_, int stages_, int blocks_> struct few_tile {
    enum {
        tokens = tokens_,
        columns = columns_,
        stages = stages_,
        blocks = blocks_, /* that share a multiprocessor */
        groups = columns / 32,
        splits = WARPS / groups,
        stage_bytes = W_BYTES + tokens * SLAB,
        ring_bytes = stages * stage_bytes,
        row = columns + 1, /* of partial sums: no two lanes of a store meet in a bank */
        sums_bytes = splits * tokens * row * (int) sizeof(int32_t),
        shared = WARPS * ring_bytes > sums_bytes ? WARPS *ring_bytes : sums_bytes,
    };
};

/* Where a lane copies from and reads: its warp's columns, the block's tokens. */
typedef struct few_lane {
    unsigned lane;
    uint32_t first_row, first_col;
    size_t padded_n;
} few_lane;

/* 16-byte chunk c of a warp's weights goes to c ^ c / 8 % 2: lanes that read at once differ in g.
 */
__device__ __forceinline__ unsigned few_place(unsigned chunk)
{
    return (chunk ^ chunk / 8 % 2) * 16;
}

__device__ __forceinline__ void few_copy_w(const ft_cuda_product &p, const few_lane &at,
                                           char *stage, size_t slab)
{
    const int8_t *w = p.w + slab * SLAB * at.padded_n + (size_t) at.first_col * SLAB;
#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
        unsigned chunk = at.lane + 32 * i;
        bool inside = slab * SLAB < p.k && at.first_col + chunk / 16 * 8 < at.padded_n;
        ft_copy_16(stage + few_place(chunk), w + chunk * 16, inside);
    }
}

template <typename tile>
__device__ __forceinline__ void few_copy_x(const ft_cuda_product &p, const few_lane &at,
                                           char *stage, size_t slab)
{
    size_t col = slab * SLAB + at.lane % 4 * 8;
#pragma unroll
    for (unsigned i = 0; i < tile::tokens; i += 8) {
        size_t row = at.first_row + i + at.lane / 4;
        bool inside = row < p.m && col < p.k;
        ft_copy_8(stage + W_BYTES + i * SLAB + at.lane * 8, p.x + row * p.k + col, inside);
    }
}

/* One stage: 32 columns by all tokens. */
template <typename tile>
__device__ __forceinline__ void few_multiply(int32_t (&sum)[2][tile::tokens / 8][4],
                                             const uint4 &low, const uint4 &high,
                                             const uint2 (&x)[tile::tokens / 8])
{
    const uint32_t w[2][4] = { { low.x, low.y, high.x, high.y }, { low.z, low.w, high.z, high.w } };
#pragma unroll
    for (int i = 0; i < tile::tokens / 8; i++) {
        ft_mma_codes(sum[0][i], w[0], x[i].x, x[i].y);
        ft_mma_codes(sum[1][i], w[1], x[i].x, x[i].y);
    }
}

/* This warp's share of k, from slab `split` on in steps of tile::splits. */
template <typename tile>
__device__ __forceinline__ void few_sums(const ft_cuda_product &p, const few_lane &at, char *ring,
                                         unsigned split, int32_t (&sum)[2][tile::tokens / 8][4])
{
    const size_t ahead = tile::stages * tile::splits;
    unsigned own = at.lane / 4 * 8 + at.lane % 4 * 2;
    for (unsigned i = 0; i < tile::stages; i++) /* weights belong to no predecessor */
        few_copy_w(p, at, ring + i * tile::stage_bytes, split + i * tile::splits);
    ft_wait_for_predecessor();
    for (unsigned i = 0; i < tile::stages; i++) {
        few_copy_x<tile>(p, at, ring + i * tile::stage_bytes, split + i * tile::splits);
        ft_copy_commit();
    }
    unsigned slot = 0;
    for (size_t slab = split; slab * SLAB < p.k; slab += tile::splits) {
        char *stage = ring + slot * tile::stage_bytes;
        slot = slot + 1 == tile::stages ? 0 : slot + 1;
        ft_copy_wait<tile::stages - 1>();
        __syncwarp();
        uint4 low = *(const uint4 *) (stage + few_place(own));
        uint4 high = *(const uint4 *) (stage + few_place(own + 1));
        uint2 x[tile::tokens / 8];
#pragma unroll
        for (int i = 0; i < tile::tokens / 8; i++)
            x[i] = *(const uint2 *) (stage + W_BYTES + i * 8 * SLAB + at.lane * 8);
        __syncwarp(); /* all lanes have read what is now overwritten */
        if ((slab + ahead) * SLAB < p.k) {
            few_copy_w(p, at, stage, slab + ahead);
            few_copy_x<tile>(p, at, stage, slab + ahead);
        }
        ft_copy_commit();
        few_multiply<tile>(sum, low, high, x);
    }
}

/* Lay down the warp's sums as [split][token][column]. */
template <typename tile>
__device__ __forceinline__ void few_lay_down(int32_t *partial, unsigned lane, unsigned group,
                                             unsigned split,
                                             const int32_t (&sum)[2][tile::tokens / 8][4])
{
    unsigned g = lane / 4, t = lane % 4, col = group * 32 + g / 2 * 8 + g % 2;
#pragma unroll
    for (int i = 0; i < tile::tokens / 8; i++) {
#pragma unroll
        for (int c = 0; c < 8; c++) {
            unsigned token = 8 * (unsigned) i + 2 * t + (unsigned) c % 2;
            partial[(split * tile::tokens + token) * tile::row + col + 2 * (c / 2)] =
                sum[c / 4][i][c % 4];
        }
    }
}

/* blockDim.x = 256; grid = (tiles of tokens, tiles of columns). */
template <typename tile, ft_epilogue epilogue>
__global__ void __launch_bounds__(THREADS, tile::blocks)
    few_kernel(const __grid_constant__ ft_cuda_product p, const ft_out_shape shape)
{
    extern __shared__ __align__(128) char shared[];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned group = warp % tile::groups, split = warp / tile::groups;
    uint32_t first_row = blockIdx.x * tile::tokens, first_col = blockIdx.y * tile::columns;
    few_lane at = { lane, first_row, first_col + group * 32, ft_layout_rows(FT_COL4_4R2_8C, p.n) };
    int32_t sum[2][tile::tokens / 8][4] = {};

    /* what this thread will store: eight columns of one row, if any */
    uint32_t token = threadIdx.x / (tile::columns / 8);
    uint32_t col = threadIdx.x % (tile::columns / 8) * 8;
    ft_out out;
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        bool inside = token < tile::tokens && first_col + col + i < p.n;
        out.scale[i] = inside ? ft_column_scale(p, first_col + col + i) : 0.0f;
        out.bias[i] = inside ? ft_column_bias(p, first_col + col + i) : 0.0f;
    }

    few_sums<tile>(p, at, shared + warp * tile::ring_bytes, split, sum);
    ft_let_successor_begin();
    __syncthreads(); /* all rings are read */
    int32_t *partial = (int32_t *) shared;
    few_lay_down<tile>(partial, lane, group, split, sum);
    __syncthreads();
    if (token >= tile::tokens || first_row + token >= p.m)
        return;
    int32_t eight[8] = {};
    for (unsigned i = 0; i < tile::splits; i++) {
#pragma unroll
        for (unsigned c = 0; c < 8; c++)
            eight[c] += partial[(i * tile::tokens + token) * tile::row + col + c];
    }
    ft_out_open(out, p, shape, first_col + col);
    ft_out_eight<epilogue>(out, p, shape, first_row + token, eight);
}

template <typename tile> static constexpr ft_mma_tile entry()
{
    return ft_mma_tile{ tile::tokens,
                        tile::columns,
                        THREADS,
                        tile::blocks,
                        tile::shared,
                        { few_kernel<tile, FT_EPILOGUE_NONE>, few_kernel<tile, FT_EPILOGUE_GELU>,
                          few_kernel<tile, FT_EPILOGUE_ANY> } };
}

const ft_mma_tile ft_mma_few[FT_MMA_FEW] = {
    entry<few_tile<8, 32, 6, 3>>(),  entry<few_tile<16, 32, 6, 3>>(),
    entry<few_tile<16, 64, 6, 3>>(), entry<few_tile<32, 32, 6, 2>>(),
    entry<few_tile<32, 64, 6, 2>>(),
};
