/*
 * linear_f32.c - y = act(x . w^T + b) with the float BLAS library; also for fake-quantized int8.
 *
 * The output is split into a fixed grid of blocks, each computed by one sgemm call on one thread,
 * so results do not depend on the number of threads. F16 and BF16 weights are converted block by
 * block: they stay in the mapped file, at half the memory.
 *
 * Fake-quantized int8 multiplies integers stored as float. A sum of 1024 products of int8 values is
 * at most 127 * 127 * 1024 < 2^24, so sgemm is exact for 1024 columns; longer rows are accumulated
 * in int32. The result therefore equals that of the int8 kernel, computed by code that shares
 * nothing with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/blas.h"
#include "kernels/cpu/base/cpu.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <string.h>

enum { BLOCK_ROWS = 256, BLOCK_COLS = 128, EXACT_K = 1024 };

/* Scratch of one thread. */
typedef struct block_scratch {
    float *weights; /* [BLOCK_COLS, k], converted to float */
    float *partial; /* [BLOCK_ROWS, BLOCK_COLS] */
    int32_t *acc;   /* [BLOCK_ROWS, BLOCK_COLS] */
    float *row;     /* [BLOCK_COLS], one row of results */
} block_scratch;

static size_t acc_bytes(void)
{
    return (size_t) BLOCK_ROWS * BLOCK_COLS * sizeof(float);
}

size_t ft_cpu_linear_f32_scratch(const ft_weight *weight, const ft_limits *limits, size_t rows)
{
    (void) rows; /* blocks have a fixed size */
    size_t converted = weight->dtype == FT_F32 ? 0 : BLOCK_COLS * weight->cols * sizeof(float);
    size_t fake_quant = weight->scale == NULL ? 0 : 2 * acc_bytes();
    return (size_t) limits->threads *
           (ft_round_up(converted + fake_quant + BLOCK_COLS * sizeof(float), 64) + 64);
}

static block_scratch thread_scratch(const ft_args *args, int thread)
{
    const ft_weight *weight = args->weight[0];
    char *base = ft_thread_scratch(args, thread);
    block_scratch scratch = { 0 };
    if (weight->dtype != FT_F32) {
        scratch.weights = (float *) (void *) base;
        base += BLOCK_COLS * weight->cols * sizeof(float);
    }
    if (weight->scale != NULL) {
        scratch.partial = (float *) (void *) base;
        scratch.acc = (int32_t *) (void *) (base + acc_bytes());
        base += 2 * acc_bytes();
    }
    scratch.row = (float *) (void *) base;
    return scratch;
}

/* A block of the output: rows row .. row + m - 1, columns col .. col + n - 1. */
typedef struct block {
    size_t row, m, col, n;
} block;

/* The block's weight rows in float. */
static const float *block_weights(const ft_args *args, const block *b, float *converted)
{
    const ft_weight *weight = args->weight[0];
    size_t first = b->col * weight->cols;
    if (weight->dtype == FT_F32)
        return (const float *) weight->data + first;
    args->rows->to_float(converted,
                         (const char *) weight->data + first * ft_dtype_size(weight->dtype),
                         weight->dtype, b->n * weight->cols);
    return converted;
}

/* y [m, n] = x [m, k] . w [n, k]^T on columns first .. first + k - 1 of both. */
static void block_sgemm(const block *b, const float *x, const float *w, size_t stride, size_t first,
                        size_t k, float *y, size_t y_stride)
{
    ft_sgemm(CblasNoTrans, CblasTrans, (int) b->m, (int) b->n, (int) k, 1.0f, x + first,
             (int) stride, w + first, (int) stride, 0.0f, y, (int) y_stride);
}

static void compute_float(const ft_args *args, const block *b, const block_scratch *scratch)
{
    const ft_row_kernels *rows = args->rows;
    const ft_weight *weight = args->weight[0];
    const float *w = block_weights(args, b, scratch->weights);
    float *y = ft_row_f32(&args->out, b->row) + b->col;
    block_sgemm(b, ft_row_f32(&args->in[0], b->row), w, weight->cols, 0, weight->cols, y,
                args->out.cols);
    for (size_t i = 0; i < b->m; i++, y += args->out.cols) {
        if (args->weight[1] != NULL)
            rows->add(y, y, (const float *) args->weight[1]->data + b->col, b->n);
        rows->activate(y, y, args->op->attr.activation, b->n);
    }
}

/* acc = x . w of the quantized values, exact. */
static void accumulate_exact(const ft_args *args, const block *b, const block_scratch *scratch)
{
    const ft_weight *weight = args->weight[0];
    const float *x = ft_row_f32(&args->in[0], b->row);
    const float *w = block_weights(args, b, scratch->weights);
    memset(scratch->acc, 0, acc_bytes());
    for (size_t first = 0; first < weight->cols; first += EXACT_K) {
        size_t k = ft_min_size(EXACT_K, weight->cols - first);
        block_sgemm(b, x, w, weight->cols, first, k, scratch->partial, BLOCK_COLS);
        for (size_t i = 0; i < b->m * BLOCK_COLS; i++)
            scratch->acc[i] += i % BLOCK_COLS < b->n ? (int32_t) scratch->partial[i] : 0;
    }
}

static void compute_fake_quantized(const ft_args *args, const block *b,
                                   const block_scratch *scratch)
{
    const ft_row_kernels *rows = args->rows;
    const float *bias =
        args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data + b->col;
    bool quantize_out = args->quantized.data != NULL;
    const ft_view *y_view = quantize_out ? &args->quantized : &args->out;
    accumulate_exact(args, b, scratch);
    for (size_t i = 0; i < b->m; i++) {
        size_t at = (b->row + i) * y_view->cols + b->col;
        void *y = (char *) y_view->data + at * ft_dtype_size(y_view->dtype);
        rows->dequantize_acc(scratch->row, scratch->acc + i * BLOCK_COLS,
                             ft_row_scale(&args->in[0], b->row + i),
                             args->weight[0]->scale + b->col, bias, b->n);
        rows->activate(scratch->row, scratch->row, args->op->attr.activation, b->n);
        if (quantize_out)
            rows->quantize_f32(y, scratch->row, ft_inverse_scale(args->quantized.scale), b->n);
        else
            rows->from_float(y, scratch->row, y_view->dtype, b->n);
    }
}

static size_t block_cols_count(const ft_args *args)
{
    return (args->weight[0]->rows + BLOCK_COLS - 1) / BLOCK_COLS;
}

static void compute_blocks(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    block_scratch scratch = thread_scratch(args, thread);
    size_t n_block_cols = block_cols_count(args);
    for (size_t i = first; i < end; i++) {
        block b = { .row = i / n_block_cols * BLOCK_ROWS, .col = i % n_block_cols * BLOCK_COLS };
        b.m = ft_min_size(BLOCK_ROWS, args->in[0].rows - b.row);
        b.n = ft_min_size(BLOCK_COLS, args->weight[0]->rows - b.col);
        if (args->weight[0]->scale != NULL)
            compute_fake_quantized(args, &b, &scratch);
        else
            compute_float(args, &b, &scratch);
    }
}

void ft_cpu_linear_f32(const ft_args *args)
{
    size_t m = args->in[0].rows,
           blocks = block_cols_count(args) * ((m + BLOCK_ROWS - 1) / BLOCK_ROWS);
    double work = (double) m * (double) args->weight[0]->rows * (double) args->weight[0]->cols;
    ft_parallel_for(ft_team_size(args->threads, blocks, work / FT_TEAM_MACS_FLOAT), blocks,
                    compute_blocks, args);
}
