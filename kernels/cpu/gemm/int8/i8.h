/*
 * i8.h - the int8 GEMM kernels that every instruction set provides.
 *
 * Weights are first packed into a panel, whose layout is private to the instruction set: one vector
 * load feeds the multiplier. A panel is packed where it is used, in a thread's scratch, and kept as
 * long as it is in cache. A quad is four neighbouring elements along k; all sizes here are in
 * quads, so k is padded to a multiple of 4. The padding must be zero in one of the operands: in x
 * or in the panel (pack_rows and pack_cols write zeros, pack_col4 copies what the file holds).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_I8_H
#define FT_KERNELS_CPU_GEMM_INT8_I8_H

#include "kernels/activation.h"
#include "kernels/cpu/base/isa.h"
#include "runtime/mem.h"

enum {
    FT_I8_PANEL = 64,       /* weight rows of a panel of a GEMM */
    FT_I8_TILE = 6,         /* maximum activation rows of gemm_tile() */
    FT_I8_BLOCK_ROWS = 256, /* the same of gemm_block() */
    FT_I8_STREAM_ROWS = 32, /* maximum activation rows of stream() */
    FT_I8_UNIT = 16,        /* packed rows are padded to a multiple of this */
    FT_I8_BLOCK = 32,       /* packed k is padded to a multiple of this */
    FT_I8_WEIGHT_BYTES = 2, /* maximum, per packed element */
};

/*
 * Cache lines to prefetch during a tile: `lines` of them per block of k, with blocks `stride` bytes
 * apart. `at` is never NULL.
 */
typedef struct ft_i8_prefetch {
    const int8_t *at;
    size_t stride, lines;
} ft_i8_prefetch;

/*
 * The epilogue of one panel of columns; scale and bias are padded with zeros.
 */
typedef struct ft_i8_epilogue {
    float scale[FT_I8_PANEL], bias[FT_I8_PANEL];
    const float *x_scales; /* per row of the output, times scale; NULL: scale includes that of x */
    size_t cols;           /* at most FT_I8_PANEL */
    ft_activation activation;
    const float *residual; /* starting at the panel's first column, or NULL */
    size_t residual_stride;
    ft_dtype y_dtype;  /* FT_I8: quantized; FT_F32 or FT_F16: float */
    float out_inverse; /* FT_I8: 1 / scale of y */
    void *y;           /* starting at the panel's first column */
    size_t y_stride;
} ft_i8_epilogue;

static inline void ft_i8_prefetch_lines(const int8_t *at, size_t lines)
{
    for (size_t line = 0; line < lines; line++)
        __builtin_prefetch(at + line * 64, 0, 2);
}

/* A register tile: a few rows of x against one panel. */
typedef struct ft_i8_tile {
    const int8_t *x;
    size_t x_stride, rows, k_quads;
    const int32_t *acc_init; /* [rows], from acc_init_rows() */
    int32_t *out;            /* [rows, panel rows rounded up to FT_I8_UNIT] */
    size_t out_stride;
    ft_i8_prefetch prefetch;
} ft_i8_tile;

/* out = x . panel^T, exact. */
typedef void ft_i8_multiply(const ft_i8_tile *tile, const void *panel, size_t panel_rows);

typedef struct ft_i8_kernels {
    /*
     * Up to this many rows of x, stream() is faster than panels; at most FT_I8_STREAM_ROWS, 0
     * without stream().
     */
    size_t stream_rows;

    /*
     * Packs rows first .. first + rows of a COL4_4R2_8C matrix [n, k] with n padded to `padded_n`;
     * first is a multiple of 8 and rows are at most FT_I8_PANEL.
     */
    void (*pack_col4)(void *panel, const int8_t *w, size_t padded_n, size_t k, size_t first,
                      size_t rows);

    /* Packs a row-major matrix [rows, k], or the transpose of a row-major [k, rows]. */
    void (*pack_rows)(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k);
    void (*pack_cols)(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k);

    /*
     * Initial accumulators of each row of x, which cancel the offset that the kernel adds to the
     * weights.
     */
    void (*acc_init_rows)(int32_t *acc_init, const int8_t *x, size_t stride, size_t rows,
                          size_t k_quads);

    ft_i8_multiply *gemm_tile;  /* up to FT_I8_TILE rows */
    ft_i8_multiply *gemm_block; /* up to FT_I8_BLOCK_ROWS rows; NULL: gemm_tile() is as fast */

    /*
     * out = x . w^T for few rows of x, reading COL4_4R2_8C weights once, in memory order; k_quads
     * is a multiple of 8, and out holds partial sums until the end, with space as for gemm_tile().
     */
    void (*stream)(const ft_i8_tile *tile, const int8_t *w, size_t padded_n, size_t first,
                   size_t weight_rows);

    /*
     * Quantized softmax of rows of scores [rows, cols]: ft_softmax_code(max - score, step), and the
     * sum of each row; rows <= FT_I8_TILE, and scores are below 2^24. Scores and outputs have space
     * for cols rounded up to FT_I8_PANEL; the padded outputs become 0.
     */
    void (*softmax)(int8_t *probs, size_t probs_stride, float *prob_sums, int32_t *scores,
                    size_t scores_stride, size_t rows, size_t cols, float stride);

    /* Writes rows first_row .. first_row + rows of the output from their accumulators. */
    void (*epilogue)(const ft_i8_epilogue *epilogue, const int32_t *acc, size_t stride,
                     size_t first_row, size_t rows);
} ft_i8_kernels;

/* The members of the table of an instruction set whose file names its functions like them. */
#define FT_I8_KERNELS                                                                              \
    .pack_col4 = pack_col4, .pack_rows = pack_rows, .pack_cols = pack_cols,                        \
    .acc_init_rows = acc_init_rows, .gemm_tile = gemm_tile, .softmax = softmax,                    \
    .epilogue = epilogue

/* The kernels of a supported instruction set. */
const ft_i8_kernels *ft_i8_kernels_for(ft_isa isa);

extern const ft_i8_kernels ft_i8_generic, ft_i8_avx2, ft_i8_avxvnni, ft_i8_avx512, ft_i8_amx,
    ft_i8_neon, ft_i8_dotprod, ft_i8_i8mm;

/* Upper bound of the bytes of a panel of `rows` x `k`, on any instruction set. */
static inline size_t ft_i8_panel_bytes(size_t rows, size_t k)
{
    return ft_round_up(rows, FT_I8_UNIT) * ft_round_up(k, FT_I8_BLOCK) * FT_I8_WEIGHT_BYTES;
}

/*
 * The row stride in bytes of a matrix in scratch: an odd number of cache lines, because rows a
 * power of two apart would conflict in the same few sets of the L1 cache.
 */
static inline size_t ft_i8_stride(size_t bytes)
{
    return ft_round_up(bytes, 64) | 64;
}

/* Part `index` of `count` gets *share units, starting at the result. */
static inline size_t ft_i8_partition(size_t units, size_t index, size_t count, size_t *share)
{
    size_t first = units * index / count;
    *share = units * (index + 1) / count - first;
    return first;
}

#endif
