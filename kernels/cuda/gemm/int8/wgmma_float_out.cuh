/*
 * wgmma_float_out.cuh - residuals and float32 outputs of the wgmma INT8 GEMM.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_WGMMA_FLOAT_OUT_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_WGMMA_FLOAT_OUT_CUH

#include "kernels/cuda/gemm/int8/wgmma_epilogue.cuh"

#include <type_traits>

#ifdef FT_HAS_WGMMA

/* ---- Four and eight values ------------------------------------------------------------------- */

/* value += four f16 or float values */
template <typename Y> __device__ __forceinline__ void wgmma_add_x4(float (&value)[4], const Y *from)
{
    typedef std::conditional_t<sizeof(Y) == 2, uint2, uint4> words;
    alignas(16) Y terms[4];
    *(words *) terms = *(const words *) from;
#pragma unroll
    for (int i = 0; i < 4; i++)
        value[i] += (float) terms[i];
}

/* Store eight neighbours of a row directly. */
template <typename Y>
__device__ __forceinline__ void wgmma_store_x8(Y *y, const float (&value)[2][4], float inverse)
{
    typename wgmma_packed<Y>::four four[2];
    wgmma_convert_x4<true>(four[0], value[0], inverse);
    wgmma_convert_x4<true>(four[1], value[1], inverse);
    wgmma_store(y, wgmma_packed<Y>::join(four[0], four[1]), true);
}

template <>
__device__ __forceinline__ void wgmma_store_x8<float>(float *y, const float (&value)[2][4], float)
{
#pragma unroll
    for (int i = 0; i < 2; i++)
        wgmma_store(y + 4 * i,
                    make_uint4(__float_as_uint(value[i][0]), __float_as_uint(value[i][1]),
                               __float_as_uint(value[i][2]), __float_as_uint(value[i][3])),
                    true);
}

/*
 * The residual, prefetched into registers: this costs neither a wait after the mainloop nor shared
 * memory of the pipeline.
 */
template <int COLS, typename Y> struct wgmma_residual {
    static constexpr int chunks = sizeof(Y) / 2;
    uint4 v[COLS / 32][2][chunks];
    bool any;

    __device__ __forceinline__ wgmma_residual(const wgmma_args &a, const wgmma_tile_coord &coord,
                                              int row)
        : any(a.residual != NULL)
    {
        int cols_left = wgmma_range_end(a, coord) - coord.col - wgmma_lane_col(),
            rows_left = a.m - row - wgmma_lane_row();
        const Y *from = (const Y *) a.residual + (size_t) (row + wgmma_lane_row()) * a.n +
                        coord.col + wgmma_lane_col();
        if (!any)
            return;
#pragma unroll
        for (int block = 0; block < COLS / 32; block++)
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int i = 0; i < chunks; i++)
                    v[block][h][i] = wgmma_prefetch_x16(
                        (const uint4 *) (from + (size_t) (8 * h) * a.n + block * 32) + i,
                        block * 32 < cols_left && 8 * h < rows_left);
    }
    __device__ __forceinline__ void add(float (&value)[4], int block, int h, int quad) const
    {
        if (any)
            wgmma_add_x4(value, (const Y *) v[block][h] + 4 * quad);
    }
};

/* ---- float32 outputs ------------------------------------------------------------------------- */

/*
 * Staged in lines of 32 floats of a row. Chunk c of row r is stored at c ^ r % 8, which avoids bank
 * conflicts both for lanes that write results and for lanes that read lines. When a warp copies
 * lines out, a lane has chunk l % 8 of rows l / 8, + 4, + 8, + 12.
 */
template <int COLS, ft_epilogue EPILOGUE> struct wgmma_output<COLS, EPILOGUE, float> {
    float *y;
    uint4 (*lines)[WGMMA_LINE_CHUNKS];
    int width, cols_left, rows_left; /* columns of y; remaining columns and rows */
    wgmma_col_params_reader<COLS> columns;

    __device__ __forceinline__ explicit wgmma_output(wgmma_line_buffer &own) : lines(own) {}
    __device__ __forceinline__ void open(const wgmma_args &a, const wgmma_tile_coord &coord,
                                         int row, const wgmma_col_params<COLS> &of)
    {
        int col = coord.col + threadIdx.x % 8 * 4;
        row += threadIdx.x % WARPGROUP_THREADS / 32 * 16 + threadIdx.x % 32 / 8;
        width = wgmma_range_end(a, coord) - wgmma_range_begin(a, coord);
        cols_left = wgmma_range_end(a, coord) - col;
        rows_left = a.m - row;
        columns.open(of);
        y = (float *) a.y[coord.range_index] + (size_t) row * width +
            (col - wgmma_range_begin(a, coord));
    }
    /* Continue with the next 64 rows. */
    __device__ __forceinline__ void next_m64_block()
    {
        y += (size_t) 64 * width;
        rows_left -= 64;
    }
    template <int N, class ADDED, class ROWS>
    __device__ __forceinline__ void finish(const int32_t (&sums)[1][N], int block,
                                           const ADDED &residual_frag, const ROWS &rows)
    {
#pragma unroll
        for (int quad = 0; quad < 2; quad++) {
            columns.fetch(2 * block + quad + 1);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                alignas(16) float value[4];
                int row = threadIdx.x % 32 / 4 + 8 * h, chunk = threadIdx.x % 4 * 2 + quad;
                wgmma_dequantize_x4<EPILOGUE>(value, sums[0], block, h, quad, columns.scale[quad],
                                              columns.bias[quad], rows.of[h]);
                residual_frag.add(value, block, h, quad);
                lines[row][chunk ^ row % 8] = *(const uint4 *) value;
            }
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int row = threadIdx.x % 32 / 8 + 4 * i;
            wgmma_store(y + (size_t) (4 * i) * width + block * 32,
                        lines[row][threadIdx.x % 8 ^ row % 8],
                        block * 32 < cols_left && 4 * i < rows_left);
        }
        __syncwarp();
    }
};

#endif
#endif
