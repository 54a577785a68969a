/*
 * gemm_f32.c - a float GEMM: packed if it has many rows; with few rows, weights are streamed.
 *
 * With few rows of x packing does not pay: the weights are streamed from memory once, unpacked, and
 * threads take chunks of columns dynamically.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/f32/gemm_f32.h"

#include "kernels/cpu/gemm/f32/gemm_f32_job.h"
#include "kernels/threads/team.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"

#include <assert.h>

enum {
    FEW_ROWS = 2 * FT_FLOAT_MAX_ROWS,
    CHUNK_COLS = 96, /* at most; a multiple of every tile's columns */
};

/* ---- Few rows ----------------------------------------------------------------------------- */

/* Whether rows are few enough to read the weights unpacked. */
static bool has_few_rows(size_t m, size_t k)
{
    return m <= FEW_ROWS && k % FT_FLOAT_LANES == 0;
}

typedef struct streamed_job {
    const ft_gemm_float_job *of;
    const float *x; /* [m, k] in float */
    size_t x_stride, chunk_cols;
} streamed_job;

/* The weights are read once, in place, and converted in registers. */
static void multiply_chunk(const streamed_job *job, const ft_gemm_float_block *b)
{
    const ft_gemm_float *g = job->of->gemm;
    const ft_float_kernels *kernels = job->of->kernels;
    float acc[FEW_ROWS * CHUNK_COLS];
    for (size_t j = 0; j < b->cols; j += kernels->cols)
        for (size_t k_offset = 0; k_offset < g->k; k_offset += FT_FLOAT_K_TILE)
            for (size_t i = 0; i < b->rows; i += kernels->rows)
                kernels->gemm_tile(&(ft_float_tile){
                    .x = job->x + i * job->x_stride + k_offset,
                    .x_stride = job->x_stride,
                    .w = ft_gemm_float_weights(g, b->col + j, k_offset),
                    .w_stride = g->k,
                    .w_dtype = g->w_dtype,
                    .accumulate = k_offset > 0,
                    .rows = ft_min_size(kernels->rows, b->rows - i),
                    .cols = ft_min_size(kernels->cols, b->cols - j),
                    .k = ft_min_size(FT_FLOAT_K_TILE, g->k - k_offset),
                    .acc = acc + i * CHUNK_COLS + j,
                    .acc_stride = CHUNK_COLS,
                });
    ft_gemm_float_store(job->of, b, acc, CHUNK_COLS);
}

static void multiply_chunks(const void *arg, int thread, size_t first, size_t end)
{
    const streamed_job *job = arg;
    const ft_gemm_float *g = job->of->gemm;
    (void) thread;
    for (size_t i = first; i < end; i++) {
        size_t col = i * job->chunk_cols;
        multiply_chunk(
            job, &(ft_gemm_float_block){
                     .rows = g->m, .col = col, .cols = ft_min_size(job->chunk_cols, g->n - col) });
    }
}

/* x in place, or converted to float. */
static void load_x(streamed_job *job)
{
    const ft_gemm_float *g = job->of->gemm;
    float *x = g->scratch;
    job->x = g->x;
    job->x_stride = g->x_stride;
    if (g->x_dtype == FT_F32)
        return;
    for (size_t i = 0; i < g->m; i++)
        job->of->rows->to_float(x + i * g->k,
                                (const char *) g->x + i * g->x_stride * ft_dtype_size(g->x_dtype),
                                g->x_dtype, g->k);
    job->x = x;
    job->x_stride = g->k;
}

static void run_streamed(const ft_gemm_float_job *of)
{
    const ft_gemm_float *g = of->gemm;
    streamed_job job = { .of = of,
                         .chunk_cols =
                             ft_team_chunk_size(g->threads, g->n, FT_FLOAT_LANES, CHUNK_COLS) };
    load_x(&job);
    ft_parallel_for_stealing(g->threads, (g->n + job.chunk_cols - 1) / job.chunk_cols,
                             multiply_chunks, &job);
}

/* ------------------------------------------------------------------------------------------- */

size_t ft_gemm_float_scratch(ft_dtype x_dtype, size_t m, size_t k, int threads)
{
    size_t packed = ft_gemm_float_packed_scratch(m, k, threads);
    size_t streamed = x_dtype == FT_F32 ? 0 : ft_min_size(m, FEW_ROWS) * k * sizeof(float);
    if (has_few_rows(m, k))
        return streamed;
    return ft_max_size(packed, streamed);
}

void ft_gemm_float_run(const ft_gemm_float *g)
{
    const ft_gemm_float_job job = { .gemm = g,
                                    .kernels = ft_float_kernels_for(g->isa),
                                    .rows = ft_row_kernels_for(g->isa) };
    assert(g->scratch_bytes >= ft_gemm_float_scratch(g->x_dtype, g->m, g->k, g->threads));
    if (has_few_rows(g->m, g->k))
        run_streamed(&job);
    else
        ft_gemm_float_packed_run(&job);
}
