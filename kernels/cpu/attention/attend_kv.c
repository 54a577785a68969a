/*
 * attend_kv.c - attention over the paged KV cache, which is causal, or over the cross-attention KV,
 * which is not.
 *
 * A work item is one KV head and a block of queries: those of some neighbouring tokens of a
 * sequence, each with all the query heads that share the KV head. So a page of the cache is read
 * once for many queries, and in a decode step once for a group of heads. Scores of the entire
 * context are kept in scratch; the softmax of a row is the one of rows.h.
 *
 * The result of a row depends only on its own query and on the keys it attends to: scores are dot
 * products in the order that f32.h defines, the softmax starts at the row's first visible key, and
 * values are accumulated in order of position. Neither the other rows of the batch nor the split of
 * a prompt into prefill chunks changes a bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"
#include "kernels/cpu/gemm/f32/f32.h"
#include "runtime/mem.h"

#include <string.h>

enum { MAX_QUERIES = 24 }; /* queries per work item, unless a group of heads has more */

/* The problem shape. */
typedef struct shape {
    size_t heads, kv_heads, heads_per_kv; /* group: query heads per KV head */
    size_t head_size, width; /* head size; in scratch, rounded up to a multiple of FT_FLOAT_LANES */
    size_t tokens, rows;     /* per block: tokens, and queries */
    size_t window;           /* sliding window; 0: none */
} shape;

static shape shape_of(const ft_attr *attr, size_t cols)
{
    shape s = { .heads = (size_t) attr->heads, .kv_heads = (size_t) attr->kv_heads };
    s.heads_per_kv = s.heads / s.kv_heads;
    s.head_size = cols / s.heads;
    s.width = ft_round_up(s.head_size, FT_FLOAT_LANES);
    s.tokens = s.heads_per_kv < MAX_QUERIES ? MAX_QUERIES / s.heads_per_kv : 1;
    s.rows = s.tokens * s.heads_per_kv;
    s.window = (size_t) attr->window;
    return s;
}

/* Scratch of one thread; a row of scores starts at a page boundary. */
typedef struct scratch {
    float *query, *result; /* [rows, width] */
    float *page;           /* [FT_PAGE_TOKENS, width]: a page that cannot be used in place */
    float *score;          /* [rows, score_stride] */
    size_t score_stride;
} scratch;

static size_t score_stride(const ft_limits *limits)
{
    size_t max_tokens = limits->context > limits->cross_kv ? limits->context : limits->cross_kv;
    return ft_round_up(max_tokens, FT_PAGE_TOKENS) + FT_FLOAT_LANES; /* no power of two */
}

static size_t scratch_floats(const shape *s, const ft_limits *limits)
{
    return (2 * s->rows + FT_PAGE_TOKENS) * s->width + s->rows * score_stride(limits);
}

ft_workspace ft_cpu_attend_kv_workspace(const ft_plan *plan, const ft_op *op,
                                        const ft_limits *limits)
{
    shape s = shape_of(&op->attr, (size_t) plan->value[op->in[0]].cols);
    size_t bytes = ft_round_up(scratch_floats(&s, limits) * sizeof(float), 64) + 64;
    return (ft_workspace){ .scratch = (size_t) limits->threads * bytes };
}

static scratch thread_scratch(const ft_args *args, const shape *s, int thread)
{
    float *base = ft_thread_scratch(args, thread);
    scratch d = { .query = base, .score_stride = score_stride(args->limits) };
    d.result = d.query + s->rows * s->width;
    d.page = d.result + s->rows * s->width;
    d.score = d.page + FT_PAGE_TOKENS * s->width;
    return d;
}

/*
 * A block of queries of one sequence against one KV head. A key is found by its position in
 * `pages`; in beam search, in the page table of the beam that it was written by. Page tables of
 * neighbouring beams are `max_pages` entries apart.
 */
typedef struct item {
    const ft_args *args;
    const shape *s;
    const scratch *d;
    const ft_float_kernels *kernels;
    const int32_t *pages;
    const int32_t *cache_indirection; /* [context]: beam of each position, or NULL */
    size_t kv_head;
    size_t row, rows;       /* batch row of its first token; number of queries */
    size_t position, first; /* of that token; start of the page of the first score */
    bool cross_kv;          /* cross-attention: every query attends to all keys up to `position` */
} item;

/* The last and the first key that a row of the block attends to. */
static size_t last_key(const item *it, size_t row)
{
    return it->cross_kv ? it->position : it->position + row / it->s->heads_per_kv;
}

static size_t first_key(const item *it, size_t row)
{
    size_t last = last_key(it, row), window = it->s->window;
    return window > 0 && last >= window ? last + 1 - window : 0;
}

/* The slice of a query or output row that belongs to a row of the block. */
static void *row_slice(const item *it, const ft_view *view, size_t row)
{
    size_t head = it->kv_head * it->s->heads_per_kv + row % it->s->heads_per_kv;
    size_t at = (it->row + row / it->s->heads_per_kv) * view->cols + head * it->s->head_size;
    return (char *) view->data + at * ft_dtype_size(view->dtype);
}

/* ---- The KV cache ------------------------------------------------------------------------- */

/* One page of the keys or values of one head. */
typedef struct page {
    const void *data; /* [FT_PAGE_TOKENS, stride] */
    size_t stride;
    ft_dtype dtype;
} page;

/* Cache row of the key at `position`. */
static size_t cache_row_of(const item *it, size_t position)
{
    const int32_t *pages = it->pages;
    if (it->cache_indirection != NULL)
        pages += (size_t) it->cache_indirection[position] * it->args->batch->max_pages;
    return ft_cache_token_row(pages, position, it->kv_head, it->s->kv_heads);
}

/*
 * How many of `tokens` tokens from `position` on are contiguous: those written by the same beam.
 */
static size_t contiguous_tokens(const item *it, size_t position, size_t tokens)
{
    size_t n_contiguous = it->cache_indirection == NULL ? tokens : 1;
    while (n_contiguous < tokens &&
           it->cache_indirection[position + n_contiguous] == it->cache_indirection[position])
        n_contiguous++;
    return n_contiguous;
}

/* Converts contiguous tokens, from cache row `cache_row` on, to floats. */
static void load_as_float(const item *it, int slot, int scale_slot, size_t cache_row, size_t tokens,
                          float *to)
{
    const ft_view *cache = &it->args->state[slot];
    const ft_row_kernels *rows = it->args->rows;
    size_t head_size = it->s->head_size, width = it->s->width,
           bytes = head_size * ft_dtype_size(cache->dtype);
    const char *from = (const char *) cache->data + cache_row * bytes;
    for (size_t i = 0; i < tokens; i++, from += bytes, to += width) {
        if (cache->dtype == FT_I8)
            rows->dequantize_i8(to, (const int8_t *) from,
                                ft_row_f32(&it->args->state[scale_slot], 0)[cache_row + i],
                                head_size);
        else
            rows->to_float(to, from, cache->dtype, head_size);
        memset(to + head_size, 0, (width - head_size) * sizeof *to);
    }
}

/*
 * The first `tokens` of the page at `position`: in place, or gathered into scratch; int8 values,
 * and heads that are not a multiple of the vector width, as floats.
 */
static page page_at(const item *it, int slot, int scale_slot, size_t position, size_t tokens)
{
    const ft_view *cache = &it->args->state[slot];
    size_t head_size = it->s->head_size, width = it->s->width,
           bytes = head_size * ft_dtype_size(cache->dtype);
    const char *data = cache->data;
    bool in_place = cache->dtype != FT_I8 && head_size == width;
    for (size_t i = 0, n_contiguous; i < tokens; i += n_contiguous) {
        size_t cache_row = cache_row_of(it, position + i);
        n_contiguous = contiguous_tokens(it, position + i, tokens - i);
        if (in_place && n_contiguous == tokens)
            return (page){ data + cache_row * bytes, head_size, cache->dtype };
        if (in_place)
            memcpy((char *) it->d->page + i * bytes, data + cache_row * bytes,
                   n_contiguous * bytes);
        else
            load_as_float(it, slot, scale_slot, cache_row, n_contiguous, it->d->page + i * width);
    }
    return (page){ it->d->page, width, in_place ? cache->dtype : FT_F32 };
}

/* ---- One work item ------------------------------------------------------------------------ */

/*
 * Scores of all queries against keys `position` .. + `tokens` - 1, as far as they are visible.
 */
static void score_page(const item *it, size_t position, size_t tokens)
{
    page keys = page_at(it, FT_STATE_KEYS, FT_STATE_KEY_SCALES, position, tokens);
    size_t rows = it->kernels->rows, width = it->s->width;
    for (size_t i = 0; i < it->rows; i += rows) {
        size_t n_rows = ft_min_size(rows, it->rows - i),
               n_visible = last_key(it, i + n_rows - 1) + 1;
        for (size_t k = 0; k < width && n_visible > position; k += FT_FLOAT_K_TILE)
            it->kernels->gemm_tile(&(ft_float_tile){
                .x = it->d->query + i * width + k,
                .x_stride = width,
                .w = (const char *) keys.data + k * ft_dtype_size(keys.dtype),
                .w_stride = keys.stride,
                .w_dtype = keys.dtype,
                .accumulate = k > 0,
                .rows = n_rows,
                .cols = ft_min_size(tokens, n_visible - position),
                .k = ft_min_size(FT_FLOAT_K_TILE, width - k),
                .acc = it->d->score + i * it->d->score_stride + position - it->first,
                .acc_stride = it->d->score_stride,
            });
    }
}

/* Accumulates the values of keys first .. end - 1 of a page into rows i .. i + rows - 1. */
static void accumulate_keys(const item *it, const page *values, size_t position, size_t i,
                            size_t rows, size_t first, size_t end)
{
    if (first >= end)
        return;
    it->kernels->weighted_sum(&(ft_float_weighted_sum){
        .p = it->d->score + i * it->d->score_stride + first - it->first,
        .p_stride = it->d->score_stride,
        .v = (const char *) values->data +
             (first - position) * values->stride * ft_dtype_size(values->dtype),
        .v_stride = values->stride,
        .v_dtype = values->dtype,
        .rows = rows,
        .keys = end - first,
        .cols = it->s->width,
        .y = it->d->result + i * it->s->width,
        .y_stride = it->s->width,
    });
}

/*
 * Accumulates the values of a page for all queries. Keys that are visible to all rows of a tile are
 * processed together, the ones before and after them row by row: keys that a row does not see may
 * hold anything, even NaN.
 */
static void accumulate_page(const item *it, size_t position, size_t tokens)
{
    page values = page_at(it, FT_STATE_VALUES, FT_STATE_VALUE_SCALES, position, tokens);
    for (size_t i = 0; i < it->rows; i += it->kernels->rows) {
        size_t rows = ft_min_size(it->kernels->rows, it->rows - i), end = position + tokens;
        size_t common_begin = ft_max_size(first_key(it, i + rows - 1), position);
        size_t common_end = ft_min_size(last_key(it, i) + 1, end);
        if (common_begin >= common_end) /* no common keys */
            common_begin = common_end = end;
        for (size_t row = i; row < i + rows; row++)
            accumulate_keys(it, &values, position, row, 1,
                            ft_max_size(first_key(it, row), position),
                            ft_min_size(common_begin, last_key(it, row) + 1));
        accumulate_keys(it, &values, position, i, rows, common_begin, common_end);
        for (size_t row = i; row < i + rows; row++)
            accumulate_keys(it, &values, position, row, 1, common_end,
                            ft_min_size(end, last_key(it, row) + 1));
    }
}

static void load_queries(const item *it)
{
    const ft_view *q = &it->args->in[0];
    for (size_t row = 0; row < it->rows; row++) {
        float *to = it->d->query + row * it->s->width;
        it->args->rows->to_float(to, row_slice(it, q, row), q->dtype, it->s->head_size);
        memset(to + it->s->head_size, 0, (it->s->width - it->s->head_size) * sizeof *to);
    }
}

static void attend(item *it)
{
    const ft_args *args = it->args;
    size_t end = last_key(it, it->rows - 1) + 1;
    it->first = first_key(it, 0) / FT_PAGE_TOKENS * FT_PAGE_TOKENS;
    load_queries(it);
    for (size_t at = it->first; at < end; at += FT_PAGE_TOKENS)
        score_page(it, at, ft_min_size(FT_PAGE_TOKENS, end - at));
    for (size_t row = 0; row < it->rows; row++) {
        size_t first = first_key(it, row);
        args->rows->softmax(it->d->score + row * it->d->score_stride + first - it->first,
                            args->op->attr.softmax_scale, last_key(it, row) + 1 - first);
    }
    memset(it->d->result, 0, it->rows * it->s->width * sizeof *it->d->result);
    for (size_t at = it->first; at < end; at += FT_PAGE_TOKENS)
        accumulate_page(it, at, ft_min_size(FT_PAGE_TOKENS, end - at));
    for (size_t row = 0; row < it->rows; row++)
        args->rows->from_float(row_slice(it, &args->out, row), it->d->result + row * it->s->width,
                               args->out.dtype, it->s->head_size);
}

static void use_cross_kv(item *it, size_t sequence)
{
    const ft_batch *batch = it->args->batch;
    it->cross_kv = true;
    it->pages = batch->cross_kv_pages + sequence * batch->max_cross_kv_pages;
    it->position = (size_t) batch->cross_kv[sequence] - 1;
}

/* For a beam, the page table is that of the first beam of its search. */
static void use_self_kv(item *it, size_t sequence, size_t token)
{
    const ft_batch *batch = it->args->batch;
    size_t first = sequence;
    if (batch->beam_width > 1) {
        size_t slot = (size_t) batch->slot[sequence];
        const int32_t *origins = it->args->state[FT_STATE_CACHE_INDIRECTION].data;
        it->cache_indirection = origins + slot * it->args->limits->context;
        first = sequence - sequence % batch->beam_width;
    }
    it->pages = batch->pages + first * batch->max_pages;
    it->position = (size_t) batch->n_past[sequence] + token;
}

/*
 * All work items of one call. A text is a sequence; but the beams of a search share one encoder
 * output, so in cross-attention their tokens form one text.
 */
typedef struct job {
    const ft_args *args;
    shape s;
    size_t kv_sequences, beam_width; /* lanes: sequences per text */
    size_t blocks;              /* of the longest text, or more */
} job;

static job job_of(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    job j = { .args = args, .s = shape_of(&args->op->attr, args->in[0].cols), .beam_width = 1 };
    if (args->op->attr.cross_kv && batch->beam_width > 1)
        j.beam_width = batch->beam_width;
    j.kv_sequences = batch->sequences / j.beam_width;
    j.blocks = (batch->longest * j.beam_width + j.s.tokens - 1) / j.s.tokens;
    return j;
}

/* Work item `index`; late tokens attend to the most keys and come first. */
static void attend_item(const job *j, const scratch *d, size_t index)
{
    const ft_args *args = j->args;
    const shape *s = &j->s;
    size_t sequence = index / s->kv_heads % j->kv_sequences * j->beam_width;
    size_t block = j->blocks - 1 - index / s->kv_heads / j->kv_sequences;
    size_t start = (size_t) args->batch->start[sequence], token = block * s->tokens;
    size_t length = (size_t) args->batch->start[sequence + j->beam_width] - start;
    if (token >= length)
        return;
    item it = { .args = args,
                .s = s,
                .d = d,
                .kernels = ft_float_kernels_for(args->isa),
                .kv_head = index % s->kv_heads,
                .row = start + token,
                .rows = ft_min_size(s->tokens, length - token) * s->heads_per_kv };
    if (args->op->attr.cross_kv)
        use_cross_kv(&it, sequence);
    else
        use_self_kv(&it, sequence, token);
    attend(&it);
}

static void attend_items(const void *job_arg, int thread, size_t first, size_t end)
{
    const job *j = job_arg;
    scratch d = thread_scratch(j->args, &j->s, thread);
    for (size_t i = first; i < end; i++)
        attend_item(j, &d, i);
}

/* A key costs a query two dot products of the head size. */
static double attention_work(const job *j)
{
    const ft_batch *batch = j->args->batch;
    double keys = 0.0;
    for (size_t i = 0; i < batch->sequences; i++) {
        int32_t length = batch->start[i + 1] - batch->start[i];
        int32_t n_visible =
            j->args->op->attr.cross_kv ? batch->cross_kv[i] : batch->n_past[i] + length;
        keys += (double) length * (double) n_visible;
    }
    return keys * 2.0 * (double) j->args->in[0].cols / FT_TEAM_MACS_FLOAT;
}

void ft_cpu_attend_kv(const ft_args *args)
{
    job j = job_of(args);
    size_t items = j.kv_sequences * j.s.kv_heads * j.blocks;
    ft_parallel_for_dynamic(ft_team_size(args->threads, items, attention_work(&j)), items,
                            attend_items, &j);
}
