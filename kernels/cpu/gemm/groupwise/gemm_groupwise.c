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

const ft_panel_kernels *ft_panel_kernels_of(ft_isa isa)
{
    static const ft_panel_kernels *const kernels[FT_ISA_COUNT] = {
        [FT_ISA_GENERIC] = &ft_panel_generic,
#if defined HAVE_AVX2
        [FT_ISA_AVX2] = &ft_panel_avx2,
#endif
#if defined HAVE_AVXVNNI
        [FT_ISA_AVXVNNI] = &ft_panel_avxvnni,
#endif
#if defined HAVE_AVX512
        [FT_ISA_AVX512VNNI] = &ft_panel_avx512,
#endif
    };
    assert(kernels[isa] != NULL);
    return kernels[isa];
}

enum {
    FEW_ROWS = 4,     /* of x: each thread quantizes them itself */
    BLOCK_PANELS = 4, /* whose accumulators a thread holds at once ... */
    BLOCK_COLS = BLOCK_PANELS * FT_PANEL_ROWS,
    BLOCK_BYTES = 384 << 10, /* ... and whose weights it holds, if they fit this */
};

/* How the output is divided into chunks. */
typedef struct cut {
    size_t panels, rows;
    size_t down, pieces; /* chunks per column of the grid, and in total */
} cut;

typedef struct product {
    const ft_gemm_blocks *g;
    const ft_panel_kernels *kernels;
    const ft_rows_isa *rows;
    ft_panel_weights w;
    ft_panel_x x; /* large_m: quantized by all threads */
    cut cut;
} product;

/* A rectangle of the output, in rows and panels. */
typedef struct block {
    size_t row, rows, panel, panels;
} block;

/* ---- Scratch ------------------------------------------------------------------------------ */

static int planes_of(const ft_blocks *blocks)
{
    return blocks->by_codes ? 1 : FT_PANEL_PLANES;
}

static size_t spans_of(size_t cols)
{
    return (cols + FT_PANEL_SPAN - 1) / FT_PANEL_SPAN;
}

/* k_blocks of a group if a row has k columns. */
static size_t group_of(const ft_blocks *blocks, size_t k)
{
    return blocks->group == 0 ? ft_round_up(spans_of(k), FT_PANEL_PART)
                              : (size_t) blocks->group / FT_PANEL_SPAN;
}

static size_t part_of(const ft_blocks *blocks, size_t k)
{
    return ft_panel_part(group_of(blocks, k), planes_of(blocks));
}

static size_t parts_of(const ft_blocks *blocks, size_t k)
{
    size_t part = part_of(blocks, k);
    return (spans_of(k) + part - 1) / part;
}

/*
 * An odd number of cache lines per row, so that rows do not conflict in the same sets of the L1
 * cache.
 */
static size_t split_stride(const ft_blocks *blocks, size_t k)
{
    return ft_round_up(ft_round_up(k, FT_PANEL_SPAN) * (size_t) planes_of(blocks), 64) | 64;
}

/* Of quantized rows of x: digits, scales and zero-point terms. */
static size_t split_bytes(const ft_blocks *blocks, size_t rows, size_t k)
{
    size_t words = 1 + (size_t) planes_of(blocks);
    return rows * (split_stride(blocks, k) + parts_of(blocks, k) * 4 * words);
}

/* Of one thread: accumulators of a tile, one row of x in float, a few quantized rows, a flag. */
static size_t thread_bytes(const ft_blocks *blocks, size_t k)
{
    size_t floats = FT_PANEL_TILE * BLOCK_COLS + ft_round_up(k, 16);
    return ft_round_up(floats * sizeof(float) + split_bytes(blocks, FEW_ROWS, k) + 1, 64);
}

size_t ft_gemm_blocks_scratch(const ft_blocks *blocks, size_t m, size_t k, int threads)
{
    enum { LIMIT = 1 << 30 };
    size_t bytes, shared;
    if (m > LIMIT || k > LIMIT || !ft_mul(thread_bytes(blocks, k), (size_t) threads, &bytes) ||
        !ft_mul(split_bytes(blocks, 1, k), m, &shared) || !ft_add(bytes, shared, &bytes))
        return SIZE_MAX;
    return bytes;
}

/* Lays out quantized rows of x in a buffer of quantized_bytes(). */
static ft_panel_x split_room(const ft_gemm_blocks *g, size_t rows, char *memory)
{
    size_t parts = parts_of(&g->blocks, g->k);
    ft_panel_x x = {
        .bytes = (int8_t *) memory,
        .stride = split_stride(&g->blocks, g->k),
        .parts = parts,
        .planes = planes_of(&g->blocks),
    };
    x.unit = (float *) (void *) (memory + rows * x.stride);
    x.sum = (int32_t *) (void *) (x.unit + rows * parts);
    return x;
}

typedef struct thread_scratch {
    float *y, *row;
    char *split;
    bool *has_split;
} thread_scratch;

static thread_scratch scratch_of(const ft_gemm_blocks *g, size_t thread)
{
    thread_scratch s;
    s.y = (float *) (void *) ((char *) g->scratch + thread * thread_bytes(&g->blocks, g->k));
    s.row = s.y + FT_PANEL_TILE * BLOCK_COLS;
    s.split = (char *) (s.row + ft_round_up(g->k, 16));
    s.has_split = (bool *) (s.split + split_bytes(&g->blocks, FEW_ROWS, g->k));
    return s;
}

/* ---- One thread --------------------------------------------------------------------------- */

/* Quantizes rows first .. end - 1 of x. */
static void split_rows(const product *job, const ft_panel_x *x, size_t first, size_t end,
                       float *row)
{
    const ft_gemm_blocks *g = job->g;
    size_t stride = g->x_stride * ft_dtype_size(g->x_dtype);
    for (size_t i = first; i < end; i++) {
        const void *from = (const char *) g->x + i * stride;
        if (g->x_dtype != FT_F32) {
            job->rows->to_float(row, from, g->x_dtype, g->k);
            from = row;
        }
        job->kernels->split(x, i, &job->w, from, g->k);
    }
}

/* The epilogue: bias, activation and conversion to the output dtype. */
static void finish_block(const product *job, const block *b, float *sums)
{
    const ft_gemm_blocks *g = job->g;
    size_t size = ft_dtype_size(g->y_dtype), col = b->panel * FT_PANEL_ROWS;
    size_t cols = ft_min_size(b->panels * FT_PANEL_ROWS, g->n - col);
    char *y = (char *) g->y + (b->row * g->y_stride + col) * size;
    for (size_t i = 0; i < b->rows; i++, sums += BLOCK_COLS, y += g->y_stride * size) {
        if (g->bias != NULL)
            job->rows->add(sums, sums, g->bias + col, cols);
        job->rows->activate(sums, sums, g->activation, cols);
        job->rows->from_float(y, sums, g->y_dtype, cols);
    }
}

static ft_panel_weights weights_of(const product *job, const block *b)
{
    ft_panel_weights w = job->w;
    w.codes += b->panel * ft_panel_words(&w);
    w.scale += b->panel * FT_PANEL_ROWS;
    if (w.zero != NULL)
        w.zero += b->panel * FT_PANEL_ROWS;
    w.panels = b->panels;
    return w;
}

static void multiply_block(const product *job, const block *b, const ft_panel_x *x, float *y)
{
    ft_panel_tile tile = {
        .w = weights_of(job, b), .x = *x, .rows = b->rows, .y = y, .y_stride = BLOCK_COLS
    };
    tile.x.bytes += b->row * x->stride;
    tile.x.unit += b->row * x->parts;
    tile.x.sum += b->row * x->parts * (size_t) x->planes;
    memset(y, 0, b->rows * BLOCK_COLS * sizeof *y);
    job->kernels->multiply(&tile);
    finish_block(job, b, y);
}

static void multiply_piece(const product *job, const block *all, const ft_panel_x *x, float *y)
{
    size_t most = job->kernels->rows[x->planes], tiles = (all->rows + most - 1) / most;
    size_t fit = BLOCK_BYTES / (ft_panel_words(&job->w) * 4);
    size_t step = fit < 1 ? 1 : ft_min_size(fit, BLOCK_PANELS);
    for (size_t j = 0; j < all->panels; j += step)
        for (size_t i = 0; i < tiles; i++) {
            size_t first = all->rows * i / tiles, end = all->rows * (i + 1) / tiles;
            block b = { all->row + first, end - first, all->panel + j,
                        ft_min_size(step, all->panels - j) };
            multiply_block(job, &b, x, y);
        }
}

/* ---- The GEMM ----------------------------------------------------------------------------- */

static size_t panels_of(const ft_gemm_blocks *g)
{
    return (g->n + FT_PANEL_ROWS - 1) / FT_PANEL_ROWS;
}

/* A few panels and all rows, unless that makes too few chunks. */
static cut cut_of(const ft_gemm_blocks *g)
{
    cut c = { .panels = ft_team_piece(g->threads, panels_of(g), 1, BLOCK_PANELS) };
    size_t across = (panels_of(g) + c.panels - 1) / c.panels;
    c.rows = ft_team_piece(g->threads, g->m * across, FT_PANEL_TILE, g->m);
    c.down = (g->m + c.rows - 1) / c.rows;
    c.pieces = across * c.down;
    return c;
}

/* Neighbouring chunks share the same panels. */
static block piece_of(const product *job, size_t index)
{
    const cut *c = &job->cut;
    size_t row = index % c->down * c->rows, panel = index / c->down * c->panels;
    return (block){ row, ft_min_size(c->rows, job->g->m - row), panel,
                    ft_min_size(c->panels, panels_of(job->g) - panel) };
}

/* Rows first .. end - 1, into the buffer of all threads. */
static void split_many(const void *of, int thread, size_t first, size_t end)
{
    const product *job = of;
    split_rows(job, &job->x, first, end, scratch_of(job->g, (size_t) thread).row);
}

/* All rows, into the buffer of this thread. */
static ft_panel_x split_few(const product *job, const thread_scratch *s)
{
    ft_panel_x x = split_room(job->g, FEW_ROWS, s->split);
    if (!*s->has_split)
        split_rows(job, &x, 0, job->g->m, s->row);
    *s->has_split = true;
    return x;
}

static void multiply_pieces(const void *of, int thread, size_t first, size_t end)
{
    const product *job = of;
    thread_scratch s = scratch_of(job->g, (size_t) thread);
    ft_panel_x x = job->g->m <= FEW_ROWS ? split_few(job, &s) : job->x;
    for (size_t i = first; i < end; i++) {
        block piece = piece_of(job, i);
        multiply_piece(job, &piece, &x, s.y);
    }
}

void ft_gemm_blocks_run(const ft_gemm_blocks *g)
{
    assert(g->scratch_bytes >= ft_gemm_blocks_scratch(&g->blocks, g->m, g->k, g->threads));
    product job = {
        .g = g,
        .kernels = ft_panel_kernels_of(g->isa),
        .rows = ft_rows_of(g->isa),
        .w = { .codes = g->w,
               .scale = g->blocks.scale,
               .zero = g->blocks.zero,
               .stride = ft_layout_rows(FT_PANEL32, g->n),
               .groups = ft_blocks_groups(&g->blocks, g->k),
               .spans = spans_of(g->k),
               .group = group_of(&g->blocks, g->k),
               .part = part_of(&g->blocks, g->k),
               .bits = g->bits },
        .cut = cut_of(g),
    };
    size_t threads = (size_t) g->threads;
    if (g->m > FEW_ROWS) {
        job.x = split_room(g, g->m, (char *) scratch_of(g, threads).y);
        ft_team_share(g->threads, g->m, split_many, &job);
    } else {
        for (size_t i = 0; i < threads; i++)
            *scratch_of(g, i).has_split = false;
    }
    ft_team_help(g->threads, job.cut.pieces, multiply_pieces, &job);
}
