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

enum { WARPS = 8, THREADS = 32 * WARPS, COLUMNS = 32, SLICE_K = 32, W_BYTES = COLUMNS * SLICE_K };

/* An odd row length of the partial sums avoids bank conflicts. */
enum { ACC_PITCH = COLUMNS + 1 };

template <int tokens_, int stages_, int blocks_> struct small_m_tile {
    enum {
        tokens = tokens_,
        stages = stages_,
        blocks = blocks_, /* per SM */
        stage_bytes = W_BYTES + tokens * SLICE_K,
        pipeline_bytes = stages * stage_bytes,
        shared = WARPS * pipeline_bytes, /* also large enough for the partial sums of all warps */
    };
    static_assert(pipeline_bytes >= tokens * ACC_PITCH * (int) sizeof(int32_t),
                  "the sums have room");
};

/* Tile coordinates and the lane. */
typedef struct lane_coord {
    unsigned lane;
    uint32_t first_row, first_col;
    size_t padded_n;
} lane_coord;

/* 16-byte chunk c is stored at c ^ c / 8 % 2: the eight lanes of a wavefront differ in g. */
__device__ __forceinline__ unsigned swizzled_offset(unsigned chunk)
{
    return (chunk ^ chunk / 8 % 2) * 16;
}

__device__ __forceinline__ void copy_w(const ft_cuda_gemm_args &p, const lane_coord &at,
                                       char *stage, size_t slice)
{
    const int8_t *w = p.w + slice * SLICE_K * at.padded_n + (size_t) at.first_col * SLICE_K;
#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
        unsigned chunk = at.lane + 32 * i;
        bool inside = slice * SLICE_K < p.k && at.first_col + chunk / 16 * 8 < at.padded_n;
        ft_cp_async_16(stage + swizzled_offset(chunk), w + chunk * 16, inside);
    }
}

/* A lane copies what it reads itself: eight values of every eighth token. */
template <typename tile>
__device__ __forceinline__ void copy_x(const ft_cuda_gemm_args &p, const lane_coord &at,
                                       char *stage, size_t slice)
{
    size_t col = slice * SLICE_K + at.lane % 4 * 8;
#pragma unroll
    for (unsigned i = 0; i < tile::tokens; i += 8) {
        size_t row = at.first_row + i + at.lane / 4;
        ft_cp_async_8(stage + W_BYTES + i * SLICE_K + at.lane * 8, p.x + row * p.k + col,
                      row < p.m && col < p.k);
    }
}

/* One stage: 32 columns by all tokens. */
template <typename tile>
__device__ __forceinline__ void mma_k32(int32_t (&sum)[2][tile::tokens / 8][4], const uint4 &low,
                                        const uint4 &high, const uint2 (&x)[tile::tokens / 8])
{
    const uint32_t w[2][4] = { { low.x, low.y, high.x, high.y }, { low.z, low.w, high.z, high.w } };
#pragma unroll
    for (int i = 0; i < tile::tokens / 8; i++) {
        ft_mma_i8(sum[0][i], w[0], x[i].x, x[i].y);
        ft_mma_i8(sum[1][i], w[1], x[i].x, x[i].y);
    }
}

/* This warp's part of split-K: every eighth slice of 32 k. */
template <typename tile>
__device__ __forceinline__ void mainloop(const ft_cuda_gemm_args &p, const lane_coord &at,
                                         char *pipeline_smem, unsigned warp,
                                         int32_t (&sum)[2][tile::tokens / 8][4])
{
    const size_t slices_in_flight = tile::stages * WARPS;
    unsigned own_chunk = at.lane / 4 * 8 + at.lane % 4 * 2;
    for (unsigned i = 0; i < tile::stages; i++) /* weights do not depend on the predecessor */
        copy_w(p, at, pipeline_smem + i * tile::stage_bytes, warp + i * WARPS);
    ft_pdl_wait();
    for (unsigned i = 0; i < tile::stages; i++) {
        copy_x<tile>(p, at, pipeline_smem + i * tile::stage_bytes, warp + i * WARPS);
        ft_cp_async_commit();
    }
    unsigned stage_index = 0;
    for (size_t slice = warp; slice * SLICE_K < p.k; slice += WARPS) {
        char *stage = pipeline_smem + stage_index * tile::stage_bytes;
        stage_index = stage_index + 1 == tile::stages ? 0 : stage_index + 1;
        ft_cp_async_wait<tile::stages - 1>();
        __syncwarp();
        uint4 low = *(const uint4 *) (stage + swizzled_offset(own_chunk));
        uint4 high = *(const uint4 *) (stage + swizzled_offset(own_chunk + 1));
        uint2 x[tile::tokens / 8];
#pragma unroll
        for (int i = 0; i < tile::tokens / 8; i++)
            x[i] = *(const uint2 *) (stage + W_BYTES + i * 8 * SLICE_K + at.lane * 8);
        __syncwarp(); /* all lanes have read the stage that is overwritten now */
        if ((slice + slices_in_flight) * SLICE_K < p.k) {
            copy_w(p, at, stage, slice + slices_in_flight);
            copy_x<tile>(p, at, stage, slice + slices_in_flight);
        }
        ft_cp_async_commit();
        mma_k32<tile>(sum, low, high, x);
    }
}

/* Store a warp's partial sums as [token][column]. */
template <typename tile>
__device__ __forceinline__ void store_partial(int32_t *partial, unsigned lane,
                                              const int32_t (&sum)[2][tile::tokens / 8][4])
{
    unsigned g = lane / 4, t = lane % 4, col = g / 2 * 8 + g % 2;
#pragma unroll
    for (unsigned i = 0; i < tile::tokens / 8; i++) {
#pragma unroll
        for (unsigned c = 0; c < 8; c++)
            partial[(8 * i + 2 * t + c % 2) * ACC_PITCH + col + c / 2 * 2] = sum[c / 4][i][c % 4];
    }
}

/* blockDim.x = 256; grid = (tiles of tokens, tiles of columns). */
template <typename tile, ft_epilogue epilogue>
__global__ void __launch_bounds__(THREADS, tile::blocks)
    small_m_kernel(const __grid_constant__ ft_cuda_gemm_args p, const ft_output_layout shape)
{
    extern __shared__ __align__(128) char shared[];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t first_row = blockIdx.x * tile::tokens, first_col = blockIdx.y * COLUMNS;
    lane_coord at = { lane, first_row, first_col, ft_layout_rows(FT_COL4_4R2_8C, p.n) };
    int32_t sum[2][tile::tokens / 8][4] = {}, *partial = (int32_t *) shared;

    /* what this thread stores: eight columns of one row, if any */
    uint32_t token = threadIdx.x / (COLUMNS / 8), col = threadIdx.x % (COLUMNS / 8) * 8;
    ft_output_x8 out;
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        bool inside = token < tile::tokens && first_col + col + i < p.n;
        out.scale[i] = inside ? ft_column_scale(p, first_col + col + i) : 0.0f;
        out.bias[i] = inside ? ft_column_bias(p, first_col + col + i) : 0.0f;
    }

    mainloop<tile>(p, at, shared + warp * tile::pipeline_bytes, warp, sum);
    ft_pdl_launch_dependents();
    ft_cp_async_wait<0>(); /* where k is shorter than the pipeline, zero fills are still in flight
                            */
    __syncthreads();       /* all pipelines have been read */
    store_partial<tile>(partial + warp * (tile::tokens * ACC_PITCH), lane, sum);
    __syncthreads();
    if (token >= tile::tokens || first_row + token >= p.m)
        return;
    int32_t acc8[8] = {};
    for (unsigned i = 0; i < WARPS; i++) {
#pragma unroll
        for (unsigned c = 0; c < 8; c++)
            acc8[c] += partial[(i * tile::tokens + token) * ACC_PITCH + col + c];
    }
    ft_output_x8_init(out, p, shape, first_col + col);
    ft_output_x8_store<epilogue>(out, p, shape, first_row + token, acc8);
}

/* ------------------------------------------------------------------------------------------ */

template <typename tile> static constexpr ft_mma_tile tile_entry(float fixed, float step)
{
    return ft_mma_tile{ tile::tokens,
                        COLUMNS,
                        THREADS,
                        tile::blocks,
                        tile::shared,
                        WARPS * SLICE_K,
                        fixed,
                        step,
                        { small_m_kernel<tile, FT_EPILOGUE_NONE>,
                          small_m_kernel<tile, FT_EPILOGUE_GELU>,
                          small_m_kernel<tile, FT_EPILOGUE_ANY> } };
}

const ft_mma_tile ft_mma_small_m_tiles[FT_MMA_SMALL_M_TILES] = {
    tile_entry<small_m_tile<8, 6, 3>>(0.52f, 0.156f),
    tile_entry<small_m_tile<16, 6, 3>>(0.39f, 0.247f),
    tile_entry<small_m_tile<32, 6, 2>>(0.36f, 0.317f),
};
