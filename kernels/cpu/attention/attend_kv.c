/*
 * attend_kv.c - attention over what the cache holds, which is causal, or the memory, which is not.
 *
 * A work item is a head of keys and values and a block of queries: those of some neighbouring
 * tokens of a sequence, each with all the heads that share these keys.  So a page of the cache is
 * read once for many queries, and with one token a sequence once for a group of heads.  Scores of
 * the whole context wait in scratch; the softmax of a row is then the one of rows.h.
 *
 * A row's result depends on its own query and on the keys before it alone: scores are products of
 * the order that f32.h describes, the softmax begins with the first key that the row sees, and
 * values are added in the order of their positions.  Neither its neighbours in the run nor the
 * cutting of a prompt into chunks change a bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"
#include "kernels/cpu/gemm/f32/f32.h"
#include "runtime/mem.h"

#include <string.h>

enum { BLOCK_ROWS = 24 }; /* queries of an item, as far as a group of heads is not more */

/* What an operation is about. */
typedef struct shape {
    size_t heads, kv_heads, group; /* group: heads that share keys */
    size_t size, width;            /* of a head; in scratch, a multiple of FT_FLOAT_LANES */
    size_t tokens, rows;           /* of a block: tokens, and queries */
    size_t window;                 /* 0: none */
} shape;

static shape shape_of(const ft_attr *attr, size_t cols)
{
    shape s = { .heads = (size_t) attr->heads, .kv_heads = (size_t) attr->kv_heads };
    s.group = s.heads / s.kv_heads;
    s.size = cols / s.heads;
    s.width = ft_round_up(s.size, FT_FLOAT_LANES);
    s.tokens = s.group < BLOCK_ROWS ? BLOCK_ROWS / s.group : 1;
    s.rows = s.tokens * s.group;
    s.window = (size_t) attr->window;
    return s;
}

/* Of one thread; a row of scores begins with a page. */
typedef struct desk {
    float *query, *result; /* [rows, width] */
    float *page;           /* [FT_PAGE, width]: one that cannot be used as it lies */
    float *score;          /* [rows, score_stride] */
    size_t score_stride;
} desk;

static size_t score_stride(const ft_limits *limits)
{
    size_t most = limits->context > limits->memory ? limits->context : limits->memory;
    return ft_round_up(most, FT_PAGE) + FT_FLOAT_LANES; /* no power of two */
}

static size_t desk_floats(const shape *s, const ft_limits *limits)
{
    return (2 * s->rows + FT_PAGE) * s->width + s->rows * score_stride(limits);
}

size_t ft_cpu_attend_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    shape s = shape_of(&op->attr, (size_t) plan->value[op->in[0]].cols);
    return (size_t) limits->threads *
           (ft_round_up(desk_floats(&s, limits) * sizeof(float), 64) + 64);
}

static desk desk_of(const ft_args *args, const shape *s, int thread)
{
    float *own = ft_thread_scratch(args, thread);
    desk d = { .query = own, .score_stride = score_stride(args->limits) };
    d.result = d.query + s->rows * s->width;
    d.page = d.result + s->rows * s->width;
    d.score = d.page + FT_PAGE * s->width;
    return d;
}

/*
 * A block of queries of one sequence against one head of keys.  A key lies at its position in
 * `pages`; where beams share a text, in the pages of the lane that it came from, which are
 * `most_pages` numbers after those of the lane before.
 */
typedef struct item {
    const ft_args *args;
    const shape *s;
    const desk *d;
    const ft_float_kernels *kernels;
    const int32_t *pages;
    const int32_t *origin; /* [context]: lanes; NULL: there are none */
    size_t kv_head;
    size_t row, rows;       /* its first token's row in the run; queries */
    size_t position, first; /* of that token; of the page that scores begin with */
    bool memory;            /* every query sees all keys up to `position` */
} item;

/* Where the query of a row of the block stands, and the first key that it sees. */
static size_t last_key(const item *it, size_t row)
{
    return it->memory ? it->position : it->position + row / it->s->group;
}

static size_t first_key(const item *it, size_t row)
{
    size_t last = last_key(it, row), window = it->s->window;
    return window > 0 && last >= window ? last + 1 - window : 0;
}

/* The part of a row of queries or results that a row of the block is. */
static void *part(const item *it, const ft_view *view, size_t row)
{
    size_t head = it->kv_head * it->s->group + row % it->s->group;
    size_t at = (it->row + row / it->s->group) * view->cols + head * it->s->size;
    return (char *) view->data + at * ft_dtype_size(view->dtype);
}

/* ---- The cache ---------------------------------------------------------------------------- */

/* A page of keys or values of one head. */
typedef struct page {
    const void *data; /* [FT_PAGE, stride] */
    size_t stride;
    ft_dtype dtype;
} page;

/* Row of the cache where the key at `position` lies. */
static size_t place_of(const item *it, size_t position)
{
    const int32_t *pages = it->pages;
    if (it->origin != NULL)
        pages += (size_t) it->origin[position] * it->args->batch->most_pages;
    return ft_cache_find(pages, position, it->kv_head, it->s->kv_heads);
}

/* How many of `tokens` tokens from `position` on lie one behind the other: those of one lane do. */
static size_t run_at(const item *it, size_t position, size_t tokens)
{
    size_t run = it->origin == NULL ? tokens : 1;
    while (run < tokens && it->origin[position + run] == it->origin[position])
        run++;
    return run;
}

/* Tokens that lie one behind the other from row `place` of the cache on, as floats. */
static void make_floats(const item *it, int slot, int scale_slot, size_t place, size_t tokens,
                        float *to)
{
    const ft_view *cache = &it->args->state[slot];
    const ft_rows_isa *rows = it->args->rows;
    size_t size = it->s->size, width = it->s->width, bytes = size * ft_dtype_size(cache->dtype);
    const char *from = (const char *) cache->data + place * bytes;
    for (size_t i = 0; i < tokens; i++, from += bytes, to += width) {
        if (cache->dtype == FT_I8)
            rows->dequantize_i8(to, (const int8_t *) from,
                                ft_row_f32(&it->args->state[scale_slot], 0)[place + i], size);
        else
            rows->to_float(to, from, cache->dtype, size);
        memset(to + size, 0, (width - size) * sizeof *to);
    }
}

/* The first `tokens` of the page at `position`: as they lie, or gathered in scratch; codes, and
 * heads that are no whole number of lanes, as floats. */
static page page_at(const item *it, int slot, int scale_slot, size_t position, size_t tokens)
{
    const ft_view *cache = &it->args->state[slot];
    size_t size = it->s->size, width = it->s->width, bytes = size * ft_dtype_size(cache->dtype);
    const char *data = cache->data;
    bool usable = cache->dtype != FT_I8 && size == width;
    for (size_t i = 0, run; i < tokens; i += run) {
        size_t place = place_of(it, position + i);
        run = run_at(it, position + i, tokens - i);
        if (usable && run == tokens)
            return (page){ data + place * bytes, size, cache->dtype };
        if (usable)
            memcpy((char *) it->d->page + i * bytes, data + place * bytes, run * bytes);
        else
            make_floats(it, slot, scale_slot, place, run, it->d->page + i * width);
    }
    return (page){ it->d->page, width, usable ? cache->dtype : FT_F32 };
}

/* ---- One item ----------------------------------------------------------------------------- */

/* Scores of all queries against the keys at `position` .. + `tokens` - 1, as far as they see them.
 */
static void score_page(const item *it, size_t position, size_t tokens)
{
    page keys = page_at(it, FT_STATE_KEYS, FT_STATE_KEY_SCALES, position, tokens);
    size_t rows = it->kernels->rows, width = it->s->width;
    for (size_t i = 0; i < it->rows; i += rows) {
        size_t there = ft_min_size(rows, it->rows - i), seen = last_key(it, i + there - 1) + 1;
        for (size_t k = 0; k < width && seen > position; k += FT_FLOAT_PIECE)
            it->kernels->multiply(&(ft_float_tile){
                .x = it->d->query + i * width + k,
                .x_stride = width,
                .w = (const char *) keys.data + k * ft_dtype_size(keys.dtype),
                .w_stride = keys.stride,
                .w_dtype = keys.dtype,
                .adds = k > 0,
                .rows = there,
                .cols = ft_min_size(tokens, seen - position),
                .k = ft_min_size(FT_FLOAT_PIECE, width - k),
                .sums = it->d->score + i * it->d->score_stride + position - it->first,
                .sums_stride = it->d->score_stride,
            });
    }
}

/* Rows i .. i + rows - 1 of the block take in the values of keys first .. end - 1 of a page. */
static void mix_keys(const item *it, const page *values, size_t position, size_t i, size_t rows,
                     size_t first, size_t end)
{
    if (first >= end)
        return;
    it->kernels->mix(&(ft_float_mix){
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

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/*
 * All queries and the values of a page.  Keys that all rows of a tile see are taken in together;
 * before and behind them, each row has its own: what it does not see may be anything.
 */
static void mix_page(const item *it, size_t position, size_t tokens)
{
    page values = page_at(it, FT_STATE_VALUES, FT_STATE_VALUE_SCALES, position, tokens);
    for (size_t i = 0; i < it->rows; i += it->kernels->rows) {
        size_t rows = ft_min_size(it->kernels->rows, it->rows - i), end = position + tokens;
        size_t common = larger(first_key(it, i + rows - 1), position);
        size_t common_end = ft_min_size(last_key(it, i) + 1, end);
        if (common >= common_end) /* there are none */
            common = common_end = end;
        for (size_t row = i; row < i + rows; row++)
            mix_keys(it, &values, position, row, 1, larger(first_key(it, row), position),
                     ft_min_size(common, last_key(it, row) + 1));
        mix_keys(it, &values, position, i, rows, common, common_end);
        for (size_t row = i; row < i + rows; row++)
            mix_keys(it, &values, position, row, 1, common_end,
                     ft_min_size(end, last_key(it, row) + 1));
    }
}

static void load_queries(const item *it)
{
    const ft_view *q = &it->args->in[0];
    for (size_t row = 0; row < it->rows; row++) {
        float *to = it->d->query + row * it->s->width;
        it->args->rows->to_float(to, part(it, q, row), q->dtype, it->s->size);
        memset(to + it->s->size, 0, (it->s->width - it->s->size) * sizeof *to);
    }
}

static void attend(item *it)
{
    const ft_args *args = it->args;
    size_t end = last_key(it, it->rows - 1) + 1;
    it->first = first_key(it, 0) / FT_PAGE * FT_PAGE;
    load_queries(it);
    for (size_t at = it->first; at < end; at += FT_PAGE)
        score_page(it, at, ft_min_size(FT_PAGE, end - at));
    for (size_t row = 0; row < it->rows; row++) {
        size_t first = first_key(it, row);
        args->rows->softmax(it->d->score + row * it->d->score_stride + first - it->first,
                            args->op->attr.softmax_scale, last_key(it, row) + 1 - first);
    }
    memset(it->d->result, 0, it->rows * it->s->width * sizeof *it->d->result);
    for (size_t at = it->first; at < end; at += FT_PAGE)
        mix_page(it, at, ft_min_size(FT_PAGE, end - at));
    for (size_t row = 0; row < it->rows; row++)
        args->rows->from_float(part(it, &args->out, row), it->d->result + row * it->s->width,
                               args->out.dtype, it->s->size);
}

static void see_memory(item *it, size_t sequence)
{
    const ft_batch *batch = it->args->batch;
    it->memory = true;
    it->pages = batch->memory_pages + sequence * batch->most_memory_pages;
    it->position = (size_t) batch->memory[sequence] - 1;
}

/* Of a beam, the pages are those of its first lane. */
static void see_cache(item *it, size_t sequence, size_t token)
{
    const ft_batch *batch = it->args->batch;
    size_t first = sequence;
    if (batch->lanes > 1) {
        size_t seat = (size_t) batch->seat[sequence];
        const int32_t *origins = it->args->state[FT_STATE_ORIGIN].data;
        it->origin = origins + seat * it->args->limits->context;
        first = sequence - sequence % batch->lanes;
    }
    it->pages = batch->pages + first * batch->most_pages;
    it->position = (size_t) batch->past[sequence] + token;
}

/*
 * Everything of one run.  Its texts are its sequences; but lanes of a beam have one source, so that
 * for the memory all their tokens are those of one text.
 */
typedef struct job {
    const ft_args *args;
    shape s;
    size_t texts, lanes; /* lanes: sequences of a text */
    size_t blocks;       /* of the longest text, or more */
} job;

static job job_of(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    job j = { .args = args, .s = shape_of(&args->op->attr, args->in[0].cols), .lanes = 1 };
    if (args->op->attr.memory && batch->lanes > 1)
        j.lanes = batch->lanes;
    j.texts = batch->sequences / j.lanes;
    j.blocks = (batch->longest * j.lanes + j.s.tokens - 1) / j.s.tokens;
    return j;
}

/* Item `index`; those of late tokens, which have most to do, come first. */
static void attend_item(const job *j, const desk *d, size_t index)
{
    const ft_args *args = j->args;
    const shape *s = &j->s;
    size_t sequence = index / s->kv_heads % j->texts * j->lanes;
    size_t block = j->blocks - 1 - index / s->kv_heads / j->texts;
    size_t start = (size_t) args->batch->start[sequence], token = block * s->tokens;
    size_t length = (size_t) args->batch->start[sequence + j->lanes] - start;
    if (token >= length)
        return;
    item it = { .args = args,
                .s = s,
                .d = d,
                .kernels = ft_float_kernels_of(args->isa),
                .kv_head = index % s->kv_heads,
                .row = start + token,
                .rows = ft_min_size(s->tokens, length - token) * s->group };
    if (args->op->attr.memory)
        see_memory(&it, sequence);
    else
        see_cache(&it, sequence, token);
    attend(&it);
}

static void attend_items(const void *job_, int thread, size_t first, size_t end)
{
    const job *j = job_;
    desk d = desk_of(j->args, &j->s, thread);
    for (size_t i = first; i < end; i++)
        attend_item(j, &d, i);
}

/* A key costs a query two products as long as a head. */
static double work_of(const job *j)
{
    const ft_batch *batch = j->args->batch;
    double keys = 0.0;
    for (size_t i = 0; i < batch->sequences; i++) {
        int32_t length = batch->start[i + 1] - batch->start[i];
        int32_t seen = j->args->op->attr.memory ? batch->memory[i] : batch->past[i] + length;
        keys += (double) length * (double) seen;
    }
    return keys * 2.0 * (double) j->args->in[0].cols / FT_TEAM_PRODUCTS_FLOAT;
}

void ft_cpu_attend(const ft_args *args)
{
    job j = job_of(args);
    size_t items = j.texts * j.s.kv_heads * j.blocks;
    ft_team_deal(ft_team_size(args->threads, items, work_of(&j)), items, attend_items, &j);
}
