/*
 * wgmma_args.cuh - shared by the wgmma INT8 kernels: arguments, tile scheduling, prefetches.
 *
 * A lane has g = lane / 4 and t = lane % 4. Of every 64 rows and 32 columns of a warpgroup's
 * accumulators it holds rows g and g + 8 of its warp's 16, columns 8t .. 8t + 7
 * (ft_cuda_prepacked_offset).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_WGMMA_ARGS_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_WGMMA_ARGS_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/ptx/named_barrier.cuh"
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

#include <cuda_fp16.h>
#include <string.h>

enum {
    WARPGROUP_THREADS = 128, /* threads per warpgroup */
    WGMMA_TILE_K = 128,      /* k per stage: the widest row that TMA swizzles */
    WGMMA_RASTER_BAND = 16,  /* row tiles per raster band, which share weights in L2 */
};

/* Kernel parameters. TMA boxes are the rows of a tile by 128 k. */
typedef struct wgmma_args {
    CUtensorMap x, w;
    int m, n, k_tiles;                  /* k_tiles: of an output tile */
    int output_end[FT_CUDA_MAX_FUSED];  /* columns of this y and those before; n beyond the last one
                                         */
    int range_end[FT_CUDA_MAX_FUSED];   /* end of the column range that a tile may not cross: an
                                         * output; with the general epilogue n */
    int range_tiles[FT_CUDA_MAX_FUSED]; /* number of column tiles up to there */
    int row_tiles, n_tiles;
    int box_rows; /* rows of x per TMA copy */
    float x_scale;
    ft_activation activation; /* general epilogue only; others are compiled for theirs, except: */
    bool relu;                /* small-m kernels */
    const float *x_scales, *w_scale, *bias;
    const void *residual;
    void *y[FT_CUDA_MAX_FUSED];
    float y_inv_scale[FT_CUDA_MAX_FUSED];
} wgmma_args;

/* Scales and biases of a tile's columns; two arrays, because pairs would cause bank conflicts. */
template <int COLS> struct wgmma_col_params {
    float scale[COLS], bias[COLS];
};

#ifdef FT_HAS_WGMMA

/* ---- Tile scheduling ------------------------------------------------------------------------ */

typedef struct wgmma_tile_coord {
    int row, col;    /* first row and column of the tile */
    int range_index; /* column range, which is also the output except with the general epilogue */
} wgmma_tile_coord;

/* First column of the tile's column range, and its end. */
__device__ __forceinline__ int wgmma_range_begin(const wgmma_args &a, const wgmma_tile_coord &coord)
{
    return coord.range_index == 0 ? 0 : a.range_end[coord.range_index - 1];
}

__device__ __forceinline__ int wgmma_range_end(const wgmma_args &a, const wgmma_tile_coord &coord)
{
    return a.range_end[coord.range_index];
}

__device__ __forceinline__ int wgmma_output_of(const wgmma_args &a, int col)
{
    return (col >= a.output_end[0]) + (col >= a.output_end[1]);
}

/*
 * Rasterization: down the rows of a band, then the next column tile, so that concurrent thread
 * blocks share rows and weights in L2.
 */
__device__ __forceinline__ wgmma_tile_coord wgmma_tile_coord_of(const wgmma_args &a, int tile,
                                                                int rows, int cols)
{
    int columns = a.n_tiles / a.row_tiles;
    int band = tile / (WGMMA_RASTER_BAND * columns),
        rest = tile - band * WGMMA_RASTER_BAND * columns;
    int height = min((int) WGMMA_RASTER_BAND, a.row_tiles - band * WGMMA_RASTER_BAND);
    int col = rest / height, row = band * WGMMA_RASTER_BAND + rest - col * height;
    int range_index = (col >= a.range_tiles[0]) + (col >= a.range_tiles[1]);
    int first = range_index == 0 ? 0 : a.range_end[range_index - 1];
    col -= range_index == 0 ? 0 : a.range_tiles[range_index - 1];
    return { row * rows, first + col * cols, range_index };
}

/* First row of the lane in a warpgroup's 64, and first column in 32. */
__device__ __forceinline__ int wgmma_lane_row()
{
    return threadIdx.x % WARPGROUP_THREADS / 32 * 16 + threadIdx.x % 32 / 4;
}

__device__ __forceinline__ int wgmma_lane_col()
{
    return threadIdx.x % 4 * 8;
}

/* Barrier of the threads of one warpgroup: named barriers 3 and 4. */
__device__ __forceinline__ void wgmma_warpgroup_sync(int warpgroup)
{
    ft_named_barrier_sync(3 + warpgroup, WARPGROUP_THREADS);
}

/* ---- Prefetches during the mainloop --------------------------------------------------------- */

/*
 * Predicated loads: 16 bytes and a row scale that earlier kernels write, and four bytes of
 * read-only parameters. Volatile, or the compiler would sink them to their use after the mainloop.
 */
__device__ __forceinline__ uint4 wgmma_prefetch_x16(const void *from, bool inside)
{
    uint4 v;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %5, 0;\n\t"
                 "mov.b32 %0, 0;\n\tmov.b32 %1, 0;\n\tmov.b32 %2, 0;\n\tmov.b32 %3, 0;\n\t"
                 "@p ld.global.v4.b32 {%0, %1, %2, %3}, [%4];\n\t}"
                 : "=&r"(v.x), "=&r"(v.y), "=&r"(v.z), "=&r"(v.w)
                 : "l"(from), "r"((int) inside));
    return v;
}

__device__ __forceinline__ float wgmma_prefetch_row_scale(const float *from, bool inside)
{
    float v;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %2, 0;\n\tmov.b32 %0, 0;\n\t"
                 "@p ld.global.f32 %0, [%1];\n\t}"
                 : "=f"(v)
                 : "l"(from), "r"((int) inside));
    return v;
}

__device__ __forceinline__ float wgmma_prefetch_param(const float *from, bool inside)
{
    float v;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %2, 0;\n\tmov.b32 %0, 0;\n\t"
                 "@p ld.global.nc.f32 %0, [%1];\n\t}"
                 : "=&f"(v)
                 : "l"(from), "r"((int) inside));
    return v;
}

/*
 * Scales of the lane's rows g and g + 8 in each block of 64 rows from `row`; unused with a
 * per-tensor scale.
 */
template <bool ANY, int M64_BLOCKS> struct wgmma_row_scales {
    float of[2 * M64_BLOCKS];

    __device__ __forceinline__ void fetch(const wgmma_args &a, int row)
    {
        row += wgmma_lane_row();
#pragma unroll
        for (int i = 0; i < 2 * M64_BLOCKS; i++) {
            int own = row + i / 2 * 64 + i % 2 * 8;
            of[i] = ANY ? wgmma_prefetch_row_scale(a.x_scales + own, own < a.m) : 1.0f;
        }
    }
    /* Continue with the next 64 rows. */
    __device__ __forceinline__ void next_m64_block()
    {
        of[0] = of[2 * M64_BLOCKS - 2];
        of[1] = of[2 * M64_BLOCKS - 1];
    }
};

/* Prefetched scales and biases of a tile, one or two columns per thread of the warpgroup. */
template <int COLS> struct wgmma_col_params_prefetch {
    static constexpr int per_thread = (COLS + WARPGROUP_THREADS - 1) / WARPGROUP_THREADS;
    float scale[per_thread], bias[per_thread];

    __device__ __forceinline__ wgmma_col_params_prefetch(const wgmma_args &a,
                                                         const wgmma_tile_coord &coord)
    {
#pragma unroll
        for (int i = 0; i < per_thread; i++) {
            int own = threadIdx.x % WARPGROUP_THREADS + i * WARPGROUP_THREADS,
                col = coord.col + own;
            bool inside = own < COLS && col < wgmma_range_end(a, coord);
            scale[i] = wgmma_prefetch_param(a.w_scale + col, inside);
            bias[i] = wgmma_prefetch_param(a.bias + col, inside && a.bias != NULL);
        }
    }
    /* Called after the mainloop, so that nothing waits for the loads earlier. */
    __device__ __forceinline__ void store_smem(wgmma_col_params<COLS> &columns,
                                               const wgmma_args &a) const
    {
        float x_scale = a.x_scales != NULL ? 1.0f : a.x_scale;
#pragma unroll
        for (int i = 0; i < per_thread; i++) {
            int own = threadIdx.x % WARPGROUP_THREADS + i * WARPGROUP_THREADS;
            if (own < COLS) {
                columns.scale[own] = x_scale * scale[i];
                columns.bias[own] = bias[i];
            }
        }
    }
};

#endif

/* ---- Host ----------------------------------------------------------------------------------- */

/* Epilogue and output type of a specialized kernel. */
template <ft_epilogue EPILOGUE, typename Y> struct wgmma_epilogue_type {
    static constexpr ft_epilogue epilogue = EPILOGUE;
    typedef Y y;
};

/* Calls launch(wgmma_epilogue_type) for an output type and with or without row scales. */
template <typename Y, class LAUNCH>
static int wgmma_dispatch_activation(const ft_cuda_gemm_args *p, LAUNCH launch)
{
    bool gelu = sizeof(Y) <= 2 && p->activation == FT_ACT_GELU_APPROX;
    if (p->x_scales != NULL)
        return gelu ? launch(wgmma_epilogue_type<FT_EPILOGUE_ROW_SCALES_GELU, Y>())
                    : launch(wgmma_epilogue_type<FT_EPILOGUE_ROW_SCALES, Y>());
    return gelu ? launch(wgmma_epilogue_type<FT_EPILOGUE_GELU, Y>())
                : launch(wgmma_epilogue_type<FT_EPILOGUE_NONE, Y>());
}

/* The same for no activation, for ReLU, or for GELU to int8 or float16. */
template <class LAUNCH>
static int wgmma_dispatch_epilogue(const ft_cuda_gemm_args *p, LAUNCH launch)
{
    return p->y_dtype == FT_F16   ? wgmma_dispatch_activation<__half>(p, launch)
           : p->y_dtype == FT_F32 ? wgmma_dispatch_activation<float>(p, launch)
                                  : wgmma_dispatch_activation<int8_t>(p, launch);
}

/* Outputs, column ranges, and tiles of tile_cols columns. */
static inline void wgmma_args_set_outputs(wgmma_args *a, const ft_cuda_gemm_args *p, bool general,
                                          int tile_cols)
{
    int end = 0, tiles = 0;
    for (int i = 0; i < FT_CUDA_MAX_FUSED; i++) {
        int width = i < p->n_outputs ? (int) p->width[i] : 0;
        int range_width = !general ? width : i == 0 ? a->n : 0;
        end += width;
        tiles += (range_width + tile_cols - 1) / tile_cols;
        a->output_end[i] = end;
        a->range_end[i] = general ? a->n : end;
        a->range_tiles[i] = tiles;
    }
    a->n_tiles = a->row_tiles * tiles;
}

/* Arguments for tiles of tile_rows x tile_cols, except the tensor map of the weights. */
static inline int wgmma_args_init(wgmma_args *a, const ft_cuda_gemm_args *p, bool general,
                                  int tile_rows, int tile_cols)
{
    memset(a, 0, sizeof *a);
    a->m = (int) p->m;
    a->n = (int) p->n;
    a->k_tiles = (int) ((p->k + WGMMA_TILE_K - 1) / WGMMA_TILE_K);
    a->row_tiles = (int) ((p->m + (size_t) tile_rows - 1) / (size_t) tile_rows);
    wgmma_args_set_outputs(a, p, general, tile_cols);
    a->x_scale = p->x_scale;
    a->activation = p->activation;
    a->relu = p->activation == FT_ACT_RELU;
    a->x_scales = p->x_scales;
    a->w_scale = p->w_scale;
    a->bias = p->bias;
    a->residual = p->residual;
    for (int i = 0; i < p->n_outputs; i++) {
        a->y[i] = p->y[i];
        a->y_inv_scale[i] = p->y_inv_scale[i];
    }
    a->box_rows = tile_rows;
    return ft_tma_map_2d(&a->x, p->x, p->m, p->k, (unsigned) tile_rows);
}

/*
 * Re-encode the tensor map of x with fewer rows per box where m is smaller than a tile. TMA would
 * write zeros for the rows beyond x, which takes longer than copying (few tokens took more time
 * than 64), and nothing reads their results.
 */
static inline int wgmma_args_trim_box(wgmma_args *a, const ft_cuda_gemm_args *p)
{
    if (p->m >= (size_t) a->box_rows)
        return 0;
    a->box_rows = ((int) p->m + 7) / 8 * 8;
    return ft_tma_map_2d(&a->x, p->x, p->m, p->k, (unsigned) a->box_rows);
}

/* Tensor map of prepacked weights. */
static inline int wgmma_args_map_weights(wgmma_args *a, const ft_cuda_gemm_args *p, int tile_cols)
{
    return ft_tma_map_prepacked(&a->w, p->prepacked, (p->n + 31) / 32, (size_t) a->k_tiles,
                                (unsigned) tile_cols);
}

#endif
