/*
 * attention_i8.c - int8 self-attention built from the int8 GEMM kernels.
 *
 * A thread packs the keys and values of one head of one sequence, then processes a few queries at a
 * time through scores, softmax and context, so that no length x length matrix is ever stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/attention/attention_i8.h"

#include "kernels/cpu/gemm/int8/i8.h"
#include "kernels/threads/team.h"
#include "kernels/softmax.h"

#include <assert.h>
#include <string.h>

/* Sizes of the buffers in the scratch of one thread, each a multiple of 64 bytes. */
typedef struct buffer_sizes {
    size_t keys, values;
    size_t query_stride, score_stride, prob_stride, sum_stride; /* in bytes */
} buffer_sizes;

static buffer_sizes buffer_sizes_for(size_t length, size_t head_size)
{
    return (buffer_sizes){
        .keys = ft_i8_panel_bytes(length, head_size),
        .values = ft_i8_panel_bytes(head_size, length),
        .query_stride = ft_i8_stride(ft_round_up(head_size, 4)),
        .score_stride = ft_i8_stride(ft_round_up(length, FT_I8_PANEL) * sizeof(int32_t)),
        .prob_stride = ft_i8_stride(ft_round_up(length, FT_I8_PANEL)),
        .sum_stride = ft_i8_stride(ft_round_up(head_size, FT_I8_PANEL) * sizeof(int32_t)),
    };
}

static size_t thread_bytes(size_t length, size_t head_size)
{
    buffer_sizes p = buffer_sizes_for(length, head_size);
    return p.keys + p.values +
           FT_I8_TILE * (p.query_stride + p.score_stride + p.prob_stride + p.sum_stride);
}

size_t ft_attention_i8_scratch(size_t length, size_t head_size, int threads)
{
    enum { LIMIT = 1 << 30 };
    size_t bytes;
    if (length > LIMIT || head_size > LIMIT || threads > LIMIT ||
        !ft_checked_mul(thread_bytes(length, head_size), (size_t) threads, &bytes))
        return SIZE_MAX;
    return bytes;
}

/* One head of one sequence, processed by one thread. */
typedef struct head {
    const ft_attention_i8 *a;
    const ft_i8_kernels *kernels;
    size_t first, length; /* tokens */
    size_t col;           /* first column in q, k, v and y */
    buffer_sizes size;
    float step; /* ft_softmax_step() */
    char *keys, *values, *query_tile, *scores, *probs, *acc;
} head;

static head head_of(const ft_attention_i8 *a, size_t sequence, size_t index, char *scratch)
{
    size_t first = (size_t) a->starts[sequence];
    head h = {
        .a = a,
        .kernels = ft_i8_kernels_for(a->isa),
        .first = first,
        .length = (size_t) a->starts[sequence + 1] - first,
        .col = index * a->head_size,
        .step = ft_softmax_step(a->score_scale),
    };
    h.size = buffer_sizes_for(h.length, a->head_size);
    h.keys = scratch;
    h.values = h.keys + h.size.keys;
    h.query_tile = h.values + h.size.values;
    h.scores = h.query_tile + FT_I8_TILE * h.size.query_stride;
    h.probs = h.scores + FT_I8_TILE * h.size.score_stride;
    h.acc = h.probs + FT_I8_TILE * h.size.prob_stride;
    return h;
}

/*
 * Queries in place, or copied if the last group of four would read past the end of the matrix.
 */
static ft_i8_tile query_tile(const head *h, size_t first, size_t rows)
{
    const ft_attention_i8 *a = h->a;
    ft_i8_tile tile = {
        .x = a->q + (h->first + first) * a->q_stride + h->col,
        .x_stride = a->q_stride,
        .rows = rows,
        .k_quads = (a->head_size + 3) / 4,
        .prefetch = { .at = a->q }, /* nothing to prefetch */
    };
    if (a->head_size % 4 == 0)
        return tile;
    for (size_t row = 0; row < rows; row++) {
        char *to = h->query_tile + row * h->size.query_stride;
        memcpy(to, tile.x + row * tile.x_stride, a->head_size);
        memset(to + a->head_size, 0, 4 - a->head_size % 4);
    }
    tile.x = (const int8_t *) h->query_tile;
    tile.x_stride = h->size.query_stride;
    return tile;
}

static void score(const head *h, size_t first, size_t rows)
{
    int32_t acc_init[FT_I8_TILE];
    ft_i8_tile tile = query_tile(h, first, rows);
    tile.acc_init = acc_init;
    tile.out = (int32_t *) h->scores;
    tile.out_stride = h->size.score_stride / sizeof *tile.out;
    h->kernels->acc_init_rows(acc_init, tile.x, tile.x_stride, rows, tile.k_quads);
    h->kernels->gemm_tile(&tile, h->keys, h->length);
}

static void context_gemm(const head *h, size_t rows)
{
    int32_t acc_init[FT_I8_TILE];
    ft_i8_tile tile = {
        .x = (const int8_t *) h->probs,
        .x_stride = h->size.prob_stride,
        .rows = rows,
        .k_quads = (h->length + 3) / 4,
        .acc_init = acc_init,
        .out = (int32_t *) h->acc,
        .out_stride = h->size.sum_stride / sizeof *tile.out,
        .prefetch = { .at = (const int8_t *) h->probs }, /* nothing to prefetch */
    };
    h->kernels->acc_init_rows(acc_init, tile.x, tile.x_stride, rows, tile.k_quads);
    h->kernels->gemm_tile(&tile, h->values, h->a->head_size);
}

/* The output row of one query, from its accumulators and the sum of its quantized probabilities. */
static void epilogue(const head *h, size_t query, const int32_t *acc, float prob_sum)
{
    const ft_attention_i8 *a = h->a;
    ft_dtype dtype = a->out_inverse > 0.0f ? FT_I8 : FT_F32;
    float factor = ft_softmax_factor(a->value_scale, prob_sum);
    for (size_t col = 0; col < a->head_size; col += FT_I8_PANEL) {
        ft_i8_epilogue f = {
            .cols = ft_min_size(a->head_size - col, FT_I8_PANEL),
            .activation = FT_ACT_NONE,
            .y_dtype = dtype,
            .out_inverse = a->out_inverse,
            .y = (char *) a->y + (h->col + col) * ft_dtype_size(dtype),
            .y_stride = a->y_stride,
        };
        for (size_t i = 0; i < f.cols; i++)
            f.scale[i] = factor;
        h->kernels->epilogue(&f, acc + col, h->size.sum_stride / sizeof(int32_t), h->first + query,
                             1);
    }
}

/* Tiles first .. last - 1 of the `tiles` query tiles of a head. */
static void attend(const head *h, size_t first, size_t last, size_t tiles)
{
    const ft_attention_i8 *a = h->a;
    h->kernels->pack_rows(h->keys, a->k + h->first * a->k_stride + h->col, a->k_stride, h->length,
                          a->head_size);
    h->kernels->pack_cols(h->values, a->v + h->first * a->v_stride + h->col, a->v_stride,
                          a->head_size, h->length);
    for (size_t tile = first; tile < last; tile++) {
        size_t rows, query = ft_i8_partition(h->length, tile, tiles, &rows);
        float prob_sums[FT_I8_TILE];
        score(h, query, rows);
        h->kernels->softmax((int8_t *) h->probs, h->size.prob_stride, prob_sums,
                            (int32_t *) h->scores, h->size.score_stride / sizeof(int32_t), rows,
                            h->length, h->step);
        context_gemm(h, rows);
        for (size_t row = 0; row < rows; row++)
            epilogue(h, query + row, (int32_t *) (h->acc + row * h->size.sum_stride),
                     prob_sums[row]);
    }
}

static size_t tiles_of(size_t length)
{
    return (length + FT_I8_TILE - 1) / FT_I8_TILE;
}

static size_t length_of(const ft_attention_i8 *a, size_t sequence)
{
    return (size_t) (a->starts[sequence + 1] - a->starts[sequence]);
}

/* How many tiles of cost `each`, laid end to end from offset `at`, start before `border`. */
static size_t tiles_before(size_t limit, size_t at, size_t cost, size_t tiles)
{
    return limit <= at ? 0 : ft_min_size((limit - at + cost - 1) / cost, tiles);
}

/*
 * Divides the work by cost: the tiles of all heads of all sequences are laid end to end, each with
 * a cost equal to its number of keys, and a thread gets the tiles that start in its equal share of
 * the total. So threads finish together whatever the sequence lengths, and mostly pack a head only
 * once.
 */
static void run_part(const ft_attention_i8 *a, size_t thread, char *scratch)
{
    size_t total_cost = 0, longest = 0, at = 0, part_cost;
    for (size_t sequence = 0; sequence < a->sequences; sequence++) {
        size_t length = length_of(a, sequence);
        total_cost += a->heads * tiles_of(length) * length;
        longest = length > longest ? length : longest;
    }
    assert(a->scratch_bytes >= ft_attention_i8_scratch(longest, a->head_size, a->threads));
    size_t begin = ft_i8_partition(total_cost, thread, (size_t) a->threads, &part_cost);
    scratch += thread * thread_bytes(longest, a->head_size);
    for (size_t sequence = 0; sequence < a->sequences; sequence++) {
        size_t length = length_of(a, sequence), tiles = tiles_of(length);
        if (length == 0)
            continue;
        for (size_t index = 0; index < a->heads; index++, at += tiles * length) {
            size_t first = tiles_before(begin, at, length, tiles);
            size_t last = tiles_before(begin + part_cost, at, length, tiles);
            if (first < last) {
                head h = head_of(a, sequence, index, scratch);
                attend(&h, first, last, tiles);
            }
        }
    }
}

static void run_parts(const void *job, int thread, size_t first, size_t end)
{
    const ft_attention_i8 *a = job;
    (void) thread; /* one part per thread */
    for (size_t part = first; part < end; part++)
        run_part(a, part, a->scratch);
}

void ft_attention_i8_run(const ft_attention_i8 *a)
{
    ft_parallel_for(a->threads, (size_t) a->threads, run_parts, a);
}
