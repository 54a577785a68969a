/*
 * dgemm.c - distributes a double-precision GEMM over threads, cache blocks and register tiles.
 *
 * A work item is a block of c. Its thread packs a block of b once, and a one register tile at a
 * time, into buffers on its stack. Partial sums stay in c between blocks of k, so the size of the
 * blocks does not affect the result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/linalg.h"

#include "kernels/cpu/base/select.h"
#include "kernels/cpu/linalg/f64.h"
#include "kernels/threads/team.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <string.h>

FT_DEFINE_SELECTION(ft_double_kernels_for, ft_double_kernels, ft_double)

ft_status ft_linalg_init(ft_linalg *linalg, int threads, ft_error *err)
{
    ft_isa isa;
    FT_TRY(ft_cpu_isa(&isa, err));
    *linalg = (ft_linalg){ .isa = (int) isa, .threads = threads };
    return FT_OK;
}

enum {
    BLOCK_ROWS = 192,
    BLOCK_COLS = 192, /* a multiple of every tile's columns */
    BLOCK_K = 256,
    MACS = 4, /* multiply-adds that take as long as an element of ft_team_size() */
};

/* ---- Packing ------------------------------------------------------------------------------ */

/* One function for doubles and one for floats, so that the choice is made outside the loops. */
#define PACK_FUNCTIONS(name, type)                                                                 \
    static void pack_rows_##name(double *to, const type *from, size_t along, size_t k,             \
                                 size_t count, size_t tile)                                        \
    {                                                                                              \
        for (size_t l = 0; l < k; l++, from += along, to += tile) {                                \
            for (size_t i = 0; i < count; i++)                                                     \
                to[i] = (double) from[i];                                                          \
            for (size_t i = count; i < tile; i++)                                                  \
                to[i] = 0.0;                                                                       \
        }                                                                                          \
    }                                                                                              \
    static void pack_cols_##name(double *to, const type *from, size_t across, size_t k,            \
                                 size_t count, size_t tile)                                        \
    {                                                                                              \
        for (size_t i = 0; i < tile; i++)                                                          \
            for (size_t l = 0; l < k; l++)                                                         \
                to[l * tile + i] = i < count ? (double) from[i * across + l] : 0.0;                \
    }

PACK_FUNCTIONS(f64, double)
PACK_FUNCTIONS(f32, float)

/*
 * Packs k vectors of `count` elements as [k, tile], padded with zeros. The elements of a vector are
 * `across` apart, and the vectors are `along` apart; one of the two strides is 1.
 */
static void pack(double *to, const ft_linalg_matrix *m, size_t at, size_t across, size_t along,
                 size_t k, size_t count, size_t tile)
{
    if (m->f64 != NULL && across == 1)
        pack_rows_f64(to, m->f64 + at, along, k, count, tile);
    else if (m->f64 != NULL)
        pack_cols_f64(to, m->f64 + at, across, k, count, tile);
    else if (across == 1)
        pack_rows_f32(to, m->f32 + at, along, k, count, tile);
    else
        pack_cols_f32(to, m->f32 + at, across, k, count, tile);
}

/* ---- Work items --------------------------------------------------------------------------- */

typedef struct dgemm_job {
    const ft_dgemm *gemm;
    const ft_double_kernels *kernels;
    size_t col_items;
} dgemm_job;

/* A rectangle of c. */
typedef struct block {
    size_t row, rows, col, cols;
} block;

/* One register tile, in place or, at the edge of c, by way of a copy. */
static void multiply_tile(const dgemm_job *job, const block *b, ft_double_tile tile)
{
    double edge[FT_DOUBLE_MAX_ROWS * FT_DOUBLE_MAX_COLS] = { 0 };
    double *c = job->gemm->c + b->row * job->gemm->c_stride + b->col;
    bool is_edge = b->rows < job->kernels->rows || b->cols < job->kernels->cols;
    tile.c = is_edge ? edge : c;
    tile.c_stride = is_edge ? FT_DOUBLE_MAX_COLS : job->gemm->c_stride;
    for (size_t i = 0; i < b->rows && is_edge; i++)
        memcpy(edge + i * FT_DOUBLE_MAX_COLS, c + i * job->gemm->c_stride, b->cols * sizeof *c);
    job->kernels->multiply_add(&tile);
    for (size_t i = 0; i < b->rows && is_edge; i++)
        memcpy(c + i * job->gemm->c_stride, edge + i * FT_DOUBLE_MAX_COLS, b->cols * sizeof *c);
}

/* Brings the part of c that the next tile updates into the cache. */
static void prefetch_tile(const dgemm_job *job, const block *b)
{
    const double *c = job->gemm->c + b->row * job->gemm->c_stride + b->col;
    for (size_t i = 0; i < b->rows; i++)
        for (size_t j = 0; j < b->cols; j += 8)
            __builtin_prefetch(c + i * job->gemm->c_stride + j, 1, 3);
}

/* The contribution of k rows of b to a block of c. */
static void multiply_block(const dgemm_job *job, const block *b, size_t first_k, size_t k)
{
    const ft_dgemm *g = job->gemm;
    size_t rows = job->kernels->rows, cols = job->kernels->cols;
    bool exact_products = g->a.f32 != NULL && g->b.f32 != NULL;
    double a_packed[FT_DOUBLE_MAX_ROWS * BLOCK_K], b_packed[BLOCK_COLS * BLOCK_K];
    for (size_t j = 0; j < b->cols; j += cols)
        pack(b_packed + j * k, &g->b, first_k * g->b.row_stride + (b->col + j) * g->b.col_stride,
             g->b.col_stride, g->b.row_stride, k, ft_min_size(cols, b->cols - j), cols);
    for (size_t i = 0; i < b->rows; i += rows) {
        block tile = { .row = b->row + i, .rows = ft_min_size(rows, b->rows - i) };
        pack(a_packed, &g->a, tile.row * g->a.row_stride + first_k * g->a.col_stride,
             g->a.row_stride, g->a.col_stride, k, tile.rows, rows);
        for (size_t j = 0; j < b->cols; j += cols) {
            tile.col = b->col + j;
            tile.cols = ft_min_size(cols, b->cols - j);
            if (g->upper && tile.col + tile.cols <= tile.row)
                continue;
            block next = { tile.row, tile.rows, tile.col + tile.cols, 0 };
            next.cols = ft_min_size(cols, b->col + b->cols - next.col);
            prefetch_tile(job, &next);
            multiply_tile(job, &tile,
                          (ft_double_tile){ .a = a_packed,
                                            .b = b_packed + j * k,
                                            .k = k,
                                            .subtract = g->subtract,
                                            .exact_products = exact_products });
        }
    }
}

static void multiply_items(const void *arg, int thread, size_t first, size_t end)
{
    const dgemm_job *job = arg;
    const ft_dgemm *g = job->gemm;
    (void) thread;
    for (size_t i = first; i < end; i++) {
        block b = { .row = i / job->col_items * BLOCK_ROWS,
                    .col = i % job->col_items * BLOCK_COLS };
        b.rows = ft_min_size(BLOCK_ROWS, g->m - b.row);
        b.cols = ft_min_size(BLOCK_COLS, g->n - b.col);
        if (g->upper && b.col + b.cols <= b.row)
            continue;
        size_t k = g->b_upper ? ft_min_size(g->k, b.col + b.cols) : g->k;
        for (size_t l = 0; l < k; l += BLOCK_K)
            multiply_block(job, &b, l, ft_min_size(BLOCK_K, k - l));
    }
}

void ft_linalg_dgemm(const ft_linalg *linalg, const ft_dgemm *g)
{
    dgemm_job job = { .gemm = g,
                      .kernels = ft_double_kernels_for((ft_isa) linalg->isa),
                      .col_items = (g->n + BLOCK_COLS - 1) / BLOCK_COLS };
    size_t items = (g->m + BLOCK_ROWS - 1) / BLOCK_ROWS * job.col_items;
    double work = (double) g->m * (double) g->n * (double) g->k / MACS;
    ft_parallel_for_dynamic(ft_team_size(linalg->threads, items, work), items, multiply_items,
                            &job);
}
