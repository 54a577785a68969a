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

const ft_float_kernels *ft_float_kernels_for(ft_isa isa)
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
    K_TILE = FT_FLOAT_K_TILE,
    SMALL_M = 2 * FT_FLOAT_MAX_ROWS, /* too few rows for packing the weights to pay */
};

/* A rectangle of the output. */
typedef struct block {
    size_t row, rows, col, cols;
} block;

typedef struct gemm_job {
    const ft_gemm_float *g;
    const ft_float_kernels *kernels;
    const ft_row_kernels *rows;
    const float *x; /* [m, k] in float */
    size_t x_stride, w_size;
    float *x_float;                /* of x converted to float, if it is not */
    struct block_scratch *scratch; /* [threads] */
    size_t chunk;                  /* columns per chunk of the small_m kernel */
} gemm_job;

/* Scratch of one thread: the accumulators and operands of a block. */
typedef struct block_scratch {
    float acc[BLOCK_ROWS * BLOCK_COLS];
    float w[BLOCK_COLS * K_TILE], x[FT_FLOAT_MAX_ROWS * K_TILE]; /* packed k_tiles */
} block_scratch;

size_t ft_gemm_float_scratch(ft_dtype x_dtype, size_t m, size_t k, int threads)
{
    size_t per_thread, x;
    if (!ft_checked_mul(sizeof(block_scratch), (size_t) threads, &per_thread) ||
        !ft_checked_mul(x_dtype == FT_F32 ? 0 : m, k, &x) ||
        !ft_checked_mul(x, sizeof(float), &x) || !ft_checked_add(x, per_thread, &x))
        return SIZE_MAX;
    return x;
}

static const void *weights_at(const gemm_job *job, size_t col, size_t k_offset)
{
    return (const char *) job->g->w + (col * job->g->k + k_offset) * job->w_size;
}

/* Few rows: the weights are read once, in place, and converted in registers. */
static void gemm_small_m(const gemm_job *job, const block *b, block_scratch *scratch)
{
    size_t rows = job->kernels->rows, cols = job->kernels->cols, k = job->g->k;
    for (size_t j = 0; j < b->cols; j += cols)
        for (size_t k_offset = 0; k_offset < k; k_offset += K_TILE)
            for (size_t i = 0; i < b->rows; i += rows)
                job->kernels->gemm_tile(&(ft_float_tile){
                    .x = job->x + (b->row + i) * job->x_stride + k_offset,
                    .x_stride = job->x_stride,
                    .w = weights_at(job, b->col + j, k_offset),
                    .w_stride = k,
                    .w_dtype = job->g->w_dtype,
                    .accumulate = k_offset > 0,
                    .rows = ft_min_size(rows, b->rows - i),
                    .cols = ft_min_size(cols, b->cols - j),
                    .k = ft_min_size(K_TILE, k - k_offset),
                    .acc = scratch->acc + i * BLOCK_COLS + j,
                    .acc_stride = BLOCK_COLS,
                });
}

/* Packs one k_tile of a block's weights. */
static void pack_weights(const gemm_job *job, const block *b, size_t k_offset, size_t k_tile,
                         float *to)
{
    size_t cols = job->kernels->cols, padded = ft_round_up(k_tile, FT_FLOAT_LANES);
    for (size_t j = 0; j < b->cols; j += cols)
        job->kernels->pack(to + j * padded, weights_at(job, b->col + j, k_offset), job->g->k,
                           job->g->w_dtype, ft_min_size(cols, b->cols - j), cols, k_tile);
}

/* Prefetches share `index` of `count` of the next weights into the L2 cache. */
static void prefetch_weights(const gemm_job *job, const block *next, size_t k_offset, size_t index,
                             size_t count)
{
    size_t lines = ft_min_size(K_TILE, job->g->k - k_offset) * job->w_size / 64;
    size_t first = next->cols * lines * index / count,
           end = next->cols * lines * (index + 1) / count;
    for (size_t i = first; i < end; i++)
        __builtin_prefetch(
            (const char *) weights_at(job, next->col + i / lines, k_offset) + i % lines * 64, 0, 2);
}

/*
 * Many rows: a few rows of x stay in the L1 cache while the block's weights stream from L2.
 * Meanwhile the weights of the next k_tile, or of the `next` block, are prefetched.
 */
static void gemm_large_m(const gemm_job *job, const block *b, const block *next,
                         block_scratch *scratch)
{
    size_t rows = job->kernels->rows, k = job->g->k;
    size_t tiles = (b->rows + rows - 1) / rows;
    for (size_t k_offset = 0; k_offset < k; k_offset += K_TILE) {
        size_t k_tile = ft_min_size(K_TILE, k - k_offset);
        pack_weights(job, b, k_offset, k_tile, scratch->w);
        for (size_t i = 0; i < b->rows; i += rows) {
            size_t n_rows = ft_min_size(rows, b->rows - i);
            if (k_offset + K_TILE < k)
                prefetch_weights(job, b, k_offset + K_TILE, i / rows, tiles);
            else
                prefetch_weights(job, next, 0, i / rows, tiles);
            job->kernels->pack(scratch->x, job->x + (b->row + i) * job->x_stride + k_offset,
                               job->x_stride, FT_F32, n_rows, rows, k_tile);
            job->kernels->gemm_tile(&(ft_float_tile){
                .packed = true,
                .x = scratch->x,
                .w = scratch->w,
                .w_dtype = FT_F32,
                .accumulate = k_offset > 0,
                .rows = n_rows,
                .cols = b->cols,
                .k = k_tile,
                .acc = scratch->acc + i * BLOCK_COLS,
                .acc_stride = BLOCK_COLS,
            });
        }
    }
}

/* The epilogue: bias, activation and conversion to the output dtype. */
static void store_block(const gemm_job *job, const block *b, float *acc)
{
    const ft_gemm_float *g = job->g;
    size_t size = ft_dtype_size(g->y_dtype);
    char *y = (char *) g->y + (b->row * g->y_stride + b->col) * size;
    for (size_t i = 0; i < b->rows; i++, acc += BLOCK_COLS, y += g->y_stride * size) {
        if (g->bias != NULL)
            job->rows->add(acc, acc, g->bias + b->col, b->cols);
        job->rows->activate(acc, acc, g->activation, b->cols);
        job->rows->from_float(y, acc, g->y_dtype, b->cols);
    }
}

/* Whether rows are few enough to read the weights unpacked. */
static bool is_small_m(const ft_gemm_float *g, size_t rows)
{
    return rows <= SMALL_M && g->k % FT_FLOAT_LANES == 0;
}

static void gemm_block(const gemm_job *job, const block *b, const block *next,
                       block_scratch *scratch)
{
    if (is_small_m(job->g, b->rows))
        gemm_small_m(job, b, scratch);
    else
        gemm_large_m(job, b, next, scratch);
    store_block(job, b, scratch->acc);
}

/* Slice `index` of `count` of n columns or rows, split at multiples of `unit`. */
static size_t slice(size_t n, size_t unit, size_t index, size_t count, size_t *size)
{
    size_t units = (n + unit - 1) / unit;
    size_t first = ft_min_size(units * index / count * unit, n);
    *size = ft_min_size(units * (index + 1) / count * unit, n) - first;
    return first;
}

/*
 * Splits the columns; splits the rows too if a thread would otherwise get less than a block.
 */
static block thread_block(const ft_gemm_float *g, size_t thread, size_t threads)
{
    size_t col_splits = ft_min_size(threads, (g->n + BLOCK_COLS - 1) / BLOCK_COLS);
    size_t row_splits = threads / col_splits;
    block b = { 0 };
    if (thread >= row_splits * col_splits)
        return b;
    b.row = slice(g->m, FT_FLOAT_MAX_ROWS, thread / col_splits, row_splits, &b.rows);
    b.col = slice(g->n, FT_FLOAT_LANES, thread % col_splits, col_splits, &b.cols);
    return b;
}

static void gemm_rectangle(const gemm_job *job, block rect, block_scratch *scratch)
{
    for (size_t j = 0; j < rect.cols; j += BLOCK_COLS) {
        size_t cols = ft_min_size(BLOCK_COLS, rect.cols - j);
        block next = { .col = rect.col + j + cols };
        next.cols = ft_min_size(BLOCK_COLS, rect.cols - j - cols);
        for (size_t i = 0; i < rect.rows; i += BLOCK_ROWS) {
            block b = { rect.row + i, ft_min_size(BLOCK_ROWS, rect.rows - i), rect.col + j, cols };
            gemm_block(job, &b, i + BLOCK_ROWS < rect.rows ? &b : &next, scratch);
        }
    }
}

/* The output rectangles of threads first .. end - 1. */
static void gemm_rectangles(const void *arg, int thread, size_t first, size_t end)
{
    const gemm_job *job = arg;
    for (size_t i = first; i < end; i++)
        gemm_rectangle(job, thread_block(job->g, i, (size_t) job->g->threads),
                       &job->scratch[thread]);
}

static void convert_rows(const void *arg, int thread, size_t first, size_t end)
{
    const gemm_job *job = arg;
    const ft_gemm_float *g = job->g;
    size_t stride = g->x_stride * ft_dtype_size(g->x_dtype);
    (void) thread;
    for (size_t i = first; i < end; i++)
        job->rows->to_float(job->x_float + i * g->k, (const char *) g->x + i * stride, g->x_dtype,
                            g->k);
}

/* Chunks first .. end - 1 of the columns, with few rows. */
static void gemm_chunks(const void *arg, int thread, size_t first, size_t end)
{
    const gemm_job *job = arg;
    const ft_gemm_float *g = job->g;
    for (size_t i = first; i < end; i++) {
        size_t col = i * job->chunk;
        block b = { 0, g->m, col, ft_min_size(job->chunk, g->n - col) };
        gemm_rectangle(job, b, &job->scratch[thread]);
    }
}

/* x is used in place, or converted to float by all threads. */
void ft_gemm_float_run(const ft_gemm_float *g)
{
    assert(g->scratch_bytes >= ft_gemm_float_scratch(g->x_dtype, g->m, g->k, g->threads));
    block_scratch *scratch = g->scratch;
    gemm_job job = {
        .g = g,
        .kernels = ft_float_kernels_for(g->isa),
        .rows = ft_row_kernels_for(g->isa),
        .x = g->x,
        .x_stride = g->x_stride,
        .w_size = ft_dtype_size(g->w_dtype),
        .x_float = (float *) (void *) (scratch + g->threads),
        .scratch = scratch,
        .chunk = ft_team_chunk_size(g->threads, g->n, FT_FLOAT_LANES, BLOCK_COLS),
    };
    if (g->x_dtype != FT_F32) {
        job.x = job.x_float;
        job.x_stride = g->k;
        ft_parallel_for(g->threads, g->m, convert_rows, &job);
    }
    if (is_small_m(g, g->m))
        ft_parallel_for_stealing(g->threads, (g->n + job.chunk - 1) / job.chunk, gemm_chunks, &job);
    else
        ft_parallel_for(g->threads, (size_t) g->threads, gemm_rectangles, &job);
}
