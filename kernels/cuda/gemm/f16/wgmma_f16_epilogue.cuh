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
typedef struct f16_out_columns {
    float bias[4];
    bool biased;
    char *y; /* in elements of y_dtype */
    int col, p;
} f16_out_columns;

__device__ __forceinline__ f16_out_columns f16_out_columns_of(const f16_gemm_params &a,
                                                              const f16_tile_coord &coord)
{
    f16_out_columns c;
    const float *bias = a.bias[coord.gemm];
    unsigned lane = threadIdx.x % 32;
    bool is_x4 = a.store_width == 4;
    c.biased = bias != NULL;
    c.y = (char *) a.y[coord.gemm];
    c.col = coord.col + (int) (threadIdx.x / 32 * 16 + (is_x4 ? lane % 4 * 4 : lane % 8 * 2));
    c.p = (int) (lane / 8 + (is_x4 ? lane / 4 % 2 * 4 : 0)); /* rows read in the same cycle are 4
                                                              * apart */
#pragma unroll
    for (int i = 0; i < 4; i++)
        c.bias[i] = c.biased && c.col + i < a.n ? bias[c.col + i] : 0.0f;
    return c;
}

/* Write an 8-row tile of accumulators to the transpose buffer. */
__device__ __forceinline__ void f16_transpose_tile(float (&to)[8][F16_EPILOGUE_PITCH], float4 sums)
{
    unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    to[2 * t][g] = sums.x;
    to[2 * t + 1][g] = sums.y;
    to[2 * t][g + 8] = sums.z;
    to[2 * t + 1][g + 8] = sums.w;
}

/* N adjacent elements of a row. */
template <int N>
__device__ __forceinline__ void f16_store_row(const f16_gemm_params &a, const f16_out_columns &c,
                                              int row, float *value)
{
    size_t at = (size_t) row * (size_t) a.n + (size_t) c.col;
    if (row >= a.m || c.col >= a.n)
        return;
    if (N == a.store_width) {
        ft_store<N>(c.y, a.y_dtype, at, value);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (c.col + i < a.n)
            ft_store<1>(c.y, a.y_dtype, at + (size_t) i, value + i);
}

/*
 * Where rows of y are aligned, four lanes store four columns each of a row of each of two tiles;
 * otherwise eight lanes store two columns each of two rows.
 */
template <int N>
__device__ __forceinline__ void
f16_load_tiles(const f16_out_columns &c,
               const float (&transposed)[F16_EPILOGUE_TILES][8][F16_EPILOGUE_PITCH], int j,
               float (&value)[8])
{
    unsigned right = threadIdx.x % (16 / N) * N;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int p = c.p + (N == 2 ? i / N % 2 * 4 : 0);
        value[i] = transposed[j + i / 4][p][right + i % N];
        if (c.biased)
            value[i] += c.bias[i % N];
    }
}

template <int N>
__device__ __forceinline__ void f16_store_rows(const f16_gemm_params &a, const f16_out_columns &c,
                                               int row, int tiles, float (&value)[8])
{
#pragma unroll
    for (int i = 0; i < 8 / N; i++)
        if (i * N / 4 < tiles)
            f16_store_row<N>(a, c, row + 8 * (i * N / 4) + c.p + (N == 2 ? i % 2 * 4 : 0),
                             value + i * N);
}

/* Store `count` 8-row tiles of the transpose buffer, the first at row `row`. */
__device__ __forceinline__ void
f16_store_tiles(const f16_gemm_params &a, const f16_out_columns &c,
                const float (&transposed)[F16_EPILOGUE_TILES][8][F16_EPILOGUE_PITCH], int row,
                int count)
{
#pragma unroll 1
    for (int j = 0; j < count; j += 2) {
        float value[8];
        if (a.store_width == 4)
            f16_load_tiles<4>(c, transposed, j, value);
        else
            f16_load_tiles<2>(c, transposed, j, value);
        ft_activate_vec<8>(a.activation, value);
        if (a.store_width == 4)
            f16_store_rows<4>(a, c, row + 8 * j, count - j, value);
        else
            f16_store_rows<2>(a, c, row + 8 * j, count - j, value);
    }
}

/* 8-row tiles of this tile that are within m. */
template <class SHAPE>
__device__ __forceinline__ int f16_m8_tiles_in_bounds(const f16_gemm_params &a,
                                                      const f16_tile_coord &coord)
{
    return min(SHAPE::m8_tiles, (a.m - coord.row + 7) / 8);
}

/* Epilogue of a thread block that holds complete sums. */
template <class SHAPE>
__device__ __forceinline__ void f16_epilogue(f16_smem_tail<SHAPE> &tail, const f16_gemm_params &a,
                                             const f16_tile_coord &coord, const f16_out_columns &c,
                                             const f16_acc<SHAPE> &sums)
{
    auto &transposed = tail.transposed[threadIdx.x / 32];
    int m8_tiles = f16_m8_tiles_in_bounds<SHAPE>(a, coord);
#pragma unroll 1
    for (int from = 0; from < m8_tiles; from += F16_EPILOGUE_TILES) {
#pragma unroll
        for (int j = 0; j < SHAPE::m8_tiles; j++)
            if (j / F16_EPILOGUE_TILES * F16_EPILOGUE_TILES == from)
                f16_transpose_tile(
                    transposed[j % F16_EPILOGUE_TILES],
                    { sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3] });
        __syncwarp();
        f16_store_tiles(a, c, transposed, coord.row + 8 * from,
                        min(F16_EPILOGUE_TILES, m8_tiles - from));
        __syncwarp();
    }
}

/*
 * ---- Split-K across a cluster -----------------------------------------------------------------
 */

/* The 8-row tiles that a thread block finishes. */
typedef struct f16_block_tiles {
    int first, count;
} f16_block_tiles;

template <class SHAPE>
__device__ __forceinline__ f16_block_tiles f16_block_tiles_of(const f16_gemm_params &a,
                                                              const f16_tile_coord &coord, int rank)
{
    int end = (rank + 1) * SHAPE::m8_tiles / a.cluster_size,
        m8_tiles = f16_m8_tiles_in_bounds<SHAPE>(a, coord);
    f16_block_tiles own_tiles = { rank * SHAPE::m8_tiles / a.cluster_size, 0 };
    own_tiles.count = max(min(end, m8_tiles) - own_tiles.first, 0);
    return own_tiles;
}

/* Slot of a split's partial sums in the thread block that finishes them. */
template <class SHAPE>
__device__ __forceinline__ float4 *f16_partial_slot(f16_smem_tail<SHAPE> &tail, int split,
                                                    int m8_tile, int tiles_per_block)
{
    return &tail.partials[(split * tiles_per_block + m8_tile) * SHAPE::consumers +
                          (int) threadIdx.x];
}

/* Send each thread block the partial sums that it finishes. */
template <class SHAPE>
__device__ __forceinline__ void
f16_send_partials(f16_smem_tail<SHAPE> &tail, const f16_gemm_params &a, const f16_tile_coord &coord,
                  int rank, const f16_acc<SHAPE> &sums)
{
    int m8_tiles = f16_m8_tiles_in_bounds<SHAPE>(a, coord),
        tiles_per_block = f16_m8_tiles_per_block<SHAPE>(a.cluster_size);
#pragma unroll
    for (int j = 0; j < SHAPE::m8_tiles; j++) {
        /* the block whose (rank + 1) * m8_tiles / cluster_size is the first beyond j */
        int dest_rank = ((j + 1) * a.cluster_size + SHAPE::m8_tiles - 1) / SHAPE::m8_tiles - 1;
        float4 *stage_index = f16_partial_slot(
            tail, rank, tiles_per_block > 1 ? j % tiles_per_block : 0, tiles_per_block);
        if (j < m8_tiles)
            *ft_cluster_map_peer(stage_index,
                                 (uint32_t) dest_rank) = { sums[4 * j], sums[4 * j + 1],
                                                           sums[4 * j + 2], sums[4 * j + 3] };
    }
}

/* Add the partial sums of 2 or 4 splits in split order. */
template <class SHAPE>
__device__ __forceinline__ float4 f16_reduce_partials(f16_smem_tail<SHAPE> &tail, int splits,
                                                      int m8_tile, int tiles_per_block)
{
    float4 sum = *f16_partial_slot(tail, 0, m8_tile, tiles_per_block);
#pragma unroll
    for (int split = 1; split < F16_MAX_SPLITS && split < splits; split++) {
        float4 term = *f16_partial_slot(tail, split, m8_tile, tiles_per_block);
        sum.x += term.x;
        sum.y += term.y;
        sum.z += term.z;
        sum.w += term.w;
    }
    return sum;
}

template <class SHAPE>
__device__ __forceinline__ void
f16_epilogue_partial(f16_smem_tail<SHAPE> &tail, const f16_gemm_params &a,
                     const f16_tile_coord &coord, const f16_out_columns &c,
                     f16_block_tiles own_tiles)
{
    auto &transposed = tail.transposed[threadIdx.x / 32];
    int tiles_per_block = f16_m8_tiles_per_block<SHAPE>(a.cluster_size);
#pragma unroll 1
    for (int from = 0; from < own_tiles.count; from += F16_EPILOGUE_TILES) {
        int count = min(F16_EPILOGUE_TILES, own_tiles.count - from);
        for (int j = 0; j < count; j++)
            f16_transpose_tile(transposed[j], f16_reduce_partials<SHAPE>(
                                                  tail, a.cluster_size, from + j, tiles_per_block));
        __syncwarp();
        f16_store_tiles(a, c, transposed, coord.row + 8 * (own_tiles.first + from), count);
        __syncwarp();
    }
}

template <class SHAPE>
__device__ __forceinline__ void
f16_cluster_epilogue(f16_smem_tail<SHAPE> &tail, const f16_gemm_params &a,
                     const f16_tile_coord &coord, const f16_out_columns &c, int rank,
                     const f16_acc<SHAPE> &sums)
{
    f16_block_tiles own_tiles = f16_block_tiles_of<SHAPE>(a, coord, rank);
    ft_cluster_wait(); /* all thread blocks of the cluster have started */
    f16_send_partials<SHAPE>(tail, a, coord, rank, sums);
    ft_cluster_arrive();
    ft_cluster_wait();
    f16_epilogue_partial<SHAPE>(tail, a, coord, c, own_tiles);
}

#endif
#endif
