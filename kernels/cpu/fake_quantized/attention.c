/*
 * attention.c - softmax(q . k^T) . v on fake-quantized values.
 *
 * Quantizes at the same points as int8 attention.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/fake_quantized/fake_quantized.h"

#include "kernels/linalg.h"
#include "kernels/quant.h"
#include "kernels/softmax.h"
#include "runtime/mem.h"

#include <string.h>

enum { QUERIES = 64 };

/* One work item. */
typedef struct task {
    size_t first, length; /* rows of the sequence */
    size_t query, rows;   /* first row and rows of this block of queries, relative to `first` */
    size_t col, head_size;
} task;

/* Scratch of one thread. */
typedef struct block_scratch {
    double *sums;     /* [QUERIES, tokens or head_size] of scores, then of the context */
    float *scores;    /* [QUERIES, tokens], later the probabilities */
    float *prob_sums; /* [QUERIES] sums of the quantized probabilities */
    float *context;   /* [QUERIES, head_size] */
} block_scratch;

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t ft_fake_quantized_attention_scratch(size_t head_size, const ft_limits *limits)
{
    size_t sums = QUERIES * max_size(limits->tokens, head_size) * sizeof(double);
    size_t floats = QUERIES * (limits->tokens + 1 + head_size) * sizeof(float);
    return (size_t) limits->threads * (ft_round_up(sums + floats, 64) + 64);
}

static block_scratch thread_scratch(const ft_args *args, int thread, size_t head_size)
{
    block_scratch s = { .sums = ft_thread_scratch(args, thread) };
    s.scores = (float *) (void *) (s.sums + QUERIES * max_size(args->limits->tokens, head_size));
    s.prob_sums = s.scores + QUERIES * args->limits->tokens;
    s.context = s.prob_sums + QUERIES;
    return s;
}

static ft_linalg_matrix operand(const ft_args *args, int i, size_t row, const task *t)
{
    return (ft_linalg_matrix){ .f32 = ft_row_f32(&args->in[i], row) + t->col,
                               .row_stride = args->in[i].cols,
                               .col_stride = 1 };
}

static ft_linalg_matrix transposed(ft_linalg_matrix m)
{
    return (
        ft_linalg_matrix){ .f32 = m.f32, .row_stride = m.col_stride, .col_stride = m.row_stride };
}

/* y [rows, n] = a [rows, k] . b [k, n], exact. */
static void multiply(const ft_args *args, size_t rows, size_t n, size_t k, ft_linalg_matrix a,
                     ft_linalg_matrix b, double *sums, float *y)
{
    const ft_linalg linalg = { .isa = (int) args->isa, .threads = 1 };
    memset(sums, 0, rows * n * sizeof *sums);
    ft_linalg_dgemm(
        &linalg,
        &(ft_dgemm){ .m = rows, .n = n, .k = k, .a = a, .b = b, .c = sums, .c_stride = n });
    for (size_t i = 0; i < rows * n; i++)
        y[i] = (float) sums[i];
}

/* Int8 scores to quantized probabilities: kernels/softmax.h. */
static void quantize_probabilities(const ft_args *args, const task *t, const block_scratch *s)
{
    float step = ft_softmax_step(
        ft_score_scale(args->in[0].scale, args->in[1].scale, args->op->attr.softmax_scale));
    for (size_t i = 0; i < t->rows; i++)
        s->prob_sums[i] = args->rows->softmax_quantize(s->scores + i * t->length, step, t->length);
}

/* Dequantizes the context, and quantizes it again if the output is. */
static void store_context(const ft_args *args, const task *t, const block_scratch *s)
{
    const ft_view *y = args->quantized.data != NULL ? &args->quantized : &args->out;
    for (size_t i = 0; i < t->rows; i++) {
        float *row = ft_row_f32(y, t->first + t->query + i) + t->col;
        args->rows->dequantize_f32(row, s->context + i * t->head_size,
                                   ft_softmax_factor(args->in[2].scale, s->prob_sums[i]),
                                   t->head_size);
        if (args->quantized.data != NULL)
            args->rows->quantize_f32(row, row, ft_inverse_scale(args->quantized.scale),
                                     t->head_size);
    }
}

static void attend(const ft_args *args, const task *t, const block_scratch *s)
{
    const ft_linalg_matrix probabilities = { .f32 = s->scores,
                                             .row_stride = t->length,
                                             .col_stride = 1 };
    multiply(args, t->rows, t->length, t->head_size, operand(args, 0, t->first + t->query, t),
             transposed(operand(args, 1, t->first, t)), s->sums, s->scores);
    quantize_probabilities(args, t, s);
    multiply(args, t->rows, t->head_size, t->length, probabilities, operand(args, 2, t->first, t),
             s->sums, s->context);
    store_context(args, t, s);
}

static size_t blocks_per_sequence(const ft_batch *batch)
{
    return (batch->longest + QUERIES - 1) / QUERIES;
}

static void attend_blocks(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    const ft_batch *batch = args->batch;
    size_t heads = (size_t) args->op->attr.heads, head_size = args->in[0].cols / heads;
    size_t blocks = blocks_per_sequence(batch);
    block_scratch scratch = thread_scratch(args, thread, head_size);
    for (size_t i = first; i < end; i++) {
        size_t sequence = i / (heads * blocks);
        task t = { .first = (size_t) batch->start[sequence],
                   .query = i % blocks * QUERIES,
                   .col = i / blocks % heads * head_size,
                   .head_size = head_size };
        t.length = (size_t) batch->start[sequence + 1] - t.first;
        if (t.query >= t.length)
            continue;
        t.rows = ft_min_size(QUERIES, t.length - t.query);
        attend(args, &t, &scratch);
    }
}

void ft_fake_quantized_attention(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    size_t chunks = batch->sequences * (size_t) args->op->attr.heads * blocks_per_sequence(batch);
    ft_parallel_for_dynamic(ft_cpu_attention_team(args, chunks, FT_TEAM_MACS_FLOAT), chunks,
                            attend_blocks, args);
}
