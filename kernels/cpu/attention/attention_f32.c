/*
 * attention_f32.c - attention with the float BLAS library; also for fake-quantized int8, and with
 * observation for calibration.
 *
 * For each sequence, head and block of queries: scores = q . k^T, softmax by rows, context = p . v.
 * Sequences are packed without padding, so no mask is needed: keys of other sequences are never
 * read.
 *
 * Fake-quantized int8 runs the same matrix products on integers stored as float, and quantizes at
 * the same points as int8. A sum of 1024 products of int8 values is below 2^24, so sgemm is exact
 * for heads of up to 1024 columns and for 1024 keys at a time; longer sums of the context are
 * accumulated in int32.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/blas.h"
#include "kernels/cpu/rowwise/count.h"
#include "kernels/cpu/base/cpu.h"
#include "kernels/quant.h"
#include "kernels/softmax.h"
#include "runtime/mem.h"

#include <string.h>

enum { QUERIES = 64, EXACT_K = 1024 };

/* One work item. */
typedef struct task {
    size_t first, length; /* rows of the sequence */
    size_t query, m;      /* first row and rows of this block of queries, relative to `first` */
    size_t col, dim;      /* columns of the head */
} task;

/* Scratch of one thread; all but `scores` only for fake-quantized values. */
typedef struct block_scratch {
    float *scores;    /* [QUERIES, tokens], later the probabilities */
    float *partial;   /* [QUERIES, dim] */
    int32_t *sums;    /* [QUERIES, dim] */
    float *prob_sums; /* [QUERIES] sums of the quantized probabilities */
} block_scratch;

size_t ft_cpu_attention_f32_scratch(size_t dim, const ft_limits *limits)
{
    size_t row = ft_round_up(limits->tokens, 16) + 2 * ft_round_up(dim, 16) + 1;
    return (size_t) limits->threads * (QUERIES * row * sizeof(float) + 64);
}

/* Sequences of a batch are no longer than the limit that the scratch was sized for. */
static block_scratch thread_scratch(const ft_args *args, int thread, size_t dim)
{
    float *base = ft_thread_scratch(args, thread);
    size_t sums = QUERIES * ft_round_up(dim, 16);
    return (block_scratch){ .partial = base,
                            .sums = (int32_t *) (void *) (base + sums),
                            .prob_sums = base + 2 * sums,
                            .scores = base + 2 * sums + QUERIES };
}

static const float *operand(const ft_args *args, int i, size_t row, const task *t)
{
    return ft_row_f32(&args->in[i], row) + t->col;
}

static bool is_fake_quantized(const ft_args *args)
{
    return args->in[0].scale > 0.0f;
}

/* Softmax of the scores, row by row. */
static void probabilities(const ft_args *args, const task *t, float *scores)
{
    for (size_t i = 0; i < t->m; i++, scores += t->length) {
        args->rows->softmax(scores, args->op->attr.softmax_scale, t->length);
        if (args->counts != NULL)
            ft_cpu_counts_add(args->counts, scores, t->length);
    }
}

/* Int8 scores to quantized probabilities: kernels/softmax.h. */
static void quantize_probabilities(const ft_args *args, const task *t, const block_scratch *scratch)
{
    float step = ft_softmax_step(
        ft_score_scale(args->in[0].scale, args->in[1].scale, args->op->attr.softmax_scale));
    for (size_t i = 0; i < t->m; i++)
        scratch->prob_sums[i] =
            args->rows->softmax_quantize(scratch->scores + i * t->length, step, t->length);
}

/* y [m, dim] = p [m, keys] . v [keys, dim], starting at key `first` of the sequence. */
static void context_gemm(const ft_args *args, const task *t, const float *p, size_t first,
                         size_t keys, float *y, size_t y_stride)
{
    ft_sgemm(CblasNoTrans, CblasNoTrans, (int) t->m, (int) t->dim, (int) keys, 1.0f, p + first,
             (int) t->length, operand(args, 2, t->first + first, t), (int) args->in[2].cols, 0.0f,
             y, (int) y_stride);
}

/* The int8 context: exact sums, dequantized, and quantized again if the output is. */
static void context_quantized(const ft_args *args, const task *t, const block_scratch *scratch)
{
    const ft_row_kernels *rows = args->rows;
    const ft_view *y = args->quantized.data != NULL ? &args->quantized : &args->out;
    size_t count = t->m * t->dim;
    memset(scratch->sums, 0, count * sizeof *scratch->sums);
    for (size_t first = 0; first < t->length; first += EXACT_K) {
        context_gemm(args, t, scratch->scores, first, ft_min_size(EXACT_K, t->length - first),
                     scratch->partial, t->dim);
        for (size_t i = 0; i < count; i++)
            scratch->sums[i] += (int32_t) scratch->partial[i];
    }
    for (size_t i = 0; i < count; i++)
        scratch->partial[i] = (float) scratch->sums[i];
    for (size_t i = 0; i < t->m; i++) {
        float *row = ft_row_f32(y, t->first + t->query + i) + t->col;
        rows->dequantize_f32(row, scratch->partial + i * t->dim,
                             ft_softmax_factor(args->in[2].scale, scratch->prob_sums[i]), t->dim);
        if (args->quantized.data != NULL)
            rows->quantize_f32(row, row, ft_inverse_scale(args->quantized.scale), t->dim);
    }
}

static void attend(const ft_args *args, const task *t, const block_scratch *scratch)
{
    int stride = (int) args->in[0].cols;
    ft_sgemm(CblasNoTrans, CblasTrans, (int) t->m, (int) t->length, (int) t->dim, 1.0f,
             operand(args, 0, t->first + t->query, t), stride, operand(args, 1, t->first, t),
             stride, 0.0f, scratch->scores, (int) t->length);
    if (is_fake_quantized(args)) {
        quantize_probabilities(args, t, scratch);
        context_quantized(args, t, scratch);
        return;
    }
    probabilities(args, t, scratch->scores);
    context_gemm(args, t, scratch->scores, 0, t->length,
                 ft_row_f32(&args->out, t->first + t->query) + t->col, args->out.cols);
}

static size_t blocks_per_sequence(const ft_batch *batch)
{
    return (batch->longest + QUERIES - 1) / QUERIES;
}

static void attend_blocks(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    const ft_batch *batch = args->batch;
    size_t heads = (size_t) args->op->attr.heads, dim = args->in[0].cols / heads;
    size_t blocks = blocks_per_sequence(batch);
    block_scratch scratch = thread_scratch(args, thread, dim);
    for (size_t i = first; i < end; i++) {
        size_t sequence = i / (heads * blocks);
        task t = { .first = (size_t) batch->start[sequence],
                   .query = i % blocks * QUERIES,
                   .col = i / blocks % heads * dim,
                   .dim = dim };
        t.length = (size_t) batch->start[sequence + 1] - t.first;
        t.m = t.query < t.length ? ft_min_size(QUERIES, t.length - t.query) : 0;
        if (t.m > 0)
            attend(args, &t, &scratch);
    }
}

void ft_cpu_attention_f32(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    size_t chunks = batch->sequences * (size_t) args->op->attr.heads * blocks_per_sequence(batch);
    ft_parallel_for_dynamic(ft_cpu_attention_team(args, chunks, FT_TEAM_MACS_FLOAT), chunks,
                            attend_blocks, args);
}
