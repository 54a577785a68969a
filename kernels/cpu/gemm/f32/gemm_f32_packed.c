/*
 * gemm_f32_packed.c - a float GEMM of many rows: packed operands, distributed over threads.
 *
 * All threads pack a block of rows of x, which then stays in the L2 or L3 cache. A work item is a
 * few panels of weights, one on most processors, against some of these rows. A thread packs the
 * panels into its own scratch, in the L2 cache, and multiplies all rows with them; meanwhile it
 * prefetches the next ones. So weights are read from the mapped file once per block of rows, and
 * need no memory of their own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/f32/gemm_f32_job.h"

#include "kernels/threads/team.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

enum {
    BLOCK_ROWS = 1008,        /* rows of x that are packed at a time */
    ITEM_COLS = 32,           /* columns of a work item; a multiple of every panel's */
    MIN_ITEM_TILES = 4,       /* fewer rows per work item do not pay for packing its weights */
    MIN_ITEMS_PER_THREAD = 4, /* so that threads finish together */
};

/* ---- Scratch ------------------------------------------------------------------------------ */

/* In floats. The packed x comes first, then the scratch of each thread. */
typedef struct layout {
    size_t k_tiles, tile, panel; /* number of k tiles; one packed tile of x and panel of weights */
    size_t x, panels, thread;    /* panels of a work item */
} layout;

static layout layout_of(const ft_float_kernels *kernels, size_t m, size_t k)
{
    size_t k_tile = ft_min_size(k, FT_FLOAT_K_TILE);
    size_t rows = ft_min_size(m, BLOCK_ROWS);
    size_t tiles = (rows + kernels->packed_rows - 1) / kernels->packed_rows;
    layout l = { .k_tiles = (k + FT_FLOAT_K_TILE - 1) / FT_FLOAT_K_TILE,
                 .tile = ft_float_packed_size(kernels->packed_rows, k_tile),
                 .panel = ft_float_packed_size(kernels->packed_cols, k_tile) };
    l.x = tiles * l.k_tiles * l.tile;
    l.panels = ITEM_COLS / kernels->packed_cols * l.panel;
    l.thread = l.panels + (l.k_tiles > 1 ? rows : FT_FLOAT_MAX_PACKED_ROWS) * ITEM_COLS;
    return l;
}

/* Of the instruction set that needs most. */
size_t ft_gemm_float_packed_scratch(size_t m, size_t k, int threads)
{
    size_t max = 0, x, bytes;
    for (int isa = 0; isa < FT_ISA_COUNT; isa++) {
        layout l = layout_of(ft_float_kernels_for((ft_isa) isa), m, k);
        if (!ft_checked_mul(l.thread, (size_t) threads, &bytes) ||
            !ft_checked_add(bytes, l.x, &bytes) || !ft_checked_mul(bytes, sizeof(float), &x))
            return SIZE_MAX;
        max = ft_max_size(max, x);
    }
    return max;
}

/* ---- One block of rows -------------------------------------------------------------------- */

typedef struct packed_job {
    const ft_gemm_float_job *of;
    layout layout;
    size_t row, rows, tiles; /* of the block */
    size_t col_items, row_items;
} packed_job;

/* Row of the block at which a tile starts; the tiles are as equal as possible. */
static size_t tile_start(const packed_job *job, size_t tile)
{
    return job->rows * tile / job->tiles;
}

static float *packed_x(const packed_job *job, size_t tile, size_t k_tile)
{
    float *x = job->of->gemm->scratch;
    return x + (tile * job->layout.k_tiles + k_tile) * job->layout.tile;
}

static float *thread_scratch(const packed_job *job, int thread)
{
    float *x = job->of->gemm->scratch;
    return x + job->layout.x + (size_t) thread * job->layout.thread;
}

static size_t k_tile_size(const packed_job *job, size_t k_tile)
{
    return ft_min_size(FT_FLOAT_K_TILE, job->of->gemm->k - k_tile * FT_FLOAT_K_TILE);
}

static void pack_x(const void *arg, int thread, size_t first, size_t end)
{
    const packed_job *job = arg;
    const ft_gemm_float *g = job->of->gemm;
    size_t size = ft_dtype_size(g->x_dtype);
    (void) thread;
    for (size_t tile = first; tile < end; tile++) {
        size_t start = tile_start(job, tile), rows = tile_start(job, tile + 1) - start;
        const char *x = (const char *) g->x + (job->row + start) * g->x_stride * size;
        for (size_t i = 0; i < job->layout.k_tiles; i++)
            job->of->kernels->pack(packed_x(job, tile, i), x + i * FT_FLOAT_K_TILE * size,
                                   g->x_stride, g->x_dtype, rows, rows, k_tile_size(job, i));
    }
}

/* ---- One work item ------------------------------------------------------------------------ */

static void pack_panels(const packed_job *job, size_t col, size_t cols, size_t k_tile, float *to)
{
    const ft_gemm_float *g = job->of->gemm;
    size_t width = job->of->kernels->packed_cols;
    for (size_t i = 0; i < cols; i += width, to += job->layout.panel)
        job->of->kernels->pack(to, ft_gemm_float_weights(g, col + i, k_tile * FT_FLOAT_K_TILE),
                               g->k, g->w_dtype, ft_min_size(width, cols - i), width,
                               k_tile_size(job, k_tile));
}

/* The weights that a thread packs next: rows of one k tile. */
typedef struct next_weights {
    size_t col, cols, k_tile;
    size_t calls, call; /* the tiles of this item, during which they are prefetched */
} next_weights;

static next_weights weights_after(const packed_job *job, size_t col, size_t k_tile)
{
    next_weights next = { .col = col, .k_tile = k_tile + 1 };
    if (next.k_tile == job->layout.k_tiles) {
        next.col = ft_min_size(col + ITEM_COLS, job->of->gemm->n);
        next.k_tile = 0;
    }
    next.cols = ft_min_size(ITEM_COLS, job->of->gemm->n - next.col);
    return next;
}

/* Sets what the next tile prefetches: some of the rows. */
static void set_prefetch(ft_float_packed_tile *tile, const packed_job *job, next_weights *next)
{
    const ft_gemm_float *g = job->of->gemm;
    size_t first = next->cols * next->call / next->calls;
    size_t end = next->cols * ++next->call / next->calls;
    tile->prefetch = ft_gemm_float_weights(g, next->col + first, next->k_tile * FT_FLOAT_K_TILE);
    tile->prefetch_bytes =
        (end - first) * k_tile_size(job, next->k_tile) * ft_dtype_size(g->w_dtype);
}

/* One tile of x with the panels of an item. */
static void multiply_tile(const packed_job *job, size_t tile, size_t k_tile, size_t cols,
                          const float *w, float *acc, next_weights *next)
{
    const ft_float_kernels *kernels = job->of->kernels;
    ft_float_packed_tile t = { .x = packed_x(job, tile, k_tile),
                               .rows = tile_start(job, tile + 1) - tile_start(job, tile),
                               .k = k_tile_size(job, k_tile),
                               .accumulate = k_tile > 0,
                               .acc_stride = ITEM_COLS };
    for (size_t i = 0; i < cols; i += kernels->packed_cols, w += job->layout.panel) {
        t.w = w;
        t.acc = acc + i;
        set_prefetch(&t, job, next);
        kernels->gemm_packed_tile(&t);
    }
}

/* Columns from `col` on against tiles first .. end - 1. */
static void multiply_item(const packed_job *job, size_t col, size_t first, size_t end,
                          float *scratch)
{
    size_t k_tiles = job->layout.k_tiles, start = tile_start(job, first);
    size_t cols = ft_min_size(ITEM_COLS, job->of->gemm->n - col);
    float *panels = scratch, *acc = scratch + job->layout.panels;
    for (size_t k_tile = 0; k_tile < k_tiles; k_tile++) {
        next_weights next = weights_after(job, col, k_tile);
        next.calls = (end - first) * (ITEM_COLS / job->of->kernels->packed_cols);
        pack_panels(job, col, cols, k_tile, panels);
        for (size_t tile = first; tile < end; tile++) {
            size_t row = tile_start(job, tile);
            float *tile_acc = acc + (k_tiles > 1 ? row - start : 0) * ITEM_COLS;
            multiply_tile(job, tile, k_tile, cols, panels, tile_acc, &next);
            if (k_tile + 1 == k_tiles)
                ft_gemm_float_store(job->of,
                                    &(ft_gemm_float_block){ .row = job->row + row,
                                                            .rows = tile_start(job, tile + 1) - row,
                                                            .col = col,
                                                            .cols = cols },
                                    tile_acc, ITEM_COLS);
        }
    }
}

/* Neighbouring items share rows of x and have neighbouring weights. */
static void multiply_items(const void *arg, int thread, size_t first, size_t end)
{
    const packed_job *job = arg;
    for (size_t i = first; i < end; i++) {
        size_t col = i % job->col_items * ITEM_COLS, row = i / job->col_items;
        multiply_item(job, col, job->tiles * row / job->row_items,
                      job->tiles * (row + 1) / job->row_items, thread_scratch(job, thread));
    }
}

/* ---- All rows ----------------------------------------------------------------------------- */

/* Splits the columns; splits the rows too if that gives too few items for the threads. */
static void split_block(packed_job *job)
{
    const ft_gemm_float *g = job->of->gemm;
    size_t items = MIN_ITEMS_PER_THREAD * (size_t) g->threads;
    size_t max_row_items = (job->tiles + MIN_ITEM_TILES - 1) / MIN_ITEM_TILES;
    job->col_items = (g->n + ITEM_COLS - 1) / ITEM_COLS;
    job->row_items = ft_min_size((items + job->col_items - 1) / job->col_items, max_row_items);
}

void ft_gemm_float_packed_run(const ft_gemm_float_job *of)
{
    const ft_gemm_float *g = of->gemm;
    packed_job job = { .of = of, .layout = layout_of(of->kernels, g->m, g->k) };
    for (; job.row < g->m; job.row += job.rows) {
        job.rows = ft_min_size(BLOCK_ROWS, g->m - job.row);
        job.tiles = (job.rows + of->kernels->packed_rows - 1) / of->kernels->packed_rows;
        split_block(&job);
        ft_parallel_for(ft_team_size(g->threads, job.tiles, (double) job.rows * (double) g->k),
                        job.tiles, pack_x, &job);
        ft_parallel_for_stealing(g->threads, job.col_items * job.row_items, multiply_items, &job);
    }
}
