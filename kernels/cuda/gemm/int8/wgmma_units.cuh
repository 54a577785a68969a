/*
 * wgmma_units.cuh - epilogue of the small-m wgmma INT8 kernels, with a reduce-scatter over a
 * cluster for split-K.
 *
 * A lane's accumulators of 32 columns are two fragments of 8 columns: columns 32j + 8t .. of row g
 * + 8h are fragment 2j + h. With split-K each thread block of the cluster finishes the same number
 * of fragments and receives the partial sums for them from the others. Sums are integers, so the
 * bits do not depend on the splits.
 *
 * SHAPE defines the columns of a tile, the thread blocks that share it and the number of consumer
 * threads of each; the numbers of fragments follow from wgmma_fragments_of().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_WGMMA_UNITS_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_WGMMA_UNITS_CUH

#include "kernels/cuda/gemm/int8/wgmma_float_out.cuh"
#include "kernels/cuda/ptx/cluster_send.cuh"

enum { WGMMA_FRAGMENT_COLS = 8 }; /* columns */

/* Fragments of a lane for all columns of a tile. */
constexpr int wgmma_fragments_of(int cols)
{
    return cols / 32 * 2;
}

/* Partial sums that the other thread blocks of the cluster send. */
template <class SHAPE> struct wgmma_partials {
    static constexpr int others = SHAPE::blocks > 1 ? SHAPE::blocks - 1 : 1;
    static constexpr int chunks = SHAPE::blocks > 1 ? SHAPE::owned *WGMMA_FRAGMENT_COLS / 4 : 1;
    int4 from[others][chunks][SHAPE::consumers];
};

#ifdef FT_HAS_WGMMA

/* ---- Reduce-scatter -------------------------------------------------------------------------- */

/* Accumulators of fragment u, neighbouring columns. */
template <int N>
__device__ __forceinline__ void wgmma_fragment(int32_t (&fragment)[WGMMA_FRAGMENT_COLS],
                                               const int32_t (&sums)[N], int u)
{
#pragma unroll
    for (int i = 0; i < WGMMA_FRAGMENT_COLS; i++)
        fragment[i] = sums[16 * (u / 2) + i / 2 * 4 + u % 2 * 2 + i % 2];
}

/*
 * Block b finishes SHAPE::owned fragments from b * SHAPE::owned; `owned` receives the cluster's
 * sums. Blocks a and b address each other's slot as number (a ^ b) - 1.
 */
template <class SHAPE>
__device__ __forceinline__ void
wgmma_reduce_scatter(wgmma_partials<SHAPE> &partials, uint64_t *arrived, int block,
                     const int32_t (&sums)[SHAPE::cols / 2],
                     int32_t (&owned)[SHAPE::owned][WGMMA_FRAGMENT_COLS])
{
    constexpr int n_owned = SHAPE::owned;
#pragma unroll
    for (int u = 0; u < SHAPE::fragments; u++) {
        int32_t fragment[WGMMA_FRAGMENT_COLS];
        wgmma_fragment(fragment, sums, u);
        if (u / n_owned == block) {
#pragma unroll
            for (int i = 0; i < WGMMA_FRAGMENT_COLS; i++)
                owned[u % n_owned][i] = fragment[i];
        } else {
            int to = u / n_owned;
            for (int i = 0; i < 2; i++) {
                int4 *slot = &partials.from[(to ^ block) - 1][u % n_owned * 2 + i][threadIdx.x];
                const int32_t *v = &fragment[4 * i];
                ft_st_async_i32x4(ft_cluster_smem_address(ft_smem_address(slot), to),
                                  ft_cluster_smem_address(ft_smem_address(arrived), to),
                                  make_int4(v[0], v[1], v[2], v[3]));
            }
        }
    }
    if (SHAPE::blocks > 1)
        ft_mbarrier_wait(arrived, 0);
#pragma unroll
    for (int other = 1; other < SHAPE::blocks; other++)
#pragma unroll
        for (int i = 0; i < n_owned * 2; i++) {
            int4 v = partials.from[other - 1][i][threadIdx.x];
            owned[i / 2][i % 2 * 4] += v.x;
            owned[i / 2][i % 2 * 4 + 1] += v.y;
            owned[i / 2][i % 2 * 4 + 2] += v.z;
            owned[i / 2][i % 2 * 4 + 3] += v.w;
        }
}

/* ---- Epilogue -------------------------------------------------------------------------------- */

/* Residual of a fragment. */
template <typename Y> struct wgmma_fragment_residual {
    static constexpr int chunks = WGMMA_FRAGMENT_COLS * sizeof(Y) / 16;
    uint4 v[chunks > 0 ? chunks : 1];

    __device__ __forceinline__ void fetch(const wgmma_args &a, int row, int col, bool inside)
    {
#pragma unroll
        for (int i = 0; i < chunks; i++)
            v[i] = wgmma_prefetch_x16(
                (const uint4 *) ((const Y *) a.residual + (size_t) row * a.n + col) + i,
                inside && a.residual != NULL);
    }
    __device__ __forceinline__ void add(float (&value)[2][4]) const
    {
        if constexpr (chunks > 0) {
            wgmma_add_x4(value[0], (const Y *) v);
            wgmma_add_x4(value[1], (const Y *) v + 4);
        }
    }
};

/* Four results of a row with row scale `row`, from column `right` of the tile. */
template <ft_epilogue EPILOGUE, int COLS>
__device__ __forceinline__ void wgmma_epilogue_x4(float (&value)[4], int4 sums,
                                                  const wgmma_col_params<COLS> &columns, int right,
                                                  float row, bool relu)
{
    float4 scale = *(const float4 *) &columns.scale[right];
    float4 bias = *(const float4 *) &columns.bias[right];
    if (ft_epilogue_has_row_scales(EPILOGUE))
        scale = make_float4(row * scale.x, row * scale.y, row * scale.z, row * scale.w);
    value[0] = ft_apply_epilogue<EPILOGUE>(sums.x, scale.x, bias.x, FT_ACT_NONE);
    value[1] = ft_apply_epilogue<EPILOGUE>(sums.y, scale.y, bias.y, FT_ACT_NONE);
    value[2] = ft_apply_epilogue<EPILOGUE>(sums.z, scale.z, bias.z, FT_ACT_NONE);
    value[3] = ft_apply_epilogue<EPILOGUE>(sums.w, scale.w, bias.w, FT_ACT_NONE);
#pragma unroll
    for (int i = 0; i < 4; i++)
        value[i] = relu ? ft_relu(value[i]) : value[i];
}

/*
 * The fragments that a lane of thread block `block` finishes. Row scales are loaded before the
 * mainloop, and so are residuals where registers suffice next to the accumulators.
 */
template <class SHAPE, ft_epilogue EPILOGUE, typename Y> struct wgmma_fragments {
    static constexpr int n_owned = SHAPE::owned, chunks = wgmma_fragment_residual<Y>::chunks;
    static constexpr bool has_residual = chunks > 0,
                          prefetches_residual = SHAPE::cols / 2 + n_owned * chunks * 4 <= 100;
    wgmma_fragment_residual<Y> residual_frag[has_residual && prefetches_residual ? n_owned : 1];
    float row_scale[n_owned];
    int block, first_row;

    __device__ __forceinline__ wgmma_fragments(const wgmma_tile_coord &coord, int block_rank)
        : block(block_rank),
          first_row(coord.row + (int) threadIdx.x / WARPGROUP_THREADS * 64 + wgmma_lane_row())
    {
    }
    __device__ __forceinline__ int row_of(int i) const
    {
        return first_row + (block * n_owned + i) % 2 * 8;
    }
    /* First column within the tile. */
    __device__ __forceinline__ int col_of(int i) const
    {
        return (block * n_owned + i) / 2 * 32 + wgmma_lane_col();
    }
    __device__ __forceinline__ bool is_inside(const wgmma_args &a, const wgmma_tile_coord &coord,
                                              int i) const
    {
        return row_of(i) < a.m && coord.col + col_of(i) < wgmma_range_end(a, coord);
    }
    __device__ __forceinline__ void fetch(const wgmma_args &a, const wgmma_tile_coord &coord)
    {
#pragma unroll
        for (int i = 0; i < n_owned; i++) {
            if (has_residual && prefetches_residual)
                residual_frag[i].fetch(a, row_of(i), coord.col + col_of(i), is_inside(a, coord, i));
            if (ft_epilogue_has_row_scales(EPILOGUE))
                row_scale[i] = wgmma_prefetch_row_scale(a.x_scales + row_of(i), row_of(i) < a.m);
        }
    }
    __device__ __forceinline__ void finish(const wgmma_args &a, const wgmma_tile_coord &coord,
                                           const int32_t (&sums)[n_owned][WGMMA_FRAGMENT_COLS],
                                           const wgmma_col_params<SHAPE::cols> &columns)
    {
        size_t width = (size_t) (wgmma_range_end(a, coord) - wgmma_range_begin(a, coord));
        Y *y = (Y *) a.y[coord.range_index] + (coord.col - wgmma_range_begin(a, coord));
#pragma unroll
        for (int i = 0; i < n_owned; i++) {
            float value[2][4];
#pragma unroll
            for (int quad = 0; quad < 2; quad++) {
                const int32_t *four = &sums[i][4 * quad];
                wgmma_epilogue_x4<EPILOGUE>(value[quad],
                                            make_int4(four[0], four[1], four[2], four[3]), columns,
                                            col_of(i) + 4 * quad, row_scale[i], a.relu);
            }
            if (has_residual && !prefetches_residual)
                residual_frag[0].fetch(a, row_of(i), coord.col + col_of(i), is_inside(a, coord, i));
            if (has_residual && a.residual != NULL)
                residual_frag[prefetches_residual ? i : 0].add(value);
            if (is_inside(a, coord, i))
                wgmma_store_x8(y + row_of(i) * width + col_of(i), value,
                               a.y_inv_scale[coord.range_index]);
        }
    }
};

#endif
#endif
