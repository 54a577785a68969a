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

/* Scratch of one thread. */
typedef struct block_scratch {
    double *sums;     /* [FT_QUERY_BLOCK, tokens or head_size] of scores, then of the context */
    float *scores;    /* [FT_QUERY_BLOCK, tokens], later the probabilities */
    float *prob_sums; /* [FT_QUERY_BLOCK] sums of the quantized probabilities */
    float *context;   /* [FT_QUERY_BLOCK, head_size] */
} block_scratch;

size_t ft_fake_quantized_attention_scratch(size_t head_size, const ft_limits *limits)
{
    size_t sums = FT_QUERY_BLOCK * ft_max_size(limits->tokens, head_size) * sizeof(double);
    size_t floats = FT_QUERY_BLOCK * (limits->tokens + 1 + head_size) * sizeof(float);
    return (size_t) limits->threads * (ft_round_up(sums + floats, 64) + 64);
}

static block_scratch thread_scratch(const ft_args *args, int thread, size_t head_size)
{
    block_scratch s = { .sums = ft_thread_scratch(args, thread) };
    s.scores =
        (float *) (void *) (s.sums + FT_QUERY_BLOCK * ft_max_size(args->limits->tokens, head_size));
    s.prob_sums = s.scores + FT_QUERY_BLOCK * args->limits->tokens;
    s.context = s.prob_sums + FT_QUERY_BLOCK;
    return s;
}

static ft_linalg_matrix operand(const ft_args *args, int i, size_t row, const ft_query_block *b)
{
    return (ft_linalg_matrix){ .f32 = ft_row_f32(&args->in[i], row) + b->col,
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
static void quantize_probabilities(const ft_args *args, const ft_query_block *b,
                                   const block_scratch *s)
{
    float step = ft_softmax_step(
        ft_score_scale(args->in[0].scale, args->in[1].scale, args->op->attr.softmax_scale));
    for (size_t i = 0; i < b->rows; i++)
        s->prob_sums[i] = args->rows->softmax_quantize(s->scores + i * b->length, step, b->length);
}

/* Dequantizes the context, and quantizes it again if the output is. */
static void store_context(const ft_args *args, const ft_query_block *b, const block_scratch *s)
{
    const ft_view *y = args->quantized.data != NULL ? &args->quantized : &args->out;
    for (size_t i = 0; i < b->rows; i++) {
        float *row = ft_row_f32(y, b->first + b->query + i) + b->col;
        args->rows->dequantize_f32(row, s->context + i * b->head_size,
                                   ft_softmax_factor(args->in[2].scale, s->prob_sums[i]),
                                   b->head_size);
        if (args->quantized.data != NULL)
            args->rows->quantize_f32(row, row, ft_inverse_scale(args->quantized.scale),
                                     b->head_size);
    }
}

static void attend(const ft_args *args, const ft_query_block *b, const block_scratch *s)
{
    const ft_linalg_matrix probabilities = { .f32 = s->scores,
                                             .row_stride = b->length,
                                             .col_stride = 1 };
    multiply(args, b->rows, b->length, b->head_size, operand(args, 0, b->first + b->query, b),
             transposed(operand(args, 1, b->first, b)), s->sums, s->scores);
    quantize_probabilities(args, b, s);
    multiply(args, b->rows, b->head_size, b->length, probabilities, operand(args, 2, b->first, b),
             s->sums, s->context);
    store_context(args, b, s);
}

static void attend_blocks(const void *job, int thread, size_t first, size_t end)
{
    const ft_args *args = job;
    size_t head_size = args->in[0].cols / (size_t) args->op->attr.heads;
    block_scratch scratch = thread_scratch(args, thread, head_size);
    for (size_t i = first; i < end; i++) {
        ft_query_block b = ft_cpu_query_block(args, i);
        if (b.rows == 0)
            continue;
        attend(args, &b, &scratch);
    }
}

void ft_fake_quantized_attention(const ft_args *args)
{
    size_t blocks = ft_cpu_query_blocks(args);
    ft_parallel_for_dynamic(ft_cpu_attention_team(args, blocks, FT_TEAM_MACS_FLOAT), blocks,
                            attend_blocks, args);
}
