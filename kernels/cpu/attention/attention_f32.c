/*
 * attention_f32.c - attention over float values, with observation for calibration.
 *
 * For each sequence, head and block of queries: scores = q . k^T, softmax by rows, context = p . v.
 * Both products are weighted sums of f32.h: a score is one chain of fmaf over the columns of the
 * head, an element of the context one over the keys. So neither depends on the instruction set, the
 * number of threads or the batch.
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

enum { QUERIES = 64 };

/* One work item. */
typedef struct task {
    size_t first, length; /* rows of the sequence */
    size_t query, rows;   /* first row and rows of this block of queries, relative to `first` */
    size_t col, head_size;
} task;

/* Scratch of one thread; head sizes are rounded up to a multiple of FT_FLOAT_LANES. */
typedef struct block_scratch {
    float *keys;    /* [head_size, key_stride], transposed */
    float *values;  /* [tokens, width]: heads that are no such multiple, padded with zeros */
    float *scores;  /* [QUERIES, key_stride], later the probabilities */
    float *context; /* [QUERIES, width] */
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
    size_t floats = (head_size + QUERIES) * keys + (values + QUERIES) * width;
    return (size_t) limits->threads * (floats * sizeof(float) + 64);
}

/* Sequences of a batch are no longer than the limit that the scratch was sized for. */
static block_scratch thread_scratch(const ft_args *args, int thread, size_t head_size)
{
    block_scratch s = { .keys = ft_thread_scratch(args, thread),
                        .key_stride = key_stride(args->limits->tokens),
                        .width = ft_round_up(head_size, FT_FLOAT_LANES) };
    s.scores = s.keys + head_size * s.key_stride;
    s.context = s.scores + QUERIES * s.key_stride;
    s.values = s.context + QUERIES * s.width;
    return s;
}

static float *operand(const ft_args *args, int i, size_t row, const task *t)
{
    return ft_row_f32(&args->in[i], row) + t->col;
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
static void compute_scores(const ft_args *args, const task *t, const block_scratch *s)
{
    const ft_float_kernels *kernels = ft_float_kernels_for(args->isa);
    size_t keys = ft_round_up(t->length, FT_FLOAT_LANES);
    kernels->transpose(s->keys, keys, operand(args, 1, t->first, t), args->in[1].cols, t->length,
                       t->head_size);
    multiply(kernels,
             (ft_float_weighted_sum){ .p = operand(args, 0, t->first + t->query, t),
                                      .p_stride = args->in[0].cols,
                                      .v = s->keys,
                                      .v_stride = keys,
                                      .v_dtype = FT_F32,
                                      .keys = t->head_size,
                                      .cols = keys,
                                      .y = s->scores,
                                      .y_stride = s->key_stride },
             t->rows);
}

static void compute_probabilities(const ft_args *args, const task *t, const block_scratch *s)
{
    for (size_t i = 0; i < t->rows; i++) {
        float *scores = s->scores + i * s->key_stride;
        args->rows->softmax(scores, args->op->attr.softmax_scale, t->length);
        if (args->counts != NULL)
            ft_cpu_counts_add(args->counts, scores, t->length);
    }
}

/* The values of the head: in place, or padded. */
static const float *values_of(const ft_args *args, const task *t, const block_scratch *s,
                              size_t *stride)
{
    const float *values = operand(args, 2, t->first, t);
    *stride = args->in[2].cols;
    if (s->width == t->head_size)
        return values;
    for (size_t i = 0; i < t->length; i++) {
        float *to = s->values + i * s->width;
        memcpy(to, values + i * *stride, t->head_size * sizeof *to);
        memset(to + t->head_size, 0, (s->width - t->head_size) * sizeof *to);
    }
    *stride = s->width;
    return s->values;
}

static void compute_context(const ft_args *args, const task *t, const block_scratch *s)
{
    size_t stride;
    const float *values = values_of(args, t, s, &stride);
    multiply(ft_float_kernels_for(args->isa),
             (ft_float_weighted_sum){ .p = s->scores,
                                      .p_stride = s->key_stride,
                                      .v = values,
                                      .v_stride = stride,
                                      .v_dtype = FT_F32,
                                      .keys = t->length,
                                      .cols = s->width,
                                      .y = s->context,
                                      .y_stride = s->width },
             t->rows);
    for (size_t i = 0; i < t->rows; i++)
        memcpy(ft_row_f32(&args->out, t->first + t->query + i) + t->col, s->context + i * s->width,
               t->head_size * sizeof(float));
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
        compute_scores(args, &t, &scratch);
        compute_probabilities(args, &t, &scratch);
        compute_context(args, &t, &scratch);
    }
}

void ft_cpu_attention_f32(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    size_t chunks = batch->sequences * (size_t) args->op->attr.heads * blocks_per_sequence(batch);
    ft_parallel_for_dynamic(ft_cpu_attention_team(args, chunks, FT_TEAM_MACS_FLOAT), chunks,
                            attend_blocks, args);
}
