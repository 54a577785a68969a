/*
 * gemm_i8.c - shares an int8 product out to threads, panels and tiles.
 *
 * Each thread owns a rectangle of the output.  It packs 64 weight rows at a time into its scratch,
 * where they stay in its caches, and runs all its rows of x against them; meanwhile the processor
 * fetches the next 64 rows, which memory order scatters in pieces of 2 KB.  With few rows of x the
 * product is as fast as memory, and the weights are walked through in the order of memory instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm_i8.h"

#include "kernels/cpu/i8.h"
#include "runtime/mem.h"

#include <assert.h>
#include <string.h>

const ft_i8_kernels *ft_i8_kernels_of(ft_isa isa)
{
    switch (isa) {
    case FT_ISA_GENERIC:
        break;
    case FT_ISA_AVX2:
        break;
    case FT_ISA_AVXVNNI:
        break;
    case FT_ISA_AVX512VNNI:
#if defined HAVE_AVX512
        return &ft_i8_avx512;
#else
        break;
#endif
    }
    return &ft_i8_generic;
}

/* The rectangle of one thread. */
typedef struct part {
    size_t row, rows, col, cols;
} part;

/* Thread `index` of `count` gets the units first .. first + *share of `units`. */
static size_t share_of(size_t units, size_t index, size_t count, size_t *share)
{
    size_t first = units * index / count;
    *share = units * (index + 1) / count - first;
    return first;
}

/*
 * Split the columns; split the rows too where that would leave a thread less than a panel.
 * Column borders lie between units of 16, so that only the last panel is ragged.
 */
static part part_of_thread(const ft_gemm_i8 *g, size_t thread, size_t threads)
{
    size_t units = (g->n + FT_I8_UNIT - 1) / FT_I8_UNIT, unit_panel = FT_I8_PANEL / FT_I8_UNIT;
    size_t tiles = (g->m + FT_I8_TILE - 1) / FT_I8_TILE;
    size_t row_parts = 1;
    while (units < unit_panel * (threads / row_parts) && row_parts < threads && row_parts < tiles)
        row_parts++;
    size_t col_parts = threads / row_parts;
    if (thread >= row_parts * col_parts)
        return (part){0};
    part p;
    p.row = share_of(g->m, thread / col_parts, row_parts, &p.rows);
    p.col = share_of(units, thread % col_parts, col_parts, &p.cols) * FT_I8_UNIT;
    p.cols = ft_min_size(p.cols * FT_I8_UNIT, g->n > p.col ? g->n - p.col : 0);
    return p;
}

/* Everything of one run that its threads share. */
typedef struct product {
    const ft_gemm_i8 *g;
    const ft_i8_kernels *kernels;
    const int8_t *x; /* with zeros from k to the end of the last quad, or block when walking */
    size_t x_stride, quads, padded_n;
    bool walks;
} product;

static size_t x_copy_bytes(size_t m, size_t k)
{
    return ft_round_up(m * ft_round_up(k, FT_I8_BLOCK), 64);
}

static size_t start_bytes(size_t m)
{
    return ft_round_up(m * sizeof(int32_t), 64);
}

/* A thread's scratch: the starts of its rows, then a panel, or the sums of a walk. */
static size_t thread_bytes(size_t m, size_t n, size_t k)
{
    size_t panel = FT_I8_PANEL * ft_round_up(k, FT_I8_BLOCK) * FT_I8_WEIGHT_BYTES;
    size_t walk = ft_min_size(m, FT_I8_WALK) * ft_round_up(n, FT_I8_PANEL) * sizeof(int32_t);
    return start_bytes(m) + (panel > walk ? panel : walk);
}

size_t ft_gemm_i8_scratch(size_t m, size_t n, size_t k, int threads)
{
    enum { LIMIT = 1 << 30 };
    size_t bytes;
    if (m > LIMIT || n > LIMIT || k > LIMIT || threads > LIMIT ||
        !ft_mul(thread_bytes(m, n, k), (size_t) threads, &bytes) ||
        !ft_add(bytes, x_copy_bytes(m, k), &bytes))
        return SIZE_MAX;
    return bytes;
}

static ft_i8_finish panel_finish(const ft_gemm_i8 *g, size_t col, size_t cols)
{
    ft_i8_finish f = {
        .cols = cols,
        .activation = g->activation,
        .residual = g->residual != NULL ? g->residual + col : NULL,
        .residual_stride = g->residual_stride,
        .out_inverse = g->out_inverse,
        .y = (char *) g->y + col * (g->out_inverse > 0.0f ? sizeof(int8_t) : sizeof(float)),
        .y_stride = g->y_stride,
    };
    for (size_t i = 0; i < cols; i++) {
        f.scale[i] = g->x_scale * g->w_scale[col + i];
        f.bias[i] = g->bias != NULL ? g->bias[col + i] : 0.0f;
    }
    return f;
}

/* The share of tile `index` of `tiles` in fetching the weight rows from `col` on. */
static ft_i8_ahead tile_ahead(const product *job, size_t col, size_t cols, size_t index,
                              size_t tiles)
{
    ft_i8_ahead ahead = {.step = job->padded_n * FT_I8_BLOCK};
    size_t first = share_of(ft_round_up(cols, 8) * FT_I8_BLOCK / 64, index, tiles, &ahead.lines);
    ahead.at = job->g->w + col * FT_I8_BLOCK + first * 64;
    return ahead;
}

/* All rows of a thread against its columns, panel by panel. */
static void multiply_part(const product *job, part p, char *scratch)
{
    const ft_gemm_i8 *g = job->g;
    int32_t *start = (int32_t *) scratch;
    void *panel = scratch + start_bytes(g->m);
    size_t tiles = (p.rows + FT_I8_TILE - 1) / FT_I8_TILE;
    for (size_t col = 0; col < p.cols; col += FT_I8_PANEL) {
        size_t cols = ft_min_size(p.cols - col, FT_I8_PANEL);
        size_t next_cols = ft_min_size(p.cols - col - cols, FT_I8_PANEL);
        ft_i8_finish f = panel_finish(g, p.col + col, cols);
        job->kernels->pack_col4(panel, g->w, job->padded_n, g->k, p.col + col, cols);
        for (size_t index = 0; index < tiles; index++) {
            _Alignas(64) int32_t sums[FT_I8_TILE * FT_I8_PANEL];
            size_t rows, first = share_of(p.rows, index, tiles, &rows);
            ft_i8_tile tile = {
                .x = job->x + (p.row + first) * job->x_stride,
                .x_stride = job->x_stride,
                .rows = rows,
                .quads = job->quads,
                .start = start + first,
                .out = sums,
                .out_stride = FT_I8_PANEL,
                .ahead = tile_ahead(job, p.col + col + cols, next_cols, index, tiles),
            };
            if (col == 0) /* the rows are fetched now anyway */
                job->kernels->row_starts(start + first, tile.x, tile.x_stride, rows, tile.quads);
            job->kernels->multiply(&tile, panel, cols);
            job->kernels->finish(&f, sums, FT_I8_PANEL, p.row + first, rows);
        }
    }
}

/* Few rows: all columns of a thread at once. */
static void walk_part(const product *job, part p, char *scratch)
{
    const ft_gemm_i8 *g = job->g;
    int32_t start[FT_I8_WALK], *sums = (int32_t *) scratch;
    ft_i8_tile tile = {
        .x = job->x + p.row * job->x_stride,
        .x_stride = job->x_stride,
        .rows = p.rows,
        .quads = job->quads,
        .start = start,
        .out = sums,
        .out_stride = ft_round_up(p.cols, FT_I8_PANEL),
    };
    job->kernels->row_starts(start, tile.x, tile.x_stride, tile.rows, tile.quads);
    for (size_t row = 0; row < p.rows; row++)
        for (size_t col = 0; col < tile.out_stride; col++)
            sums[row * tile.out_stride + col] = start[row];
    job->kernels->walk(&tile, g->w, job->padded_n, p.col, p.cols);
    for (size_t col = 0; col < p.cols; col += FT_I8_PANEL) {
        ft_i8_finish f = panel_finish(g, p.col + col, ft_min_size(p.cols - col, FT_I8_PANEL));
        job->kernels->finish(&f, sums + col, tile.out_stride, p.row, p.rows);
    }
}

/* Thread `thread` of `threads` copies its rows of x, padded with zeros. */
static void pad_rows(const ft_gemm_i8 *g, int8_t *copy, size_t stride, size_t thread,
                     size_t threads)
{
    size_t rows, first = share_of(g->m, thread, threads, &rows);
    for (size_t row = first; row < first + rows; row++) {
        memcpy(copy + row * stride, g->x + row * g->x_stride, g->k);
        memset(copy + row * stride + g->k, 0, stride - g->k);
    }
}

void ft_gemm_i8_run(const ft_gemm_i8 *g)
{
    assert(g->scratch_bytes >= ft_gemm_i8_scratch(g->m, g->n, g->k, g->threads));
    const ft_i8_kernels *kernels = ft_i8_kernels_of(g->isa);
    bool walks = g->m <= FT_I8_WALK && kernels->walk != NULL;
    size_t needed_k = ft_round_up(g->k, walks ? FT_I8_BLOCK : 4);
    bool copies = needed_k != g->k;
    int8_t *copy = g->scratch;
    product job = {
        .g = g,
        .kernels = kernels,
        .x = copies ? copy : g->x,
        .x_stride = copies ? ft_round_up(g->k, FT_I8_BLOCK) : g->x_stride,
        .quads = needed_k / 4,
        .padded_n = ft_layout_rows(FT_COL4_4R2_8C, g->n),
        .walks = walks,
    };
    char *scratch = (char *) g->scratch + x_copy_bytes(g->m, g->k);
    size_t threads = (size_t) g->threads, thread;

#pragma omp parallel for schedule(static) num_threads(g->threads) if (copies)
    for (thread = 0; thread < threads; thread++)
        if (copies)
            pad_rows(g, copy, job.x_stride, thread, threads);

#pragma omp parallel for schedule(static) num_threads(g->threads)
    for (thread = 0; thread < threads; thread++) {
        part p = part_of_thread(g, thread, threads);
        char *own = scratch + thread * thread_bytes(g->m, g->n, g->k);
        if (p.rows == 0 || p.cols == 0)
            continue;
        if (walks)
            walk_part(&job, p, own);
        else
            multiply_part(&job, p, own);
    }
}
