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

enum { WGMMA_UNIT = 8 }; /* columns */

/* Fragments of a lane for all columns of a tile. */
constexpr int wgmma_units_of(int cols)
{
    return cols / 32 * 2;
}

/* Partial sums that the other thread blocks of the cluster send. */
template <class SHAPE> struct wgmma_shares {
    static constexpr int others = SHAPE::blocks > 1 ? SHAPE::blocks - 1 : 1;
    static constexpr int each = SHAPE::blocks > 1 ? SHAPE::own *WGMMA_UNIT / 4 : 1;
    int4 from[others][each][SHAPE::workers];
};

#ifdef FT_HAS_WGMMA

/* ---- Distributed shared memory --------------------------------------------------------------- */

/* Address of `own` in the shared memory of another thread block. */
__device__ __forceinline__ uint32_t wgmma_there(const void *own, int block)
{
    uint32_t address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(ft_shared_address(own)), "r"(block));
    return address;
}

/* Store to the same location in another thread block; the bytes count on its mbarrier. */
__device__ __forceinline__ void wgmma_send(const int4 *dst, const uint64_t *barrier, int block,
                                           int4 v)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                 "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(wgmma_there(dst, block)),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(wgmma_there(barrier, block))
                 : "memory");
}

/* ---- Reduce-scatter -------------------------------------------------------------------------- */

/* Accumulators of fragment u, neighbouring columns. */
template <int N>
__device__ __forceinline__ void wgmma_unit(int32_t (&unit)[WGMMA_UNIT], const int32_t (&sums)[N],
                                           int u)
{
#pragma unroll
    for (int i = 0; i < WGMMA_UNIT; i++)
        unit[i] = sums[16 * (u / 2) + i / 2 * 4 + u % 2 * 2 + i % 2];
}

/*
 * Block b finishes SHAPE::owned fragments from b * SHAPE::owned; `owned` receives the cluster's
 * sums. Blocks a and b address each other's slot as number (a ^ b) - 1.
 */
template <class SHAPE>
__device__ __forceinline__ void wgmma_exchange(wgmma_shares<SHAPE> &shares, uint64_t *arrived,
                                               int block, const int32_t (&sums)[SHAPE::cols / 2],
                                               int32_t (&own)[SHAPE::own][WGMMA_UNIT])
{
    constexpr int mine = SHAPE::own;
#pragma unroll
    for (int u = 0; u < SHAPE::units; u++) {
        int32_t unit[WGMMA_UNIT];
        wgmma_unit(unit, sums, u);
        if (u / mine == block) {
#pragma unroll
            for (int i = 0; i < WGMMA_UNIT; i++)
                own[u % mine][i] = unit[i];
        } else {
            for (int i = 0; i < 2; i++)
                wgmma_send(&shares.from[(u / mine ^ block) - 1][u % mine * 2 + i][threadIdx.x],
                           arrived, u / mine,
                           { unit[4 * i], unit[4 * i + 1], unit[4 * i + 2], unit[4 * i + 3] });
        }
    }
    if (SHAPE::blocks > 1)
        ft_barrier_wait(arrived, 0);
#pragma unroll
    for (int other = 1; other < SHAPE::blocks; other++)
#pragma unroll
        for (int i = 0; i < mine * 2; i++) {
            int4 v = shares.from[other - 1][i][threadIdx.x];
            own[i / 2][i % 2 * 4] += v.x;
            own[i / 2][i % 2 * 4 + 1] += v.y;
            own[i / 2][i % 2 * 4 + 2] += v.z;
            own[i / 2][i % 2 * 4 + 3] += v.w;
        }
}

/* ---- Epilogue -------------------------------------------------------------------------------- */

/* Residual of a fragment. */
template <typename Y> struct wgmma_added {
    static constexpr int each = WGMMA_UNIT * sizeof(Y) / 16;
    uint4 v[each > 0 ? each : 1];

    __device__ __forceinline__ void fetch(const wgmma_args &a, int row, int col, bool inside)
    {
#pragma unroll
        for (int i = 0; i < each; i++)
            v[i] =
                wgmma_fetch((const uint4 *) ((const Y *) a.residual + (size_t) row * a.n + col) + i,
                            inside && a.residual != NULL);
    }
    __device__ __forceinline__ void add(float (&value)[2][4]) const
    {
        if constexpr (each > 0) {
            wgmma_add(value[0], (const Y *) v);
            wgmma_add(value[1], (const Y *) v + 4);
        }
    }
};

/* Four results of a row with row scale `row`, from column `right` of the tile. */
template <ft_epilogue EPILOGUE, int COLS>
__device__ __forceinline__ void wgmma_finish_four(float (&value)[4], int4 sums,
                                                  const wgmma_columns<COLS> &columns, int right,
                                                  float row, bool relu)
{
    float4 scale = *(const float4 *) &columns.scale[right];
    float4 bias = *(const float4 *) &columns.bias[right];
    if (EPILOGUE == FT_EPILOGUE_ROWS)
        scale = make_float4(row * scale.x, row * scale.y, row * scale.z, row * scale.w);
    value[0] = ft_finish<EPILOGUE>(sums.x, scale.x, bias.x, FT_ACT_NONE);
    value[1] = ft_finish<EPILOGUE>(sums.y, scale.y, bias.y, FT_ACT_NONE);
    value[2] = ft_finish<EPILOGUE>(sums.z, scale.z, bias.z, FT_ACT_NONE);
    value[3] = ft_finish<EPILOGUE>(sums.w, scale.w, bias.w, FT_ACT_NONE);
#pragma unroll
    for (int i = 0; i < 4; i++)
        value[i] = relu ? ft_relu(value[i]) : value[i];
}

/*
 * The fragments that a lane of thread block `block` finishes. Row scales are loaded before the
 * mainloop, and so are residuals where registers suffice next to the accumulators.
 */
template <class SHAPE, ft_epilogue EPILOGUE, typename Y> struct wgmma_units {
    static constexpr int mine = SHAPE::own, each = wgmma_added<Y>::each;
    static constexpr bool adds = each > 0, early = SHAPE::cols / 2 + mine * each * 4 <= 100;
    wgmma_added<Y> added[adds && early ? mine : 1];
    float row_scale[mine];
    int block, first_row;

    __device__ __forceinline__ wgmma_units(const wgmma_place &place, int own_block)
        : block(own_block),
          first_row(place.row + (int) threadIdx.x / WGMMA_TEAM * 64 + wgmma_lane_row())
    {
    }
    __device__ __forceinline__ int row_of(int i) const
    {
        return first_row + (block * mine + i) % 2 * 8;
    }
    /* First column within the tile. */
    __device__ __forceinline__ int right_of(int i) const
    {
        return (block * mine + i) / 2 * 32 + wgmma_lane_col();
    }
    __device__ __forceinline__ bool is_inside(const wgmma_args &a, const wgmma_place &place,
                                              int i) const
    {
        return row_of(i) < a.m && place.col + right_of(i) < wgmma_end(a, place);
    }
    __device__ __forceinline__ void fetch(const wgmma_args &a, const wgmma_place &place)
    {
#pragma unroll
        for (int i = 0; i < mine; i++) {
            if (adds && early)
                added[i].fetch(a, row_of(i), place.col + right_of(i), is_inside(a, place, i));
            if (EPILOGUE == FT_EPILOGUE_ROWS)
                row_scale[i] = wgmma_fetch_scale(a.x_scales + row_of(i), row_of(i) < a.m);
        }
    }
    __device__ __forceinline__ void finish(const wgmma_args &a, const wgmma_place &place,
                                           const int32_t (&sums)[mine][WGMMA_UNIT],
                                           const wgmma_columns<SHAPE::cols> &columns)
    {
        size_t width = (size_t) (wgmma_end(a, place) - wgmma_first(a, place));
        Y *y = (Y *) a.y[place.which] + (place.col - wgmma_first(a, place));
#pragma unroll
        for (int i = 0; i < mine; i++) {
            float value[2][4];
#pragma unroll
            for (int quad = 0; quad < 2; quad++) {
                const int32_t *four = &sums[i][4 * quad];
                wgmma_finish_four<EPILOGUE>(value[quad],
                                            make_int4(four[0], four[1], four[2], four[3]), columns,
                                            right_of(i) + 4 * quad, row_scale[i], a.relu);
            }
            if (adds && !early)
                added[0].fetch(a, row_of(i), place.col + right_of(i), is_inside(a, place, i));
            if (adds && a.residual != NULL)
                added[early ? i : 0].add(value);
            if (is_inside(a, place, i))
                wgmma_store_eight(y + row_of(i) * width + right_of(i), value,
                                  a.y_inverse[place.which]);
        }
    }
};

#endif
#endif
