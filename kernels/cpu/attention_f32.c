/*
 * attention_f32.c - attention through the float library; also the faked int8 form and the one
 * that calibration observes.
 *
 * For each sequence, head and block of queries: scores = q . k^T, softmax by rows, context =
 * p . v.  Rows are packed, so there is no mask: keys of other sequences are never read.
 *
 * Faked int8 runs the same products on codes held in float and quantizes what int8 quantizes.
 * sgemm adds them exactly: a head is at most 1024 wide, and longer rows of probabilities are
 * multiplied 1024 keys at a time and added as whole numbers below 2^24.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/count.h"
#include "kernels/cpu/cpu.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <cblas.h>
#include <omp.h>

enum { QUERIES = 64 };

/* The work of one thread at a time. */
typedef struct task {
    size_t first, length; /* rows of the sequence */
    size_t query, m;      /* rows of this block of queries, relative to `first` */
    size_t col, dim;      /* columns of the head */
} task;

size_t ft_cpu_attention_f32_scratch(const ft_limits *limits)
{
    return (size_t) limits->threads *
           (QUERIES * ft_round_up(limits->tokens, 16) * sizeof(float) + 64);
}

static const float *operand(const ft_args *args, int i, size_t row, const task *t)
{
    return ft_row_f32(&args->in[i], row) + t->col;
}

/* Multiply whole rows of scores by the scale of queries and keys, then softmax them. */
static void probabilities(const ft_args *args, const task *t, float *scores)
{
    const ft_rows_isa *rows = args->rows;
    float scale = args->op->attr.softmax_scale;
    if (args->in[0].scale > 0.0f)
        scale = args->in[0].scale * args->in[1].scale * scale;
    for (size_t i = 0; i < t->m; i++, scores += t->length) {
        rows->softmax(scores, scale, t->length);
        if (args->counts != NULL)
            ft_cpu_count(args->counts, scores, t->length);
        if (args->inner.scale > 0.0f)
            rows->quantize_f32(scores, scores, ft_inverse_scale(args->inner.scale), t->length);
    }
}

/* The context's sums are in place, in the block of `result`; make them real, or codes. */
static void finish_context(const ft_args *args, const task *t, const ft_view *result)
{
    const ft_rows_isa *rows = args->rows;
    if (args->inner.scale <= 0.0f)
        return;
    float scale = args->inner.scale * args->in[2].scale;
    for (size_t i = 0; i < t->m; i++) {
        float *row = ft_row_f32(result, t->first + t->query + i) + t->col;
        rows->dequantize_f32(row, row, scale, t->dim);
        if (args->codes.data != NULL)
            rows->quantize_f32(row, row, ft_inverse_scale(args->codes.scale), t->dim);
    }
}

static void attend(const ft_args *args, const task *t, float *scores)
{
    const ft_view *result = args->codes.data != NULL ? &args->codes : &args->out;
    int stride = (int) args->in[0].cols;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int) t->m, (int) t->length, (int) t->dim,
                1.0f, operand(args, 0, t->first + t->query, t), stride,
                operand(args, 1, t->first, t), stride, 0.0f, scores, (int) t->length);
    probabilities(args, t, scores);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int) t->m, (int) t->dim,
                (int) t->length, 1.0f, scores, (int) t->length, operand(args, 2, t->first, t),
                stride, 0.0f, ft_row_f32(result, t->first + t->query) + t->col, stride);
    finish_context(args, t, result);
}

void ft_cpu_attention_f32(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    size_t heads = (size_t) args->op->attr.heads, dim = args->in[0].cols / heads;
    size_t blocks = (batch->longest + QUERIES - 1) / QUERIES;
#pragma omp parallel num_threads(args->threads)
    {
        float *scores = ft_thread_scratch(args, omp_get_thread_num());
#pragma omp for schedule(dynamic)
        for (size_t i = 0; i < batch->sequences * heads * blocks; i++) {
            size_t sequence = i / (heads * blocks);
            task t = { .first = (size_t) batch->start[sequence],
                       .query = i % blocks * QUERIES,
                       .col = i / blocks % heads * dim,
                       .dim = dim };
            t.length = (size_t) batch->start[sequence + 1] - t.first;
            t.m = t.query < t.length ? ft_min_size(QUERIES, t.length - t.query) : 0;
            if (t.m > 0)
                attend(args, &t, scores);
        }
    }
}
