/*
 * wgmma_args.cuh - what the products of sm_90a share: arguments, tiles, lanes, columns.
 *
 * A lane has g = lane / 4 and t = lane % 4.  Of every 64 rows and 32 columns of a warpgroup's sums
 * it holds rows g and g + 8 of its warp's 16, columns 8t .. 8t + 7 (ft_cuda_tiles_offset).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_WGMMA_ARGS_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_WGMMA_ARGS_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

#include <cuda_fp16.h>
#include <string.h>

enum {
    WGMMA_TEAM = 128,  /* threads of a warpgroup */
    WGMMA_STAGE = 128, /* k of a stage: the widest row that a copy swizzles */
    WGMMA_BAND = 16,   /* row tiles that share weights in the second-level cache */
};

/* What a kernel gets.  The maps' boxes are a tile's rows, 128 k wide. */
typedef struct wgmma_args {
    CUtensorMap x, w;
    int m, n, steps;               /* steps: stages of a tile */
    int part[FT_CUDA_PARTS];       /* columns of this y and those before; n where there is none */
    int span[FT_CUDA_PARTS];       /* no tile goes beyond its span: a part; in general kernels n */
    int span_tiles[FT_CUDA_PARTS]; /* tiles of a row up to there */
    int row_tiles, tiles;
    int box_rows; /* of x that a copy brings */
    float x_scale;
    ft_activation activation; /* general kernels; others know theirs, but for: */
    bool relu;                /* kernels of few tokens */
    const float *x_scales, *w_scale, *bias;
    const void *residual;
    void *y[FT_CUDA_PARTS];
    float y_inverse[FT_CUDA_PARTS];
} wgmma_args;

/* Scales and biases of a tile's columns: two arrays, for pairs would meet in the same banks. */
template <int COLS> struct wgmma_columns {
    float scale[COLS], bias[COLS];
};

#ifdef FT_HAS_WGMMA

/* ---- Tiles ---------------------------------------------------------------------------------- */

typedef struct wgmma_place {
    int row, col; /* the tile's first */
    int which;    /* span, and y but in general kernels */
} wgmma_place;

/* The first column of a place's span, and the one behind it. */
__device__ __forceinline__ int wgmma_first(const wgmma_args &a, const wgmma_place &place)
{
    return place.which == 0 ? 0 : a.span[place.which - 1];
}

__device__ __forceinline__ int wgmma_end(const wgmma_args &a, const wgmma_place &place)
{
    return a.span[place.which];
}

__device__ __forceinline__ int wgmma_part_of(const wgmma_args &a, int col)
{
    return (col >= a.part[0]) + (col >= a.part[1]);
}

/* Down the rows of a band, then to the next column: blocks of a moment share rows and weights. */
__device__ __forceinline__ wgmma_place wgmma_place_of(const wgmma_args &a, int tile, int rows,
                                                      int cols)
{
    int columns = a.tiles / a.row_tiles;
    int band = tile / (WGMMA_BAND * columns), rest = tile - band * WGMMA_BAND * columns;
    int height = min((int) WGMMA_BAND, a.row_tiles - band * WGMMA_BAND);
    int col = rest / height, row = band * WGMMA_BAND + rest - col * height;
    int which = (col >= a.span_tiles[0]) + (col >= a.span_tiles[1]);
    int first = which == 0 ? 0 : a.span[which - 1];
    col -= which == 0 ? 0 : a.span_tiles[which - 1];
    return { row * rows, first + col * cols, which };
}

/* The lane's first row in a warpgroup's 64, and its first column in 32. */
__device__ __forceinline__ int wgmma_lane_row()
{
    return threadIdx.x % WGMMA_TEAM / 32 * 16 + threadIdx.x % 32 / 4;
}

__device__ __forceinline__ int wgmma_lane_col()
{
    return threadIdx.x % 4 * 8;
}

/* ---- Barriers of warpgroups ----------------------------------------------------------------- */

__device__ __forceinline__ void wgmma_sync(int barrier, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ __forceinline__ void wgmma_arrive(int barrier, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/* The threads of one team: named barriers 3 and 4. */
__device__ __forceinline__ void wgmma_sync_team(int team)
{
    wgmma_sync(3 + team, WGMMA_TEAM);
}

/* ---- What is fetched while a tile is multiplied --------------------------------------------- */

/*
 * Sixteen bytes of what other kernels write, and a row's scale; four bytes of what they never do.
 * Volatile, or the compiler would move them to their use, behind the product.
 */
__device__ __forceinline__ uint4 wgmma_fetch(const void *from, bool inside)
{
    uint4 v;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %5, 0;\n\t"
                 "mov.b32 %0, 0;\n\tmov.b32 %1, 0;\n\tmov.b32 %2, 0;\n\tmov.b32 %3, 0;\n\t"
                 "@p ld.global.v4.b32 {%0, %1, %2, %3}, [%4];\n\t}"
                 : "=&r"(v.x), "=&r"(v.y), "=&r"(v.z), "=&r"(v.w)
                 : "l"(from), "r"((int) inside));
    return v;
}

__device__ __forceinline__ float wgmma_fetch_scale(const float *from, bool inside)
{
    float v;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %2, 0;\n\tmov.b32 %0, 0;\n\t"
                 "@p ld.global.f32 %0, [%1];\n\t}"
                 : "=f"(v)
                 : "l"(from), "r"((int) inside));
    return v;
}

__device__ __forceinline__ float wgmma_fetch_weight(const float *from, bool inside)
{
    float v;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %2, 0;\n\tmov.b32 %0, 0;\n\t"
                 "@p ld.global.nc.f32 %0, [%1];\n\t}"
                 : "=&f"(v)
                 : "l"(from), "r"((int) inside));
    return v;
}

/* The scales of the lane's rows: g, g + 8 of each 64 rows from `row` on; where all have one, none.
 */
template <bool ANY, int HALVES> struct wgmma_row_scales {
    float of[2 * HALVES];

    __device__ __forceinline__ void fetch(const wgmma_args &a, int row)
    {
        row += wgmma_lane_row();
#pragma unroll
        for (int i = 0; i < 2 * HALVES; i++) {
            int own = row + i / 2 * 64 + i % 2 * 8;
            of[i] = ANY ? wgmma_fetch_scale(a.x_scales + own, own < a.m) : 1.0f;
        }
    }
    /* To the 64 rows below. */
    __device__ __forceinline__ void descend()
    {
        of[0] = of[2 * HALVES - 2];
        of[1] = of[2 * HALVES - 1];
    }
};

/* Scales and biases of a tile, a column or two in each thread of the team. */
template <int COLS> struct wgmma_columns_ahead {
    static constexpr int each = (COLS + WGMMA_TEAM - 1) / WGMMA_TEAM;
    float scale[each], bias[each];

    __device__ __forceinline__ wgmma_columns_ahead(const wgmma_args &a, const wgmma_place &place)
    {
#pragma unroll
        for (int i = 0; i < each; i++) {
            int own = threadIdx.x % WGMMA_TEAM + i * WGMMA_TEAM, col = place.col + own;
            bool inside = own < COLS && col < wgmma_end(a, place);
            scale[i] = wgmma_fetch_weight(a.w_scale + col, inside);
            bias[i] = wgmma_fetch_weight(a.bias + col, inside && a.bias != NULL);
        }
    }
    /* Behind the product: nothing may wait for the values before. */
    __device__ __forceinline__ void keep(wgmma_columns<COLS> &columns, const wgmma_args &a) const
    {
        float x_scale = a.x_scales != NULL ? 1.0f : a.x_scale;
#pragma unroll
        for (int i = 0; i < each; i++) {
            int own = threadIdx.x % WGMMA_TEAM + i * WGMMA_TEAM;
            if (own < COLS) {
                columns.scale[own] = x_scale * scale[i];
                columns.bias[own] = bias[i];
            }
        }
    }
};

#endif

/* ---- Host ----------------------------------------------------------------------------------- */

/* An epilogue without a switch, and what it writes. */
template <ft_epilogue EPILOGUE, typename Y> struct wgmma_kind {
    static constexpr ft_epilogue epilogue = EPILOGUE;
    typedef Y y;
};

/*
 * launch(wgmma_kind) for a product without an activation, with relu, or with the gelu of codes to
 * codes; with a scale for each row only to floats.
 */
template <class LAUNCH> static int wgmma_by_kind(const ft_cuda_product *p, LAUNCH launch)
{
    if (p->x_scales != NULL && p->y_dtype == FT_F16)
        return launch(wgmma_kind<FT_EPILOGUE_ROWS, __half>());
    if (p->x_scales != NULL && p->y_dtype == FT_F32)
        return launch(wgmma_kind<FT_EPILOGUE_ROWS, float>());
    if (p->y_dtype == FT_F16)
        return launch(wgmma_kind<FT_EPILOGUE_NONE, __half>());
    if (p->y_dtype == FT_F32)
        return launch(wgmma_kind<FT_EPILOGUE_NONE, float>());
    if (p->activation == FT_ACT_GELU_CODES)
        return launch(wgmma_kind<FT_EPILOGUE_GELU, int8_t>());
    return launch(wgmma_kind<FT_EPILOGUE_NONE, int8_t>());
}

/* Parts, spans and tiles of tile_cols columns. */
static inline void wgmma_args_divide(wgmma_args *a, const ft_cuda_product *p, bool general,
                                     int tile_cols)
{
    int end = 0, tiles = 0;
    for (int i = 0; i < FT_CUDA_PARTS; i++) {
        int width = i < p->parts ? (int) p->width[i] : 0;
        int spanned = !general ? width : i == 0 ? a->n : 0;
        end += width;
        tiles += (spanned + tile_cols - 1) / tile_cols;
        a->part[i] = end;
        a->span[i] = general ? a->n : end;
        a->span_tiles[i] = tiles;
    }
    a->tiles = a->row_tiles * tiles;
}

/* For tiles of tile_rows x tile_cols; the weights' map is not made here. */
static inline int wgmma_args_init(wgmma_args *a, const ft_cuda_product *p, bool general,
                                  int tile_rows, int tile_cols)
{
    memset(a, 0, sizeof *a);
    a->m = (int) p->m;
    a->n = (int) p->n;
    a->steps = (int) ((p->k + WGMMA_STAGE - 1) / WGMMA_STAGE);
    a->row_tiles = (int) ((p->m + (size_t) tile_rows - 1) / (size_t) tile_rows);
    wgmma_args_divide(a, p, general, tile_cols);
    a->x_scale = p->x_scale;
    a->activation = p->activation;
    a->relu = p->activation == FT_ACT_RELU;
    a->x_scales = p->x_scales;
    a->w_scale = p->w_scale;
    a->bias = p->bias;
    a->residual = p->residual;
    for (int i = 0; i < p->parts; i++) {
        a->y[i] = p->y[i];
        a->y_inverse[i] = p->y_inverse[i];
    }
    a->box_rows = tile_rows;
    return ft_map_codes(&a->x, p->x, p->m, p->k, (unsigned) tile_rows);
}

/*
 * The map of x once more, for a tile of fewer rows than it could have: what lies beyond x would be
 * written as zeros, which takes longer than to copy (few tokens took more time than 64), and nobody
 * looks at the sums of these rows.
 */
static inline int wgmma_args_trim(wgmma_args *a, const ft_cuda_product *p)
{
    if (p->m >= (size_t) a->box_rows)
        return 0;
    a->box_rows = ((int) p->m + 7) / 8 * 8;
    return ft_map_codes(&a->x, p->x, p->m, p->k, (unsigned) a->box_rows);
}

/* The weights' map, for those that read them as tiles. */
static inline int wgmma_args_map_tiles(wgmma_args *a, const ft_cuda_product *p, int tile_cols)
{
    return ft_map_tiles(&a->w, p->tiles, (p->n + 31) / 32, (size_t) a->steps, (unsigned) tile_cols);
}

#endif
