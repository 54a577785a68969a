/*
 * gemm_f32.c - distributes a float GEMM over threads, cache blocks and register tiles.
 *
 * Each thread owns a rectangle of the output and processes it in blocks of columns. One k_tile of a
 * block's weights is packed into the thread's L2 cache, and all rows of x are multiplied with it.
 * With few rows of x packing does not pay: the weights are streamed from memory once, unpacked, and
 * threads take blocks of columns dynamically.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/f32/gemm_f32.h"

#include "kernels/cpu/gemm/f32/f32.h"
#include "kernels/cpu/base/rows.h"
#include "kernels/threads/team.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <assert.h>

extern const ft_float_kernels ft_float_generic, ft_float_avx2, ft_float_avx512;

const ft_float_kernels *ft_float_kernels_of(ft_isa isa)
{
    switch (isa) {
#ifdef HAVE_AVX512
    case FT_ISA_AVX512VNNI:
        return &ft_float_avx512;
#endif
#ifdef HAVE_AVX2
    case FT_ISA_AVXVNNI:
    case FT_ISA_AVX2:
        return &ft_float_avx2;
#endif
    default:
        return &ft_float_generic;
    }
}

enum {
    BLOCK_ROWS = 480, /* a multiple of every tile's rows ... */
    BLOCK_COLS = 96,  /* ... and of its columns */
    DEPTH = FT_FLOAT_PIECE,
    FEW_ROWS = 2 * FT_FLOAT_ROWS, /* too few rows for packing the weights to pay */
};

/* A rectangle of the output. */
typedef struct block {
    size_t row, rows, col, cols;
} block;

typedef struct product {
    const ft_gemm_float *g;
    const ft_float_kernels *kernels;
    const ft_rows_isa *rows;
    const float *x; /* [m, k] in float */
    size_t x_stride, w_size;
    float *copy;                   /* of x converted to float, if it is not */
    struct block_scratch *scratch; /* [threads] */
    size_t piece;                  /* columns per chunk of the small_m kernel */
} product;

/* Scratch of one thread: the accumulators and operands of a block. */
typedef struct block_scratch {
    float sums[BLOCK_ROWS * BLOCK_COLS];
    float w[BLOCK_COLS * DEPTH], x[FT_FLOAT_ROWS * DEPTH]; /* packed k_tiles */
} block_scratch;

size_t ft_gemm_float_scratch(ft_dtype x_dtype, size_t m, size_t k, int threads)
{
    size_t own, x;
    if (!ft_mul(sizeof(block_scratch), (size_t) threads, &own) ||
        !ft_mul(x_dtype == FT_F32 ? 0 : m, k, &x) || !ft_mul(x, sizeof(float), &x) ||
        !ft_add(x, own, &x))
        return SIZE_MAX;
    return x;
}

static const void *weights_at(const product *job, size_t col, size_t at)
{
    return (const char *) job->g->w + (col * job->g->k + at) * job->w_size;
}

/* Few rows: the weights are read once, in place, and converted in registers. */
static void multiply_few(const product *job, const block *b, block_scratch *scratch)
{
    size_t rows = job->kernels->rows, cols = job->kernels->cols, k = job->g->k;
    for (size_t j = 0; j < b->cols; j += cols)
        for (size_t at = 0; at < k; at += DEPTH)
            for (size_t i = 0; i < b->rows; i += rows)
                job->kernels->multiply(&(ft_float_tile){
                    .x = job->x + (b->row + i) * job->x_stride + at,
                    .x_stride = job->x_stride,
                    .w = weights_at(job, b->col + j, at),
                    .w_stride = k,
                    .w_dtype = job->g->w_dtype,
                    .adds = at > 0,
                    .rows = ft_min_size(rows, b->rows - i),
                    .cols = ft_min_size(cols, b->cols - j),
                    .k = ft_min_size(DEPTH, k - at),
                    .sums = scratch->sums + i * BLOCK_COLS + j,
                    .sums_stride = BLOCK_COLS,
                });
}

/* Packs one k_tile of a block's weights. */
static void pack_weights(const product *job, const block *b, size_t at, size_t depth, float *to)
{
    size_t cols = job->kernels->cols, padded = ft_round_up(depth, FT_FLOAT_LANES);
    for (size_t j = 0; j < b->cols; j += cols)
        job->kernels->pack(to + j * padded, weights_at(job, b->col + j, at), job->g->k,
                           job->g->w_dtype, ft_min_size(cols, b->cols - j), cols, depth);
}

/* Prefetches share `index` of `count` of the next weights into the L2 cache. */
static void fetch_weights(const product *job, const block *next, size_t at, size_t index,
                          size_t count)
{
    size_t lines = ft_min_size(DEPTH, job->g->k - at) * job->w_size / 64;
    size_t first = next->cols * lines * index / count,
           end = next->cols * lines * (index + 1) / count;
    for (size_t i = first; i < end; i++)
        __builtin_prefetch(
            (const char *) weights_at(job, next->col + i / lines, at) + i % lines * 64, 0, 2);
}

/*
 * Many rows: a few rows of x stay in the L1 cache while the block's weights stream from L2.
 * Meanwhile the weights of the next k_tile, or of the `next` block, are prefetched.
 */
static void multiply_many(const product *job, const block *b, const block *next,
                          block_scratch *scratch)
{
    size_t rows = job->kernels->rows, k = job->g->k;
    size_t tiles = (b->rows + rows - 1) / rows;
    for (size_t at = 0; at < k; at += DEPTH) {
        size_t depth = ft_min_size(DEPTH, k - at);
        pack_weights(job, b, at, depth, scratch->w);
        for (size_t i = 0; i < b->rows; i += rows) {
            size_t there = ft_min_size(rows, b->rows - i);
            if (at + DEPTH < k)
                fetch_weights(job, b, at + DEPTH, i / rows, tiles);
            else
                fetch_weights(job, next, 0, i / rows, tiles);
            job->kernels->pack(scratch->x, job->x + (b->row + i) * job->x_stride + at,
                               job->x_stride, FT_F32, there, rows, depth);
            job->kernels->multiply(&(ft_float_tile){
                .packed = true,
                .x = scratch->x,
                .w = scratch->w,
                .w_dtype = FT_F32,
                .adds = at > 0,
                .rows = there,
                .cols = b->cols,
                .k = depth,
                .sums = scratch->sums + i * BLOCK_COLS,
                .sums_stride = BLOCK_COLS,
            });
        }
    }
}

/* The epilogue: bias, activation and conversion to the output dtype. */
static void finish_block(const product *job, const block *b, float *sums)
{
    const ft_gemm_float *g = job->g;
    size_t size = ft_dtype_size(g->y_dtype);
    char *y = (char *) g->y + (b->row * g->y_stride + b->col) * size;
    for (size_t i = 0; i < b->rows; i++, sums += BLOCK_COLS, y += g->y_stride * size) {
        if (g->bias != NULL)
            job->rows->add(sums, sums, g->bias + b->col, b->cols);
        job->rows->activate(sums, sums, g->activation, b->cols);
        job->rows->from_float(y, sums, g->y_dtype, b->cols);
    }
}

/* Whether rows are few enough to read the weights unpacked. */
static bool are_few(const ft_gemm_float *g, size_t rows)
{
    return rows <= FEW_ROWS && g->k % FT_FLOAT_LANES == 0;
}

static void multiply_block(const product *job, const block *b, const block *next,
                           block_scratch *scratch)
{
    if (are_few(job->g, b->rows))
        multiply_few(job, b, scratch);
    else
        multiply_many(job, b, next, scratch);
    finish_block(job, b, scratch->sums);
}

/* Slice `index` of `count` of n columns or rows, split at multiples of `unit`. */
static size_t share(size_t n, size_t unit, size_t index, size_t count, size_t *length)
{
    size_t units = (n + unit - 1) / unit;
    size_t first = ft_min_size(units * index / count * unit, n);
    *length = ft_min_size(units * (index + 1) / count * unit, n) - first;
    return first;
}

/*
 * Splits the columns; splits the rows too if a thread would otherwise get less than a block.
 */
static block block_of_thread(const ft_gemm_float *g, size_t thread, size_t threads)
{
    size_t col_parts = ft_min_size(threads, (g->n + BLOCK_COLS - 1) / BLOCK_COLS);
    size_t row_parts = threads / col_parts;
    block b = { 0 };
    if (thread >= row_parts * col_parts)
        return b;
    b.row = share(g->m, FT_FLOAT_ROWS, thread / col_parts, row_parts, &b.rows);
    b.col = share(g->n, FT_FLOAT_LANES, thread % col_parts, col_parts, &b.cols);
    return b;
}

static void multiply_part(const product *job, block all, block_scratch *scratch)
{
    for (size_t j = 0; j < all.cols; j += BLOCK_COLS) {
        size_t cols = ft_min_size(BLOCK_COLS, all.cols - j);
        block next = { .col = all.col + j + cols };
        next.cols = ft_min_size(BLOCK_COLS, all.cols - j - cols);
        for (size_t i = 0; i < all.rows; i += BLOCK_ROWS) {
            block b = { all.row + i, ft_min_size(BLOCK_ROWS, all.rows - i), all.col + j, cols };
            multiply_block(job, &b, i + BLOCK_ROWS < all.rows ? &b : &next, scratch);
        }
    }
}

/* The output rectangles of threads first .. end - 1. */
static void multiply_parts(const void *of, int thread, size_t first, size_t end)
{
    const product *job = of;
    for (size_t i = first; i < end; i++)
        multiply_part(job, block_of_thread(job->g, i, (size_t) job->g->threads),
                      &job->scratch[thread]);
}

static void convert_rows(const void *of, int thread, size_t first, size_t end)
{
    const product *job = of;
    const ft_gemm_float *g = job->g;
    size_t stride = g->x_stride * ft_dtype_size(g->x_dtype);
    (void) thread;
    for (size_t i = first; i < end; i++)
        job->rows->to_float(job->copy + i * g->k, (const char *) g->x + i * stride, g->x_dtype,
                            g->k);
}

/* Chunks first .. end - 1 of the columns, with few rows. */
static void multiply_pieces(const void *of, int thread, size_t first, size_t end)
{
    const product *job = of;
    const ft_gemm_float *g = job->g;
    for (size_t i = first; i < end; i++) {
        size_t col = i * job->piece;
        block b = { 0, g->m, col, ft_min_size(job->piece, g->n - col) };
        multiply_part(job, b, &job->scratch[thread]);
    }
}

/* x is used in place, or converted to float by all threads. */
void ft_gemm_float_run(const ft_gemm_float *g)
{
    assert(g->scratch_bytes >= ft_gemm_float_scratch(g->x_dtype, g->m, g->k, g->threads));
    block_scratch *scratch = g->scratch;
    product job = {
        .g = g,
        .kernels = ft_float_kernels_of(g->isa),
        .rows = ft_rows_of(g->isa),
        .x = g->x,
        .x_stride = g->x_stride,
        .w_size = ft_dtype_size(g->w_dtype),
        .copy = (float *) (void *) (scratch + g->threads),
        .scratch = scratch,
        .piece = ft_team_piece(g->threads, g->n, FT_FLOAT_LANES, BLOCK_COLS),
    };
    if (g->x_dtype != FT_F32) {
        job.x = job.copy;
        job.x_stride = g->k;
        ft_team_share(g->threads, g->m, convert_rows, &job);
    }
    if (are_few(g, g->m))
        ft_team_help(g->threads, (g->n + job.piece - 1) / job.piece, multiply_pieces, &job);
    else
        ft_team_share(g->threads, (size_t) g->threads, multiply_parts, &job);
}
