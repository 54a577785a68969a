/*
 * gemm_wgmma_floats.cuh - a tile of floats or halves, for the products of sm_90a.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_WGMMA_FLOATS_CUH
#define FT_KERNELS_CUDA_GEMM_WGMMA_FLOATS_CUH

#include "kernels/cuda/gemm_wgmma_finish.cuh"

#include <cuda_fp16.h>

#ifdef FT_HAS_WGMMA

/* ---- A tile of floats ----------------------------------------------------------------------- */

/* The lane's place when a warp moves lines: chunk l % 8 of rows l / 8, + 4, + 8, + 12. */
__device__ __forceinline__ int wgmma_line_row()
{
    return threadIdx.x % 32 / 8;
}

/* The team's row that this is. */
__device__ __forceinline__ int wgmma_line_team_row()
{
    return threadIdx.x % WGMMA_TEAM / 32 * 16 + wgmma_line_row();
}

/*
 * The residual, in registers: only there does it cost neither a wait behind the product nor room in
 * the ring.  It comes as y is stored: lines of 128 bytes.
 */
template <int COLS> struct wgmma_added<COLS, float> {
    uint4 v[COLS / 32][4];

    __device__ __forceinline__ wgmma_added(const wgmma_args &a, const wgmma_place &place, int row)
    {
        if (a.residual == NULL)
            return;
        int left = place.end - place.col - threadIdx.x % 8 * 4;
        int down = a.m - row - wgmma_line_team_row();
        const float *from = (const float *) a.residual +
                            (size_t) (row + wgmma_line_team_row()) * a.n + place.col +
                            threadIdx.x % 8 * 4;
#pragma unroll
        for (int block = 0; block < COLS / 32; block++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                v[block][i] = wgmma_fetch(from + (size_t) (4 * i) * a.n + block * 32,
                                          block * 32 < left && 4 * i < down);
    }
};

/* Chunks lie so that neither the lanes that write sums nor those that read lines share banks. */
__device__ __forceinline__ int wgmma_float_chunk(int row, int chunk)
{
    return chunk ^ row % 8;
}

__device__ __forceinline__ uint4 wgmma_words(float a, float b, float c, float d)
{
    return { __float_as_uint(a), __float_as_uint(b), __float_as_uint(c), __float_as_uint(d) };
}

__device__ __forceinline__ float4 wgmma_floats(uint4 v)
{
    return { __uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z),
             __uint_as_float(v.w) };
}

template <int ROWS, int COLS, ft_epilogue EPILOGUE>
__device__ __forceinline__ void
wgmma_finish(const wgmma_args &a, const wgmma_place &place, int row,
             const int32_t (&sums)[1][COLS / 2], const wgmma_columns<COLS> &columns,
             const wgmma_added<COLS, float> &added, wgmma_lines &lines)
{
    wgmma_columns_reader<COLS> ahead(columns);
    int left = place.end - place.col - threadIdx.x % 8 * 4;
    int down = a.m - row - wgmma_line_team_row();
    float *y = (float *) a.y[place.which] + (size_t) (row + wgmma_line_team_row()) * a.part +
               (place.col - place.which * a.part + threadIdx.x % 8 * 4);
#pragma unroll
    for (int block = 0; block < COLS / 32; block++) {
        ahead.fetch(block + 1);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = threadIdx.x % 32 / 4 + 8 * h, c = threadIdx.x % 4 * 2;
            float v[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[i] =
                    ft_finish<EPILOGUE>(wgmma_sum(sums[0], block, h, i), ahead.scale[block % 2][i],
                                        ahead.bias[block % 2][i], FT_ACT_NONE);
            lines[r][wgmma_float_chunk(r, c)] = wgmma_words(v[0], v[1], v[2], v[3]);
            lines[r][wgmma_float_chunk(r, c + 1)] = wgmma_words(v[4], v[5], v[6], v[7]);
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int r = wgmma_line_row() + 4 * i;
            float4 value = wgmma_floats(lines[r][wgmma_float_chunk(r, threadIdx.x % 8)]);
            if (a.residual != NULL) {
                float4 term = wgmma_floats(added.v[block][i]);
                value = { value.x + term.x, value.y + term.y, value.z + term.z, value.w + term.w };
            }
            wgmma_store(y + (size_t) (4 * i) * a.part + block * 32,
                        wgmma_words(value.x, value.y, value.z, value.w),
                        block * 32 < left && 4 * i < down);
        }
        __syncwarp();
    }
}

/* ---- A tile of halves ----------------------------------------------------------------------- */

/* The residual is added before halves are rounded: it comes as sums lie in the lane. */
template <int COLS> struct wgmma_added<COLS, __half> {
    uint4 v[COLS / 32][2];

    __device__ __forceinline__ wgmma_added(const wgmma_args &a, const wgmma_place &place, int row)
    {
        if (a.residual == NULL)
            return;
        int left = place.end - place.col - wgmma_lane_col(), down = a.m - row - wgmma_lane_row();
        const __half *from = (const __half *) a.residual + (size_t) (row + wgmma_lane_row()) * a.n +
                             place.col + wgmma_lane_col();
#pragma unroll
        for (int block = 0; block < COLS / 32; block++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                v[block][h] = wgmma_fetch(from + (size_t) (8 * h) * a.n + block * 32,
                                          block * 32 < left && 8 * h < down);
    }
};

/* A line is 64 columns: two blocks. */
__device__ __forceinline__ int wgmma_half_chunk(int row, int chunk)
{
    return chunk ^ (row % 2 * 4 + row / 2 % 4);
}

__device__ __forceinline__ uint4 wgmma_halves(const float (&v)[8])
{
    __half2 pair[4];
    uint4 words;
#pragma unroll
    for (int i = 0; i < 4; i++)
        pair[i] = __floats2half2_rn(v[2 * i], v[2 * i + 1]);
    memcpy(&words, pair, sizeof words);
    return words;
}

/* value += eight halves */
__device__ __forceinline__ void wgmma_add_halves(float (&value)[8], uint4 words)
{
    __half terms[8];
    memcpy(terms, &words, sizeof terms);
#pragma unroll
    for (int i = 0; i < 8; i++)
        value[i] += __half2float(terms[i]);
}

template <int ROWS, int COLS, ft_epilogue EPILOGUE>
__device__ __forceinline__ void
wgmma_finish(const wgmma_args &a, const wgmma_place &place, int row,
             const int32_t (&sums)[1][COLS / 2], const wgmma_columns<COLS> &columns,
             const wgmma_added<COLS, __half> &added, wgmma_lines &lines)
{
    wgmma_columns_reader<COLS> ahead(columns);
    int left = place.end - place.col - threadIdx.x % 8 * 8;
    int down = a.m - row - wgmma_line_team_row();
    __half *y = (__half *) a.y[place.which] + (size_t) (row + wgmma_line_team_row()) * a.part +
                (place.col - place.which * a.part + threadIdx.x % 8 * 8);
#pragma unroll
    for (int block = 0; block < COLS / 32; block++) {
        ahead.fetch(block + 1);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = threadIdx.x % 32 / 4 + 8 * h, c = threadIdx.x % 4 + block % 2 * 4;
            float v[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[i] =
                    ft_finish<EPILOGUE>(wgmma_sum(sums[0], block, h, i), ahead.scale[block % 2][i],
                                        ahead.bias[block % 2][i], FT_ACT_NONE);
            if (a.residual != NULL)
                wgmma_add_halves(v, added.v[block][h]);
            lines[r][wgmma_half_chunk(r, c)] = wgmma_halves(v);
        }
        if (block % 2 == 0)
            continue;
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int r = wgmma_line_row() + 4 * i;
            uint4 value = lines[r][wgmma_half_chunk(r, threadIdx.x % 8)];
            wgmma_store(y + (size_t) (4 * i) * a.part + block / 2 * 64, value,
                        block / 2 * 64 < left && 4 * i < down);
        }
        __syncwarp();
    }
}

#endif
#endif
