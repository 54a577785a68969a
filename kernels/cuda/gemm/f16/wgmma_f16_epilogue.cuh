/*
 * wgmma_f16_epilogue.cuh - epilogue of wgmma_f16_gemm.cuh.
 *
 * A lane holds neighbouring rows of y, not columns, so a warp transposes its 16 columns in shared
 * memory, a few 8-row tiles at a time. Then a lane stores four columns of a row, and four lanes
 * fill a 32-byte sector. Where the thread blocks of a cluster share a tile (split-K), each finishes
 * some of its rows: every block sends its partial sums to the block that finishes them (itself
 * included), which adds them in split order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_EPILOGUE_CUH
#define FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_EPILOGUE_CUH

#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Transposing and storing ---------------------------------------------------------------- */

/*
 * A lane's columns of y: a.store_width columns of row p of each 8-row tile, or fewer and also of
 * row p
 * + 4.
 */
typedef struct steady_columns {
    float bias[4];
    bool biased;
    char *y; /* in elements of y_dtype */
    int col, p;
} steady_columns;

__device__ __forceinline__ steady_columns steady_columns_of(const steady_args &a,
                                                            const steady_place &place)
{
    steady_columns c;
    const float *bias = a.bias[place.gemm];
    unsigned lane = threadIdx.x % 32;
    bool fours = a.together == 4;
    c.biased = bias != NULL;
    c.y = (char *) a.y[place.gemm];
    c.col = place.col + (int) (threadIdx.x / 32 * 16 + (fours ? lane % 4 * 4 : lane % 8 * 2));
    c.p = (int) (lane / 8 + (fours ? lane / 4 % 2 * 4 : 0)); /* rows read in the same cycle are 4
                                                              * apart */
#pragma unroll
    for (int i = 0; i < 4; i++)
        c.bias[i] = c.biased && c.col + i < a.n ? bias[c.col + i] : 0.0f;
    return c;
}

/* Write an 8-row tile of accumulators to the transpose buffer. */
__device__ __forceinline__ void steady_lay(float (&to)[8][STEADY_TURNED], float4 sums)
{
    unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    to[2 * t][g] = sums.x;
    to[2 * t + 1][g] = sums.y;
    to[2 * t][g + 8] = sums.z;
    to[2 * t + 1][g + 8] = sums.w;
}

/* N adjacent elements of a row. */
template <int N>
__device__ __forceinline__ void steady_store(const steady_args &a, const steady_columns &c, int row,
                                             float *value)
{
    size_t at = (size_t) row * (size_t) a.n + (size_t) c.col;
    if (row >= a.m || c.col >= a.n)
        return;
    if (N == a.together) {
        ft_store<N>(c.y, a.y_dtype, at, value);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (c.col + i < a.n)
            ft_store<1>(c.y, a.y_dtype, at + (size_t) i, value + i);
}

/*
 * Store `count` 8-row tiles of the transpose buffer, the first at row `row`: each lane N adjacent
 * elements of 8 / N rows of two tiles.
 */
template <int N>
__device__ __forceinline__ void
steady_put_as(const steady_args &a, const steady_columns &c,
              const float (&turned)[STEADY_EIGHTS][8][STEADY_TURNED], int row, int count)
{
    constexpr int rows = 8 / N;
    unsigned right = threadIdx.x % (16 / N) * N;
#pragma unroll 1
    for (int j = 0; j < count; j += 2) {
        float value[8];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int p = c.p + (N == 2 ? i / N % 2 * 4 : 0);
            value[i] = turned[j + i / 4][p][right + i % N];
            if (c.biased)
                value[i] += c.bias[i % N];
        }
        ft_activate_all<8>(a.activation, value);
#pragma unroll
        for (int i = 0; i < rows; i++)
            if (j + i * N / 4 < count)
                steady_store<N>(a, c, row + 8 * (j + i * N / 4) + c.p + (N == 2 ? i % 2 * 4 : 0),
                                value + i * N);
    }
}

/*
 * Where rows of y are not aligned, eight lanes store two elements each instead of four lanes four.
 */
__device__ __forceinline__ void steady_put(const steady_args &a, const steady_columns &c,
                                           const float (&turned)[STEADY_EIGHTS][8][STEADY_TURNED],
                                           int row, int count)
{
    if (a.together == 4)
        steady_put_as<4>(a, c, turned, row, count);
    else
        steady_put_as<2>(a, c, turned, row, count);
}

/* 8-row tiles of this tile that are within m. */
template <class SHAPE>
__device__ __forceinline__ int steady_eights(const steady_args &a, const steady_place &place)
{
    return min(SHAPE::eights, (a.m - place.row + 7) / 8);
}

/* Epilogue of a thread block that holds complete sums. */
template <class SHAPE>
__device__ __forceinline__ void
steady_finish_own(steady_rest<SHAPE> &rest, const steady_args &a, const steady_place &place,
                  const steady_columns &c, const steady_sums<SHAPE> &sums)
{
    auto &turned = rest.turned[threadIdx.x / 32];
    int eights = steady_eights<SHAPE>(a, place);
#pragma unroll 1
    for (int from = 0; from < eights; from += STEADY_EIGHTS) {
#pragma unroll
        for (int j = 0; j < SHAPE::eights; j++)
            if (j / STEADY_EIGHTS * STEADY_EIGHTS == from)
                steady_lay(turned[j % STEADY_EIGHTS],
                           { sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3] });
        __syncwarp();
        steady_put(a, c, turned, place.row + 8 * from, min(STEADY_EIGHTS, eights - from));
        __syncwarp();
    }
}

/*
 * ---- Split-K across a cluster -----------------------------------------------------------------
 */

/* The 8-row tiles that a thread block finishes. */
typedef struct steady_share {
    int first, count;
} steady_share;

template <class SHAPE>
__device__ __forceinline__ steady_share steady_share_of(const steady_args &a,
                                                        const steady_place &place, int rank)
{
    int end = (rank + 1) * SHAPE::eights / a.blocks, eights = steady_eights<SHAPE>(a, place);
    steady_share share = { rank * SHAPE::eights / a.blocks, 0 };
    share.count = max(min(end, eights) - share.first, 0);
    return share;
}

/* Slot of a split's partial sums in the thread block that finishes them. */
template <class SHAPE>
__device__ __forceinline__ float4 *steady_slot(steady_rest<SHAPE> &rest, int range, int eight,
                                               int each)
{
    return &rest.shares[(range * each + eight) * SHAPE::workers + (int) threadIdx.x];
}

/* Send each thread block the partial sums that it finishes. */
template <class SHAPE>
__device__ __forceinline__ void steady_send(steady_rest<SHAPE> &rest, const steady_args &a,
                                            const steady_place &place, int rank,
                                            const steady_sums<SHAPE> &sums)
{
    int eights = steady_eights<SHAPE>(a, place), each = steady_each<SHAPE>(a.blocks);
#pragma unroll
    for (int j = 0; j < SHAPE::eights; j++) {
        /* the block whose (rank + 1) * m8_tiles / cluster_size is the first beyond j */
        int dest_rank = ((j + 1) * a.blocks + SHAPE::eights - 1) / SHAPE::eights - 1;
        float4 *slot = steady_slot(rest, rank, each > 1 ? j % each : 0, each);
        if (j < eights)
            *ft_cluster_peer(slot, (uint32_t) dest_rank) = { sums[4 * j], sums[4 * j + 1],
                                                             sums[4 * j + 2], sums[4 * j + 3] };
    }
}

/* Add the partial sums of BLOCKS splits in split order. */
template <class SHAPE, int BLOCKS>
__device__ __forceinline__ float4 steady_sum_of(steady_rest<SHAPE> &rest, int eight, int each)
{
    float4 sum = *steady_slot(rest, 0, eight, each);
#pragma unroll
    for (int range = 1; range < BLOCKS; range++) {
        float4 term = *steady_slot(rest, range, eight, each);
        sum.x += term.x;
        sum.y += term.y;
        sum.z += term.z;
        sum.w += term.w;
    }
    return sum;
}

template <class SHAPE, int BLOCKS>
__device__ __forceinline__ void steady_finish_share(steady_rest<SHAPE> &rest, const steady_args &a,
                                                    const steady_place &place,
                                                    const steady_columns &c, steady_share share)
{
    auto &turned = rest.turned[threadIdx.x / 32];
    constexpr int each = steady_each<SHAPE>(BLOCKS);
#pragma unroll 1
    for (int from = 0; from < share.count; from += STEADY_EIGHTS) {
        int count = min(STEADY_EIGHTS, share.count - from);
        for (int j = 0; j < count; j++)
            steady_lay(turned[j], steady_sum_of<SHAPE, BLOCKS>(rest, from + j, each));
        __syncwarp();
        steady_put(a, c, turned, place.row + 8 * (share.first + from), count);
        __syncwarp();
    }
}

template <class SHAPE>
__device__ __forceinline__ void steady_exchange(steady_rest<SHAPE> &rest, const steady_args &a,
                                                const steady_place &place, const steady_columns &c,
                                                int rank, const steady_sums<SHAPE> &sums)
{
    steady_share share = steady_share_of<SHAPE>(a, place, rank);
    ft_cluster_wait(); /* all thread blocks of the cluster have started */
    steady_send<SHAPE>(rest, a, place, rank, sums);
    ft_cluster_arrive();
    ft_cluster_wait();
    if (a.blocks == 2)
        steady_finish_share<SHAPE, 2>(rest, a, place, c, share);
    else
        steady_finish_share<SHAPE, 4>(rest, a, place, c, share);
}

#endif
#endif
