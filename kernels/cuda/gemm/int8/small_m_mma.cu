/*
 * small_m_mma.cu - mma.sync INT8 GEMM for few rows: streams the weights once.
 *
 * With few rows the weights are all the traffic, so they are the 16-row operand of the instruction
 * and tokens the 8-column operand. A warp loads 32 rows of w by 32 k at a time, 1,024 contiguous
 * bytes of COL4_4R2_8C: lane (g, t) = (lane / 4, lane % 4) reads chunks 2t and 2t + 1 of half-tile
 * g, whose words 0, 1 and 2, 3 are operands of two instructions: rows 8 (g / 2) + g % 2 + {0, 2}
 * and + {4, 6}, and k 8t .. 8t + 7, which are eight contiguous bytes of x. (Integer sums do not
 * depend on the order of k as long as both operands agree.)
 *
 * The eight warps of a thread block share 32 columns and split k. Each has its own cp.async
 * pipeline, so warps do not synchronize until the final reduction. Narrow tiles give many thread
 * blocks: on an H200, 8 x 11008 x 4096 took 14.6 us with 32 columns, six stages and three blocks
 * per SM (3.1 of 4.5 TB/s). Other tile shapes were slower (docs/experiments).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/ptx/cp_async.cuh"
#include "kernels/cuda/gemm/int8/mma_gemm.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/layout.h"

enum { WARPS = 8, THREADS = 32 * WARPS, COLUMNS = 32, SLAB = 32, W_BYTES = COLUMNS * SLAB };

/* An odd row length of the partial sums avoids bank conflicts. */
enum { SUMS_ROW = COLUMNS + 1 };

template <int tokens_, int stages_, int blocks_> struct few_tile {
    enum {
        tokens = tokens_,
        stages = stages_,
        blocks = blocks_, /* per SM */
        stage_bytes = W_BYTES + tokens * SLAB,
        ring_bytes = stages * stage_bytes,
        shared = WARPS * ring_bytes, /* also large enough for the partial sums of all warps */
    };
    static_assert(ring_bytes >= tokens * SUMS_ROW * (int) sizeof(int32_t), "the sums have room");
};

/* Tile coordinates and the lane. */
typedef struct few_lane {
    unsigned lane;
    uint32_t first_row, first_col;
    size_t padded_n;
} few_lane;

/* 16-byte chunk c is stored at c ^ c / 8 % 2: the eight lanes of a wavefront differ in g. */
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

/* A lane copies what it reads itself: eight values of every eighth token. */
template <typename tile>
__device__ __forceinline__ void few_copy_x(const ft_cuda_product &p, const few_lane &at,
                                           char *stage, size_t slab)
{
    size_t col = slab * SLAB + at.lane % 4 * 8;
#pragma unroll
    for (unsigned i = 0; i < tile::tokens; i += 8) {
        size_t row = at.first_row + i + at.lane / 4;
        ft_copy_8(stage + W_BYTES + i * SLAB + at.lane * 8, p.x + row * p.k + col,
                  row < p.m && col < p.k);
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

/* This warp's part of split-K: every eighth slice of 32 k. */
template <typename tile>
__device__ __forceinline__ void few_sums(const ft_cuda_product &p, const few_lane &at, char *ring,
                                         unsigned warp, int32_t (&sum)[2][tile::tokens / 8][4])
{
    const size_t ahead = tile::stages * WARPS;
    unsigned own = at.lane / 4 * 8 + at.lane % 4 * 2;
    for (unsigned i = 0; i < tile::stages; i++) /* weights do not depend on the predecessor */
        few_copy_w(p, at, ring + i * tile::stage_bytes, warp + i * WARPS);
    ft_wait_for_predecessor();
    for (unsigned i = 0; i < tile::stages; i++) {
        few_copy_x<tile>(p, at, ring + i * tile::stage_bytes, warp + i * WARPS);
        ft_copy_commit();
    }
    unsigned slot = 0;
    for (size_t slab = warp; slab * SLAB < p.k; slab += WARPS) {
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
        __syncwarp(); /* all lanes have read the stage that is overwritten now */
        if ((slab + ahead) * SLAB < p.k) {
            few_copy_w(p, at, stage, slab + ahead);
            few_copy_x<tile>(p, at, stage, slab + ahead);
        }
        ft_copy_commit();
        few_multiply<tile>(sum, low, high, x);
    }
}

/* Store a warp's partial sums as [token][column]. */
template <typename tile>
__device__ __forceinline__ void few_lay_down(int32_t *partial, unsigned lane,
                                             const int32_t (&sum)[2][tile::tokens / 8][4])
{
    unsigned g = lane / 4, t = lane % 4, col = g / 2 * 8 + g % 2;
#pragma unroll
    for (unsigned i = 0; i < tile::tokens / 8; i++) {
#pragma unroll
        for (unsigned c = 0; c < 8; c++)
            partial[(8 * i + 2 * t + c % 2) * SUMS_ROW + col + c / 2 * 2] = sum[c / 4][i][c % 4];
    }
}

/* blockDim.x = 256; grid = (tiles of tokens, tiles of columns). */
template <typename tile, ft_epilogue epilogue>
__global__ void __launch_bounds__(THREADS, tile::blocks)
    few_kernel(const __grid_constant__ ft_cuda_product p, const ft_out_shape shape)
{
    extern __shared__ __align__(128) char shared[];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t first_row = blockIdx.x * tile::tokens, first_col = blockIdx.y * COLUMNS;
    few_lane at = { lane, first_row, first_col, ft_layout_rows(FT_COL4_4R2_8C, p.n) };
    int32_t sum[2][tile::tokens / 8][4] = {}, *partial = (int32_t *) shared;

    /* what this thread stores: eight columns of one row, if any */
    uint32_t token = threadIdx.x / (COLUMNS / 8), col = threadIdx.x % (COLUMNS / 8) * 8;
    ft_out out;
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        bool inside = token < tile::tokens && first_col + col + i < p.n;
        out.scale[i] = inside ? ft_column_scale(p, first_col + col + i) : 0.0f;
        out.bias[i] = inside ? ft_column_bias(p, first_col + col + i) : 0.0f;
    }

    few_sums<tile>(p, at, shared + warp * tile::ring_bytes, warp, sum);
    ft_let_successor_begin();
    ft_copy_wait<0>(); /* where k is shorter than the pipeline, zero fills are still in flight */
    __syncthreads();   /* all pipelines have been read */
    few_lay_down<tile>(partial + warp * (tile::tokens * SUMS_ROW), lane, sum);
    __syncthreads();
    if (token >= tile::tokens || first_row + token >= p.m)
        return;
    int32_t eight[8] = {};
    for (unsigned i = 0; i < WARPS; i++) {
#pragma unroll
        for (unsigned c = 0; c < 8; c++)
            eight[c] += partial[(i * tile::tokens + token) * SUMS_ROW + col + c];
    }
    ft_out_open(out, p, shape, first_col + col);
    ft_out_eight<epilogue>(out, p, shape, first_row + token, eight);
}

/* ------------------------------------------------------------------------------------------ */

template <typename tile> static constexpr ft_mma_tile entry(float fixed, float step)
{
    return ft_mma_tile{ tile::tokens,
                        COLUMNS,
                        THREADS,
                        tile::blocks,
                        tile::shared,
                        WARPS * SLAB,
                        fixed,
                        step,
                        { few_kernel<tile, FT_EPILOGUE_NONE>, few_kernel<tile, FT_EPILOGUE_GELU>,
                          few_kernel<tile, FT_EPILOGUE_ANY> } };
}

const ft_mma_tile ft_mma_few[FT_MMA_FEW] = {
    entry<few_tile<8, 6, 3>>(0.52f, 0.156f),
    entry<few_tile<16, 6, 3>>(0.39f, 0.247f),
    entry<few_tile<32, 6, 2>>(0.36f, 0.317f),
};
