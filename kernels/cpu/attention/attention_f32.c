/*
 * attention_f32.c - attention over float values, with observation for calibration.
 *
 * For each sequence, head and block of queries: scores = q . k^T, softmax by rows, context = p . v.
 * Both products use weighted_sum() of f32.h. A score accumulates the columns of the head by fmaf,
 * in order; an element of the context accumulates the keys. So neither depends on the instruction
 * set, the number of threads or the batch.
 *
 * Sequences are packed without padding, so no mask is needed: keys of other sequences are never
 * read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"
#include "kernels/cpu/gemm/f32/f32.h"
#include "kernels/cpu/rowwise/count.h"
#include "runtime/mem.h"

#include <string.h>

/* Scratch of one thread; head sizes are rounded up to a multiple of FT_FLOAT_LANES. */
typedef struct block_scratch {
    float *keys;    /* [head_size, key_stride], transposed */
    float *values;  /* [tokens, width]: heads that are no such multiple, padded with zeros */
    float *scores;  /* [FT_QUERY_BLOCK, key_stride], later the probabilities */
    float *context; /* [FT_QUERY_BLOCK, width] */
    size_t key_stride, width;
} block_scratch;

/* Of `length` keys; no power of two, whose rows would share the same sets of the L1 cache. */
static size_t key_stride(size_t length)
{
    return ft_round_up(length, FT_FLOAT_LANES) + FT_FLOAT_LANES;
}

size_t ft_cpu_attention_f32_scratch(size_t head_size, const ft_limits *limits)
{
    size_t width = ft_round_up(head_size, FT_FLOAT_LANES), keys = key_stride(limits->tokens);
    size_t values = width == head_size ? 0 : limits->tokens;
    size_t floats = (head_size + FT_QUERY_BLOCK) * keys + (values + FT_QUERY_BLOCK) * width;
    return (size_t) limits->threads * (floats * sizeof(float) + 64);
}

/* Sequences of a batch are no longer than the limit that the scratch was sized for. */
static block_scratch thread_scratch(const ft_args *args, int thread, size_t head_size)
{
    block_scratch s = { .keys = ft_thread_scratch(args, thread),
                        .key_stride = key_stride(args->limits->tokens),
                        .width = ft_round_up(head_size, FT_FLOAT_LANES) };
    s.scores = s.keys + head_size * s.key_stride;
    s.context = s.scores + FT_QUERY_BLOCK * s.key_stride;
    s.values = s.context + FT_QUERY_BLOCK * s.width;
    return s;
}

static float *operand(const ft_args *args, int i, size_t row, const ft_query_block *b)
{
    return ft_row_f32(&args->in[i], row) + b->col;
}

/* y [rows, cols] = p [rows, keys] . v [keys, cols]; cols: a multiple of FT_FLOAT_LANES. */
static void multiply(const ft_float_kernels *kernels, ft_float_weighted_sum m, size_t rows)
{
    for (size_t i = 0; i < rows;
         i += m.rows, m.p += m.rows * m.p_stride, m.y += m.rows * m.y_stride) {
        m.rows = ft_min_size(kernels->rows, rows - i);
        for (size_t row = 0; row < m.rows; row++)
            memset(m.y + row * m.y_stride, 0, m.cols * sizeof *m.y);
        kernels->weighted_sum(&m);
    }
}

/* Scores against all keys; those of the padding are zero. */
static void compute_scores(const ft_args *args, const ft_query_block *b, const block_scratch *s)
{
    const ft_float_kernels *kernels = ft_float_kernels_for(args->isa);
    size_t keys = ft_round_up(b->length, FT_FLOAT_LANES);
    kernels->transpose(s->keys, keys, operand(args, 1, b->first, b), args->in[1].cols, b->length,
                       b->head_size);
    multiply(kernels,
             (ft_float_weighted_sum){ .p = operand(args, 0, b->first + b->query, b),
                                      .p_stride = args->in[0].cols,
                                      .v = s->keys,
                                      .v_stride = keys,
                                      .v_dtype = FT_F32,
                                      .keys = b->head_size,
                                      .cols = keys,
                                      .y = s->scores,
                                      .y_stride = s->key_stride },
             b->rows);
}

static void compute_probabilities(const ft_args *args, const ft_query_block *b,
                                  const block_scratch *s)
{
    for (size_t i = 0; i < b->rows; i++) {
        float *scores = s->scores + i * s->key_stride;
        args->rows->softmax(scores, args->op->attr.softmax_scale, b->length);
        if (args->counts != NULL)
            ft_cpu_counts_add(args->counts, scores, b->length);
    }
}

/* The values of the head: in place, or padded. */
static const float *values_of(const ft_args *args, const ft_query_block *b, const block_scratch *s,
                              size_t *stride)
{
    const float *values = operand(args, 2, b->first, b);
    *stride = args->in[2].cols;
    if (s->width == b->head_size)
        return values;
    for (size_t i = 0; i < b->length; i++) {
        float *to = s->values + i * s->width;
        memcpy(to, values + i * *stride, b->head_size * sizeof *to);
        memset(to + b->head_size, 0, (s->width - b->head_size) * sizeof *to);
    }
    *stride = s->width;
    return s->values;
}

static void compute_context(const ft_args *args, const ft_query_block *b, const block_scratch *s)
{
    size_t stride;
    const float *values = values_of(args, b, s, &stride);
    multiply(ft_float_kernels_for(args->isa),
             (ft_float_weighted_sum){ .p = s->scores,
                                      .p_stride = s->key_stride,
                                      .v = values,
                                      .v_stride = stride,
                                      .v_dtype = FT_F32,
                                      .keys = b->length,
                                      .cols = s->width,
                                      .y = s->context,
                                      .y_stride = s->width },
             b->rows);
    for (size_t i = 0; i < b->rows; i++)
        memcpy(ft_row_f32(&args->out, b->first + b->query + i) + b->col, s->context + i * s->width,
               b->head_size * sizeof(float));
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
        compute_scores(args, &b, &scratch);
        compute_probabilities(args, &b, &scratch);
        compute_context(args, &b, &scratch);
    }
}

void ft_cpu_attention_f32(const ft_args *args)
{
    size_t blocks = ft_cpu_query_blocks(args);
    ft_parallel_for_dynamic(ft_cpu_attention_team(args, blocks, FT_TEAM_MACS_FLOAT), blocks,
                            attend_blocks, args);
}
