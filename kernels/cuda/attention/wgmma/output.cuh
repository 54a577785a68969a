/*
 * output.cuh - the result of a consumer warp: 16 queries, divided by their sums.
 *
 * A warp writes its rows over its queries in shared memory, and from there to memory, 16 bytes per
 * lane.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_WGMMA_OUTPUT_CUH
#define FT_KERNELS_CUDA_ATTENTION_WGMMA_OUTPUT_CUH

#include "kernels/cuda/attention/f16_warp.cuh"
#include "kernels/cuda/attention/wgmma/tile.cuh"
#include "kernels/cuda/ptx/mma.cuh"

/* y [rows, heads * head_size] */
typedef struct attention_output {
    uint16_t *y;
    int heads, head_size;
} attention_output;

#ifdef FT_HAS_WGMMA

static __device__ __forceinline__ float inverse_sum(float sum)
{
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    return 1.0f / sum;
}

/* Address of 16-byte chunk `chunk` of row `row` of a warp's 16, which are panels of 128 bytes. */
template <class SHAPE>
static __device__ __forceinline__ uint8_t *output_chunk(uint8_t *queries, int row, int chunk)
{
    return queries + chunk / 8 * SHAPE::query_panel + row * ROW_BYTES + (chunk % 8 ^ row % 8) * 16;
}

/* 16-byte chunks of a lane: of rows lane / (WIDTH / 8) + i * step. */
template <class SHAPE> struct output_chunks {
    static constexpr int per_row = SHAPE::width / 8, step = 32 / per_row, count = 16 / step;
    uint4 chunk[count];
};

/*
 * Divides the warp's rows and transposes them in shared memory, over its rows of `query`, the
 * warpgroup's queries. The queries may be overwritten by TMA afterwards.
 */
template <class SHAPE, bool bf16>
static __device__ __forceinline__ output_chunks<SHAPE>
normalized_rows(uint8_t *query, const float sum[2], const float (&acc)[SHAPE::width / 2])
{
    using chunks = output_chunks<SHAPE>;
    int lane = (int) threadIdx.x % 32;
    uint8_t *own = query + (int) threadIdx.x % WARPGROUP / 32 * 16 * ROW_BYTES;
    const float inverse[2] = { inverse_sum(sum[0]), inverse_sum(sum[1]) };
#pragma unroll
    for (int j = 0; j < chunks::per_row; j += 2) {
        uint32_t word[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            word[i] = pack_f16x2<bf16>(acc[4 * j + 2 * i] * inverse[i % 2],
                                       acc[4 * j + 2 * i + 1] * inverse[i % 2]);
        ft_stmatrix_x4(output_chunk<SHAPE>(own, lane % 16, j + lane / 16), word);
    }
    __syncwarp();
    chunks out;
#pragma unroll
    for (int i = 0; i < chunks::count; i++)
        out.chunk[i] = *(const uint4 *) output_chunk<SHAPE>(
            own, i * chunks::step + lane / chunks::per_row, lane % chunks::per_row);
    ft_fence_proxy_async(); /* before the stores to memory, for which it would wait */
    return out;
}

/* Stores those of the warp's rows that exist; `row` is its first in the work item. */
template <class SHAPE>
static __device__ __forceinline__ void store_rows(const attention_output &to,
                                                  const output_chunks<SHAPE> &out, size_t first_row,
                                                  int head, int row, int queries)
{
    using chunks = output_chunks<SHAPE>;
    int lane = (int) threadIdx.x % 32, chunk = lane % chunks::per_row;
    size_t cols = (size_t) to.heads * (size_t) to.head_size;
    row += lane / chunks::per_row;
    uint16_t *y =
        to.y + (first_row + (size_t) row) * cols + (size_t) (head * to.head_size + 8 * chunk);
#pragma unroll
    for (int i = 0; i < chunks::count; i++)
        if (row + i * chunks::step < queries && 8 * chunk < to.head_size)
            *(uint4 *) (y + (size_t) (i * chunks::step) * cols) = out.chunk[i];
}

#endif
#endif
