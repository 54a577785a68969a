/*
 * gemm_i8.c - distributes an int8 GEMM over threads, packed panels and register tiles.
 *
 * The panel kernel: each thread owns a rectangle of the output. It packs 64 weight rows at a time
 * into its scratch, where they stay in cache, and multiplies all its rows of x with them; meanwhile
 * it prefetches the next 64 rows, which the file layout scatters in pieces of 2 KB. With few rows
 * of x the GEMM is bound by memory bandwidth, and the stream kernel reads the weights in memory
 * order instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/int8/gemm_i8.h"

#include "kernels/cpu/gemm/int8/i8.h"
#include "kernels/threads/team.h"
#include "runtime/mem.h"

#include <assert.h>
#include <string.h>

const ft_i8_kernels *ft_i8_kernels_for(ft_isa isa)
{
    static const ft_i8_kernels *const kernels[FT_ISA_COUNT] = {
        [FT_ISA_GENERIC] = &ft_i8_generic,
#if defined HAVE_AVX2
        [FT_ISA_AVX2] = &ft_i8_avx2,
#endif
#if defined HAVE_AVXVNNI
        [FT_ISA_AVXVNNI] = &ft_i8_avxvnni,
#endif
#if defined HAVE_AVX512
        [FT_ISA_AVX512VNNI] = &ft_i8_avx512,
#endif
#if defined HAVE_AMX
        [FT_ISA_AMX] = &ft_i8_amx,
#endif
#if defined HAVE_NEON
        [FT_ISA_NEON] = &ft_i8_neon,
#endif
#if defined HAVE_DOTPROD
        [FT_ISA_DOTPROD] = &ft_i8_dotprod,
#endif
#if defined HAVE_I8MM
        [FT_ISA_I8MM] = &ft_i8_i8mm,
#endif
    };
    assert(kernels[isa] != NULL);
    return kernels[isa];
}

/* The output rectangle of one thread. */
typedef struct rect {
    size_t row, rows, col, cols;
} rect;

/*
 * Splits the columns; splits the rows too if a thread would otherwise get less than a panel.
 * Columns are split at multiples of 16, so only the last panel is partial.
 */
static rect thread_rect(const ft_gemm_i8 *g, size_t thread, size_t threads)
{
    size_t units = (g->n + FT_I8_UNIT - 1) / FT_I8_UNIT, units_per_panel = FT_I8_PANEL / FT_I8_UNIT;
    size_t tiles = (g->m + FT_I8_TILE - 1) / FT_I8_TILE;
    size_t row_splits = 1;
    while (units < units_per_panel * (threads / row_splits) && row_splits < threads &&
           row_splits < tiles)
        row_splits++;
    size_t col_splits = threads / row_splits;
    if (thread >= row_splits * col_splits)
        return (rect){ 0 };
    rect p;
    p.row = ft_i8_partition(g->m, thread / col_splits, row_splits, &p.rows);
    p.col = ft_i8_partition(units, thread % col_splits, col_splits, &p.cols) * FT_I8_UNIT;
    p.cols = ft_min_size(p.cols * FT_I8_UNIT, g->n > p.col ? g->n - p.col : 0);
    return p;
}

/* What all threads of one GEMM share. */
typedef struct gemm_job {
    const ft_gemm_i8 *g;
    const ft_i8_kernels *kernels;
    const int8_t *x; /* padded with zeros from k to the next multiple of 4 */
    size_t x_stride, padded_n;
    bool streams;
    int8_t *x_padded; /* of x, if k is not a multiple of 4 */
    char *scratch;    /* of the first thread */
} gemm_job;

/* If k is not a multiple of 4, the threads share a padded copy of x. */
static size_t x_padded_bytes(size_t m, size_t k)
{
    return m * ft_i8_stride(k);
}

static size_t acc_init_bytes(size_t m)
{
    return ft_round_up(m * sizeof(int32_t), 64);
}

/*
 * Scratch of one thread: initial accumulators, a row filled with x_zero and a panel; or, for the
 * stream kernel, its copy of x and its accumulators.
 */
static size_t thread_bytes(size_t m, size_t n, size_t k)
{
    size_t rows = ft_min_size(m, FT_I8_STREAM_ROWS);
    size_t panel = acc_init_bytes(m) + ft_i8_stride(k) + ft_i8_panel_bytes(FT_I8_PANEL, k);
    size_t stream = rows * (ft_i8_stride(k) + ft_i8_stride(ft_round_up(n, FT_I8_PANEL) * 4));
    return panel > stream ? panel : stream;
}

size_t ft_gemm_i8_scratch(size_t m, size_t n, size_t k, int threads)
{
    enum { LIMIT = 1 << 30 };
    size_t bytes;
    if (m > LIMIT || n > LIMIT || k > LIMIT || threads > LIMIT ||
        !ft_checked_mul(thread_bytes(m, n, k), (size_t) threads, &bytes) ||
        !ft_checked_add(bytes, x_padded_bytes(m, k), &bytes))
        return SIZE_MAX;
    return bytes;
}

static ft_i8_epilogue panel_epilogue(const ft_gemm_i8 *g, size_t col, size_t cols)
{
    float x_scale = g->x_scales != NULL ? 1.0f : g->x_scale;
    ft_i8_epilogue f = {
        .x_scales = g->x_scales,
        .cols = cols,
        .activation = g->activation,
        .residual = g->residual != NULL ? g->residual + col : NULL,
        .residual_stride = g->residual_stride,
        .y_dtype = g->y_dtype,
        .out_inverse = g->out_inverse,
        .y = (char *) g->y + col * ft_dtype_size(g->y_dtype),
        .y_stride = g->y_stride,
    };
    for (size_t i = 0; i < cols; i++) {
        f.scale[i] = x_scale * g->w_scale[col + i];
        f.bias[i] = g->bias != NULL ? g->bias[col + i] : 0.0f;
    }
    return f;
}

/* The share of tile `index` of `tiles` in prefetching the weight rows from `col` on. */
static ft_i8_prefetch tile_prefetch(const gemm_job *job, size_t col, size_t cols, size_t index,
                                    size_t tiles)
{
    ft_i8_prefetch prefetch = { .stride = job->padded_n * FT_I8_BLOCK };
    size_t first =
        ft_i8_partition(ft_round_up(cols, 8) * FT_I8_BLOCK / 64, index, tiles, &prefetch.lines);
    prefetch.at = job->g->w + col * FT_I8_BLOCK + first * 64;
    return prefetch;
}

/*
 * Accumulators of a row filled with x_zero, the zero point of x, to be subtracted: [cols].
 */
static void zero_point_acc(const gemm_job *job, int8_t *row, const void *panel, size_t cols,
                           int32_t *acc)
{
    int32_t acc_init;
    ft_i8_tile tile = {
        .x = row,
        .x_stride = ft_i8_stride(job->g->k),
        .rows = 1,
        .k_quads = (job->g->k + 3) / 4,
        .acc_init = &acc_init,
        .out = acc,
        .out_stride = FT_I8_PANEL,
        .prefetch = { .at = row },
    };
    memset(row, 0, tile.x_stride);
    memset(row, job->g->x_zero, job->g->k);
    job->kernels->acc_init_rows(&acc_init, row, tile.x_stride, 1, tile.k_quads);
    job->kernels->gemm_tile(&tile, panel, cols);
}

static void subtract_zero_point(int32_t *acc, size_t rows, const int32_t *zeros, size_t cols)
{
    for (size_t row = 0; row < rows; row++, acc += FT_I8_PANEL)
        for (size_t col = 0; col < cols; col++)
            acc[col] -= zeros[col];
}

/* All rows of a thread against its columns, panel by panel. */
static void gemm_panels(const gemm_job *job, rect p, char *scratch)
{
    const ft_gemm_i8 *g = job->g;
    int32_t *acc_init = (int32_t *) scratch;
    int8_t *zero_row = (int8_t *) scratch + acc_init_bytes(g->m);
    void *panel = zero_row + ft_i8_stride(g->k);
    bool has_block = job->kernels->gemm_block != NULL;
    ft_i8_multiply *multiply = has_block ? job->kernels->gemm_block : job->kernels->gemm_tile;
    size_t max_rows = has_block ? FT_I8_BLOCK_ROWS : FT_I8_TILE;
    size_t tiles = (p.rows + max_rows - 1) / max_rows;
    for (size_t col = 0; col < p.cols; col += FT_I8_PANEL) {
        size_t cols = ft_min_size(p.cols - col, FT_I8_PANEL);
        size_t next_cols = ft_min_size(p.cols - col - cols, FT_I8_PANEL);
        ft_i8_epilogue f = panel_epilogue(g, p.col + col, cols);
        job->kernels->pack_col4(panel, g->w, job->padded_n, g->k, p.col + col, cols);
        _Alignas(64) int32_t zeros[FT_I8_PANEL];
        if (g->x_zero != 0)
            zero_point_acc(job, zero_row, panel, cols, zeros);
        for (size_t index = 0; index < tiles; index++) {
            _Alignas(64) int32_t acc[FT_I8_BLOCK_ROWS * FT_I8_PANEL];
            size_t rows, first = ft_i8_partition(p.rows, index, tiles, &rows);
            ft_i8_tile tile = {
                .x = job->x + (p.row + first) * job->x_stride,
                .x_stride = job->x_stride,
                .rows = rows,
                .k_quads = (g->k + 3) / 4,
                .acc_init = acc_init + first,
                .out = acc,
                .out_stride = FT_I8_PANEL,
                .prefetch = tile_prefetch(job, p.col + col + cols, next_cols, index, tiles),
            };
            if (col == 0) /* x is being read into the cache anyway */
                job->kernels->acc_init_rows(acc_init + first, tile.x, tile.x_stride, rows,
                                            tile.k_quads);
            multiply(&tile, panel, cols);
            if (g->x_zero != 0)
                subtract_zero_point(acc, rows, zeros, cols);
            job->kernels->epilogue(&f, acc, FT_I8_PANEL, p.row + first, rows);
        }
    }
}

static void copy_padded(int8_t *to, size_t to_stride, const ft_gemm_i8 *g, size_t first,
                        size_t rows)
{
    for (size_t row = 0; row < rows; row++, to += to_stride) {
        memcpy(to, g->x + (first + row) * g->x_stride, g->k);
        memset(to + g->k, 0, to_stride - g->k);
    }
}

/* Few rows: all columns of a thread at once. */
static void gemm_stream(const gemm_job *job, rect p, char *scratch)
{
    const ft_gemm_i8 *g = job->g;
    int32_t acc_init[FT_I8_STREAM_ROWS];
    ft_i8_tile tile = {
        .x = (int8_t *) scratch,
        .x_stride = ft_i8_stride(g->k),
        .rows = p.rows,
        .k_quads = ft_round_up(g->k, FT_I8_BLOCK) / 4,
        .acc_init = acc_init,
        .out = (int32_t *) (scratch + p.rows * ft_i8_stride(g->k)),
        .out_stride = ft_i8_stride(ft_round_up(p.cols, FT_I8_PANEL) * 4) / 4,
    };
    copy_padded((int8_t *) scratch, tile.x_stride, g, p.row, p.rows);
    job->kernels->acc_init_rows(acc_init, tile.x, tile.x_stride, tile.rows, tile.k_quads);
    job->kernels->stream(&tile, g->w, job->padded_n, p.col, p.cols);
    for (size_t col = 0; col < p.cols; col += FT_I8_PANEL) {
        ft_i8_epilogue f = panel_epilogue(g, p.col + col, ft_min_size(p.cols - col, FT_I8_PANEL));
        job->kernels->epilogue(&f, tile.out + col, tile.out_stride, p.row, p.rows);
    }
}

/* The output rectangles of threads first .. end - 1. */
static void run_rects(const void *arg, int thread, size_t first, size_t end)
{
    const gemm_job *job = arg;
    const ft_gemm_i8 *g = job->g;
    char *scratch = job->scratch + (size_t) thread * thread_bytes(g->m, g->n, g->k);
    for (size_t i = first; i < end; i++) {
        rect p = thread_rect(g, i, (size_t) g->threads);
        if (p.rows == 0 || p.cols == 0)
            continue;
        if (job->streams)
            gemm_stream(job, p, scratch);
        else
            gemm_panels(job, p, scratch);
    }
}

static void copy_rows(const void *arg, int thread, size_t first, size_t end)
{
    const gemm_job *job = arg;
    (void) thread;
    copy_padded(job->x_padded + first * job->x_stride, job->x_stride, job->g, first, end - first);
}

bool ft_gemm_i8_streams(ft_isa isa, size_t m)
{
    return m <= ft_i8_kernels_for(isa)->stream_rows;
}

void ft_gemm_i8_run(const ft_gemm_i8 *g)
{
    assert(g->scratch_bytes >= ft_gemm_i8_scratch(g->m, g->n, g->k, g->threads));
    gemm_job job = {
        .g = g,
        .kernels = ft_i8_kernels_for(g->isa),
        .x = g->x,
        .x_stride = g->x_stride,
        .padded_n = ft_layout_rows(FT_COL4_4R2_8C, g->n),
        .streams = ft_gemm_i8_streams(g->isa, g->m) && g->x_zero == 0,
        .x_padded = g->scratch,
        .scratch = (char *) g->scratch + x_padded_bytes(g->m, g->k),
    };
    if (g->k % 4 != 0 && !job.streams) {
        job.x = job.x_padded;
        job.x_stride = ft_i8_stride(g->k);
        ft_parallel_for(g->threads, g->m, copy_rows, &job);
    }
    ft_parallel_for(g->threads, (size_t) g->threads, run_rects, &job);
}
