/*
 * gemm_groupwise.c - distributes a GEMM with group-wise quantized weights over threads, panels and
 * tiles.
 *
 * A chunk of the output is a few panels by some rows of x. The rows of x are quantized once: by all
 * threads together, or, if there are few, by each thread for itself, which is faster than
 * synchronizing. Weights are read in place and stay in the L2 cache while the rows of x are
 * processed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/groupwise/gemm_groupwise.h"

#include "kernels/cpu/gemm/groupwise/groupwise.h"
#include "kernels/cpu/base/rows.h"
#include "kernels/threads/team.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <assert.h>
#include <string.h>

const ft_groupwise_kernels *ft_groupwise_kernels_for(ft_isa isa)
{
    static const ft_groupwise_kernels *const kernels[FT_ISA_COUNT] = {
        [FT_ISA_GENERIC] = &ft_groupwise_generic,
#if defined HAVE_AVX2
        [FT_ISA_AVX2] = &ft_groupwise_avx2,
#endif
#if defined HAVE_AVXVNNI
        [FT_ISA_AVXVNNI] = &ft_groupwise_avxvnni,
#endif
#if defined HAVE_AVX512
        [FT_ISA_AVX512VNNI] = &ft_groupwise_avx512,
        [FT_ISA_AMX] = &ft_groupwise_avx512,
#endif
#if defined HAVE_NEON
        [FT_ISA_NEON] = &ft_groupwise_neon,
#endif
#if defined HAVE_DOTPROD
        [FT_ISA_DOTPROD] = &ft_groupwise_dotprod,
#endif
#if defined HAVE_I8MM
        [FT_ISA_I8MM] = &ft_groupwise_i8mm,
#endif
    };
    assert(kernels[isa] != NULL);
    return kernels[isa];
}

enum {
    SMALL_M = 4,      /* of x: each thread quantizes them itself */
    BLOCK_PANELS = 4, /* whose accumulators a thread holds at once ... */
    BLOCK_COLS = BLOCK_PANELS * FT_PANEL_ROWS,
    BLOCK_BYTES = 384 << 10, /* ... and whose weights it holds, if they fit this */
};

/* How the output is divided into chunks. */
typedef struct grid {
    size_t panels, rows;
    size_t chunks_per_col, chunks; /* chunks per column of the grid, and in total */
} grid;

typedef struct gemm_job {
    const ft_gemm_groupwise *g;
    const ft_groupwise_kernels *kernels;
    const ft_row_kernels *rows;
    ft_groupwise_weights w;
    ft_groupwise_x x; /* large_m: quantized by all threads */
    grid grid;
} gemm_job;

/* A rectangle of the output, in rows and panels. */
typedef struct block {
    size_t row, rows, panel, panels;
} block;

/* ---- Scratch ------------------------------------------------------------------------------ */

static int digits_of(const ft_groupwise *groupwise)
{
    return groupwise->int8_activations ? 1 : FT_PANEL_DIGITS;
}

static size_t k_blocks_of(size_t cols)
{
    return (cols + FT_PANEL_K_BLOCK - 1) / FT_PANEL_K_BLOCK;
}

/* k_blocks of a group if a row has k columns. */
static size_t group_k_blocks(const ft_groupwise *groupwise, size_t k)
{
    return groupwise->group == 0 ? ft_round_up(k_blocks_of(k), FT_PANEL_K_TILE_BLOCKS)
                                 : (size_t) groupwise->group / FT_PANEL_K_BLOCK;
}

static size_t k_tile_blocks(const ft_groupwise *groupwise, size_t k)
{
    return ft_groupwise_k_tile(group_k_blocks(groupwise, k), digits_of(groupwise));
}

static size_t k_tiles_of(const ft_groupwise *groupwise, size_t k)
{
    size_t k_tile = k_tile_blocks(groupwise, k);
    return (k_blocks_of(k) + k_tile - 1) / k_tile;
}

/*
 * An odd number of cache lines per row, so that rows do not conflict in the same sets of the L1
 * cache.
 */
static size_t quantized_stride(const ft_groupwise *groupwise, size_t k)
{
    return ft_round_up(ft_round_up(k, FT_PANEL_K_BLOCK) * (size_t) digits_of(groupwise), 64) | 64;
}

/* Of quantized rows of x: digits, scales, zero points and zero-point terms. */
static size_t quantized_bytes(const ft_groupwise *groupwise, size_t rows, size_t k)
{
    size_t k_tile_bytes = sizeof(float) + 2 * sizeof(int32_t);
    return rows * (quantized_stride(groupwise, k) + k_tiles_of(groupwise, k) * k_tile_bytes);
}

/* Sums of the weights of a block. */
static size_t weight_sums(const ft_groupwise *groupwise, size_t k)
{
    return groupwise->int8_activations ? k_tiles_of(groupwise, k) * BLOCK_COLS : 0;
}

/*
 * Of one thread: accumulators of a tile, sums of weights, one row of x in float, a few quantized
 * rows, a flag.
 */
static size_t thread_bytes(const ft_groupwise *groupwise, size_t k)
{
    size_t words = FT_PANEL_MAX_ROWS * BLOCK_COLS + weight_sums(groupwise, k) + ft_round_up(k, 16);
    return ft_round_up(words * sizeof(float) + quantized_bytes(groupwise, SMALL_M, k) + 1, 64);
}

size_t ft_gemm_groupwise_scratch(const ft_groupwise *groupwise, size_t m, size_t k, int threads)
{
    enum { LIMIT = 1 << 30 };
    size_t bytes, shared;
    if (m > LIMIT || k > LIMIT ||
        !ft_checked_mul(thread_bytes(groupwise, k), (size_t) threads, &bytes) ||
        !ft_checked_mul(quantized_bytes(groupwise, 1, k), m, &shared) ||
        !ft_checked_add(bytes, shared, &bytes))
        return SIZE_MAX;
    return bytes;
}

/* Lays out quantized rows of x in a buffer of quantized_bytes(). */
static ft_groupwise_x quantized_rows_at(const ft_gemm_groupwise *g, size_t rows, char *base)
{
    size_t k_tiles = k_tiles_of(&g->groupwise, g->k);
    ft_groupwise_x x = {
        .q = (int8_t *) base,
        .stride = quantized_stride(&g->groupwise, g->k),
        .k_tiles = k_tiles,
        .digits = digits_of(&g->groupwise),
    };
    x.scale_x = (float *) (void *) (base + rows * x.stride);
    x.zero = (int32_t *) (void *) (x.scale_x + rows * k_tiles);
    x.sum = x.zero + rows * k_tiles;
    return x;
}

typedef struct thread_scratch {
    float *y;
    int32_t *weight_sum;
    float *row;
    char *quant_x;
    bool *is_quantized;
} thread_scratch;

static thread_scratch scratch_of(const ft_gemm_groupwise *g, size_t thread)
{
    thread_scratch s;
    s.y = (float *) (void *) ((char *) g->scratch + thread * thread_bytes(&g->groupwise, g->k));
    s.weight_sum = (int32_t *) (void *) (s.y + FT_PANEL_MAX_ROWS * BLOCK_COLS);
    s.row = (float *) (void *) (s.weight_sum + weight_sums(&g->groupwise, g->k));
    s.quant_x = (char *) (s.row + ft_round_up(g->k, 16));
    s.is_quantized = (bool *) (s.quant_x + quantized_bytes(&g->groupwise, SMALL_M, g->k));
    return s;
}

/* ---- One thread --------------------------------------------------------------------------- */

/* Quantizes rows first .. end - 1 of x. */
static void quantize_rows(const gemm_job *job, const ft_groupwise_x *x, size_t first, size_t end,
                          float *row)
{
    const ft_gemm_groupwise *g = job->g;
    size_t stride = g->x_stride * ft_dtype_size(g->x_dtype);
    for (size_t i = first; i < end; i++) {
        const void *from = (const char *) g->x + i * stride;
        if (g->x_dtype != FT_F32) {
            job->rows->to_float(row, from, g->x_dtype, g->k);
            from = row;
        }
        job->kernels->quant_x(x, i, &job->w, from, g->k);
    }
}

/* The epilogue: bias, activation and conversion to the output dtype. */
static void store_block(const gemm_job *job, const block *b, float *acc)
{
    const ft_gemm_groupwise *g = job->g;
    size_t size = ft_dtype_size(g->y_dtype), col = b->panel * FT_PANEL_ROWS;
    size_t cols = ft_min_size(b->panels * FT_PANEL_ROWS, g->n - col);
    char *y = (char *) g->y + (b->row * g->y_stride + col) * size;
    for (size_t i = 0; i < b->rows; i++, acc += BLOCK_COLS, y += g->y_stride * size) {
        if (g->bias != NULL)
            job->rows->add(acc, acc, g->bias + col, cols);
        job->rows->activate(acc, acc, g->activation, cols);
        job->rows->from_float(y, acc, g->y_dtype, cols);
    }
}

static ft_groupwise_weights weights_of(const gemm_job *job, const block *b)
{
    ft_groupwise_weights w = job->w;
    w.weights += b->panel * ft_groupwise_panel_words(&w);
    w.scale += b->panel * FT_PANEL_ROWS;
    if (w.zero != NULL)
        w.zero += b->panel * FT_PANEL_ROWS;
    w.panels = b->panels;
    return w;
}

/* Sums of the weights are computed with the first rows of x, and used for the other ones. */
static void gemm_block(const gemm_job *job, const block *b, const ft_groupwise_x *x,
                       const thread_scratch *s, bool first_rows)
{
    ft_groupwise_tile tile = { .w = weights_of(job, b),
                               .x = *x,
                               .rows = b->rows,
                               .y = s->y,
                               .y_stride = BLOCK_COLS,
                               .weight_sum = s->weight_sum,
                               .sum_weights = first_rows };
    tile.x.q += b->row * x->stride;
    tile.x.scale_x += b->row * x->k_tiles;
    tile.x.zero += b->row * x->k_tiles;
    tile.x.sum += b->row * x->k_tiles;
    memset(s->y, 0, b->rows * BLOCK_COLS * sizeof *s->y);
    job->kernels->gemm_tile(&tile);
    store_block(job, b, s->y);
}

static void gemm_chunk(const gemm_job *job, const block *chunk, const ft_groupwise_x *x,
                       const thread_scratch *s)
{
    size_t max_rows = job->kernels->rows[x->digits],
           tiles = (chunk->rows + max_rows - 1) / max_rows;
    size_t fitting_panels = BLOCK_BYTES / (ft_groupwise_panel_words(&job->w) * 4);
    size_t n_panels = fitting_panels < 1 ? 1 : ft_min_size(fitting_panels, BLOCK_PANELS);
    for (size_t j = 0; j < chunk->panels; j += n_panels)
        for (size_t i = 0; i < tiles; i++) {
            size_t first = chunk->rows * i / tiles, end = chunk->rows * (i + 1) / tiles;
            block b = { chunk->row + first, end - first, chunk->panel + j,
                        ft_min_size(n_panels, chunk->panels - j) };
            gemm_block(job, &b, x, s, i == 0);
        }
}

/* ---- The GEMM ----------------------------------------------------------------------------- */

static size_t panels_of(const ft_gemm_groupwise *g)
{
    return (g->n + FT_PANEL_ROWS - 1) / FT_PANEL_ROWS;
}

/* A few panels and all rows, unless that makes too few chunks. */
static grid grid_of(const ft_gemm_groupwise *g)
{
    grid c = { .panels = ft_team_chunk_size(g->threads, panels_of(g), 1, BLOCK_PANELS) };
    size_t chunk_cols = (panels_of(g) + c.panels - 1) / c.panels;
    c.rows = ft_team_chunk_size(g->threads, g->m * chunk_cols, FT_PANEL_MAX_ROWS, g->m);
    c.chunks_per_col = (g->m + c.rows - 1) / c.rows;
    c.chunks = chunk_cols * c.chunks_per_col;
    return c;
}

/* Neighbouring chunks share the same panels. */
static block chunk_of(const gemm_job *job, size_t index)
{
    const grid *c = &job->grid;
    size_t row = index % c->chunks_per_col * c->rows, panel = index / c->chunks_per_col * c->panels;
    return (block){ row, ft_min_size(c->rows, job->g->m - row), panel,
                    ft_min_size(c->panels, panels_of(job->g) - panel) };
}

/* Rows first .. end - 1, into the buffer of all threads. */
static void quantize_shared(const void *arg, int thread, size_t first, size_t end)
{
    const gemm_job *job = arg;
    quantize_rows(job, &job->x, first, end, scratch_of(job->g, (size_t) thread).row);
}

/* All rows, into the buffer of this thread. */
static ft_groupwise_x quantize_local(const gemm_job *job, const thread_scratch *s)
{
    ft_groupwise_x x = quantized_rows_at(job->g, SMALL_M, s->quant_x);
    if (!*s->is_quantized)
        quantize_rows(job, &x, 0, job->g->m, s->row);
    *s->is_quantized = true;
    return x;
}

static void gemm_chunks(const void *arg, int thread, size_t first, size_t end)
{
    const gemm_job *job = arg;
    thread_scratch s = scratch_of(job->g, (size_t) thread);
    ft_groupwise_x x = job->g->m <= SMALL_M ? quantize_local(job, &s) : job->x;
    for (size_t i = first; i < end; i++) {
        block chunk = chunk_of(job, i);
        gemm_chunk(job, &chunk, &x, &s);
    }
}

void ft_gemm_groupwise_run(const ft_gemm_groupwise *g)
{
    assert(g->scratch_bytes >= ft_gemm_groupwise_scratch(&g->groupwise, g->m, g->k, g->threads));
    gemm_job job = {
        .g = g,
        .kernels = ft_groupwise_kernels_for(g->isa),
        .rows = ft_row_kernels_for(g->isa),
        .w = { .weights = g->w,
               .scale = g->groupwise.scale,
               .zero = g->groupwise.zero,
               .stride = ft_layout_rows(FT_PANEL32, g->n),
               .groups = ft_groupwise_groups(&g->groupwise, g->k),
               .k_blocks = k_blocks_of(g->k),
               .group = group_k_blocks(&g->groupwise, g->k),
               .k_tile = k_tile_blocks(&g->groupwise, g->k),
               .bits = g->bits },
        .grid = grid_of(g),
    };
    size_t threads = (size_t) g->threads;
    if (g->m > SMALL_M) {
        job.x = quantized_rows_at(g, g->m, (char *) scratch_of(g, threads).y);
        ft_parallel_for(g->threads, g->m, quantize_shared, &job);
    } else {
        for (size_t i = 0; i < threads; i++)
            *scratch_of(g, i).is_quantized = false;
    }
    ft_parallel_for_stealing(g->threads, job.grid.chunks, gemm_chunks, &job);
}
