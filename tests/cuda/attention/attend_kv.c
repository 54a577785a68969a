/*
 * attend_kv.c - see attend_kv.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/attention/attend_kv.h"

#include "kernels/cuda/fused_kernels.h"
#include "kernels/half.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/tap/tap.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xff, ARENA = 96 << 20, GUARD = 256, COUNTERS = 1 << 16 };

rng numbers = { 20260611 };
ft_cuda_device_props props;

/* Device memory, allocated anew for each batch. */
static char *arena;
static size_t used;
static uint32_t *counters;

/* ---- Memory --------------------------------------------------------------------------------- */

/* Device memory that holds these bytes; NULL: poison. */
static void *place(const void *data, size_t bytes)
{
    char *at = arena + used;
    used += ft_round_up(bytes, GUARD) + GUARD;
    if (used > ARENA)
        bail_out("a batch takes more than %d bytes", ARENA);
    if (data != NULL)
        must(cudaMemcpy(at, data, bytes, cudaMemcpyHostToDevice), "upload");
    else
        must(cudaMemset(at, POISON, bytes + GUARD), "poison");
    return at;
}

void open_device(void)
{
    props = need_gpu();
    arena = device_memory(ARENA);
    counters = device_memory(COUNTERS * sizeof *counters);
    must(cudaMemset(counters, 0, COUNTERS * sizeof *counters), "cudaMemset");
}

/* ---- Numbers -------------------------------------------------------------------------------- */

double real_of(const void *data, ft_dtype dtype, size_t at)
{
    switch (dtype) {
    case FT_F16:
        return ft_float_from_f16(((const uint16_t *) data)[at]);
    case FT_BF16:
        return ft_float_from_bf16(((const uint16_t *) data)[at]);
    case FT_I8:
        return ((const int8_t *) data)[at];
    default:
        return ((const float *) data)[at];
    }
}

/* Rows of normal numbers, each with its own magnitude. */
static void *random_rows(size_t rows, size_t cols, ft_dtype dtype)
{
    void *data = must_have(rows * cols * ft_dtype_size(dtype));
    for (size_t row = 0; row < rows; row++) {
        double size = exp2(rng_uniform(&numbers, -4.0, 1.0));
        for (size_t i = row * cols; i < (row + 1) * cols; i++) {
            float x = (float) (size * rng_normal(&numbers));
            if (dtype == FT_F32)
                ((float *) data)[i] = x;
            else
                ((uint16_t *) data)[i] =
                    dtype == FT_F16 ? ft_f16_from_float(x) : ft_bf16_from_float(x);
        }
    }
    return data;
}

size_t world_cols(const world *w)
{
    return (size_t) w->s.heads * (size_t) w->s.head_size;
}

size_t world_kv_cols(const world *w)
{
    return (size_t) w->s.kv_heads * (size_t) w->s.head_size;
}

/* ---- Worlds --------------------------------------------------------------------------------- */

/* Assigns all pages but a few to the texts, in random order. */
static void deal_pages(world *w)
{
    size_t count = 3;
    for (int i = 0; i < w->texts; i++)
        count += ft_pages_for_tokens((size_t) w->length[i]);
    int32_t *deck = must_have(count * sizeof *deck);
    for (size_t i = 0; i < count; i++) {
        size_t j = rng_below(&numbers, (uint32_t) i + 1);
        deck[i] = deck[j];
        deck[j] = (int32_t) i;
    }
    w->pages = count;
    for (int i = 0; i < w->texts; i++)
        w->page[i] = must_have(w->max_pages * sizeof *w->page[i]);
    for (int i = 0; i < w->texts; i++)
        for (size_t page = 0; page < ft_pages_for_tokens((size_t) w->length[i]); page++)
            w->page[i][page] = deck[--count];
    for (int i = 0; w->of.cross_kv && w->of.beam_width > 0 && i < w->texts; i++)
        memcpy(w->page[i], w->page[i - i % w->of.beam_width], w->max_pages * sizeof *w->page[i]);
    free(deck);
}

static void make_cache(world *w)
{
    size_t rows = w->pages * FT_PAGE_TOKENS * (size_t) w->s.kv_heads;
    for (int i = 0; i < 4; i++) {
        w->bytes[i] = i < 2 ? rows * (size_t) w->s.head_size * ft_dtype_size(w->s.cache)
                            : rows * sizeof(float);
        must(cudaMalloc(&w->cache[i], w->bytes[i]), "cudaMalloc");
    }
}

/* The cached tokens of a beam belong to random beams of its search. */
static void deal_origins(world *w)
{
    size_t capacity = w->max_pages * FT_PAGE_TOKENS;
    w->cache_indirection = must_have((size_t) w->texts * capacity * sizeof *w->cache_indirection);
    memset(w->cache_indirection, 0x7f, (size_t) w->texts * capacity * sizeof *w->cache_indirection);
    for (int i = 0; i < w->texts; i++)
        for (int at = 0; w->of.beam_width > 0 && at < w->length[i]; at++)
            w->cache_indirection[(size_t) i * capacity + (size_t) at] =
                (int32_t) rng_below(&numbers, (uint32_t) w->of.beam_width);
}

void world_init(world *w, const shape *s, const int *length, int count)
{
    world_init_shared(w, s, (sharing){ false, 0 }, length, count);
}

void world_init_shared(world *w, const shape *s, sharing of, const int *length, int count)
{
    *w = (world){ .s = *s, .of = of };
    w->attr = (ft_attr){ .cross_kv = of.cross_kv,
                         .heads = s->heads,
                         .kv_heads = s->kv_heads,
                         .window = s->window,
                         .softmax_scale = 1.0f / sqrtf((float) s->head_size),
                         .rope_theta = 10000.0f,
                         .rope_factor = 2.0f };
    for (; w->texts < count && length[w->texts] > 0; w->texts++) {
        w->length[w->texts] = length[w->texts];
        w->first[w->texts + 1] = w->first[w->texts] + (size_t) length[w->texts];
        size_t pages = ft_pages_for_tokens((size_t) length[w->texts]);
        w->max_pages = pages > w->max_pages ? pages : w->max_pages;
    }
    size_t rows = w->first[w->texts];
    w->q = random_rows(rows, world_cols(w), s->dtype);
    w->k = random_rows(rows, world_kv_cols(w), s->dtype);
    w->v = random_rows(rows, world_kv_cols(w), s->dtype);
    w->turned = must_have(rows * world_cols(w) * ft_dtype_size(s->dtype));
    w->result = must_have(rows * world_cols(w) * ft_dtype_size(s->dtype));
    w->frequency = must_have((size_t) s->head_size / 2 * sizeof(float));
    for (int i = 0; i < s->head_size / 2; i++)
        w->frequency[i] = (float) pow(w->attr.rope_theta, -2.0 * i / s->head_size);
    deal_pages(w);
    deal_origins(w);
    make_cache(w);
    world_forget(w);
}

void world_fini(world *w)
{
    free(w->q);
    free(w->k);
    free(w->v);
    free(w->turned);
    free(w->result);
    free(w->frequency);
    free(w->cache_indirection);
    for (int i = 0; i < w->texts; i++)
        free(w->page[i]);
    for (int i = 0; i < 4; i++)
        cudaFree(w->cache[i]);
}

void world_forget(world *w)
{
    size_t bytes = w->first[w->texts] * world_cols(w) * ft_dtype_size(w->s.dtype);
    for (int i = 0; i < 4; i++)
        must(cudaMemset(w->cache[i], POISON, w->bytes[i]), "poison");
    memset(w->turned, POISON, bytes);
    memset(w->result, POISON, bytes);
}

/* ---- Runs ----------------------------------------------------------------------------------- */

/* The arrays of a batch, on the host. */
typedef struct arrays {
    int32_t *start, *seq_id, *n_past, *n_tokens, *last, *slot, *pages;
    ft_cuda_query_tile *block;
    size_t rows, sequences, blocks, context, longest, kv_pages;
} arrays;

static void add_piece(arrays *a, const world *w, const piece *p)
{
    size_t i = a->sequences++;
    a->start[i] = (int32_t) a->rows;
    a->n_past[i] = p->from;
    a->n_tokens[i] = w->length[p->text];
    a->last[i] = w->length[p->text] - 1;
    a->slot[i] = p->text;
    memcpy(a->pages + i * w->max_pages, w->page[p->text],
           ft_pages_for_tokens((size_t) w->length[p->text]) * sizeof *a->pages);
    for (int query = 0; query < p->count; query += FT_CUDA_QUERY_TILE)
        a->block[a->blocks++] =
            (ft_cuda_query_tile){ (int32_t) a->rows, p->count, query, (int32_t) i };
    for (int row = 0; row < p->count; row++)
        a->seq_id[a->rows++] = (int32_t) i;
    a->start[i + 1] = (int32_t) a->rows;
    size_t end = (size_t) (p->from + p->count);
    a->context = end > a->context ? end : a->context;
    a->kv_pages += ft_pages_for_tokens(end);
    end = (size_t) w->length[p->text];
    a->longest = end > a->longest ? end : a->longest;
}

static arrays arrays_of(const world *w, const piece *pieces, int count, int padding)
{
    size_t rows = (size_t) padding, n = (size_t) (count + padding);
    for (int i = 0; i < count; i++)
        rows += (size_t) pieces[i].count;
    arrays a = { 0 };
    a.start = calloc(n + 1, sizeof *a.start);
    a.seq_id = calloc(rows, sizeof *a.seq_id);
    a.n_past = calloc(n, sizeof *a.n_past);
    a.n_tokens = calloc(n, sizeof *a.n_tokens);
    a.last = calloc(n, sizeof *a.last);
    a.slot = calloc(n, sizeof *a.slot);
    a.pages = calloc(n * w->max_pages, sizeof *a.pages);
    a.block = calloc(rows / FT_CUDA_QUERY_TILE + n + 1, sizeof *a.block);
    if (!a.start || !a.seq_id || !a.n_past || !a.n_tokens || !a.last || !a.slot || !a.pages ||
        !a.block)
        bail_out("out of memory: the arrays of a batch");
    for (int i = 0; i < count; i++)
        add_piece(&a, w, &pieces[i]);
    for (int i = 0; i < padding; i++) {
        a.seq_id[a.rows++] = -1;
        a.slot[a.sequences] = -1;
        a.start[a.sequences + 1] = a.start[a.sequences];
        a.sequences++;
        a.blocks++;
    }
    a.context += (size_t) padding * 100;
    return a;
}

static void free_arrays(arrays *a)
{
    free(a->start);
    free(a->seq_id);
    free(a->n_past);
    free(a->n_tokens);
    free(a->last);
    free(a->slot);
    free(a->pages);
    free(a->block);
}

/* Packs the rows of the pieces on the device; poison follows them. */
static ft_view gather(const world *w, const void *from, size_t cols, const piece *pieces, int count,
                      size_t rows)
{
    size_t each = cols * ft_dtype_size(w->s.dtype), row = 0;
    ft_view view = { .rows = rows, .cols = cols, .dtype = w->s.dtype };
    view.data = place(NULL, rows * each);
    for (int i = 0; from != NULL && i < count; row += (size_t) pieces[i++].count)
        must(cudaMemcpy((char *) view.data + row * each,
                        (const char *) from +
                            (w->first[pieces[i].text] + (size_t) pieces[i].from) * each,
                        (size_t) pieces[i].count * each, cudaMemcpyHostToDevice),
             "upload");
    return view;
}

/* Copies the rows back; the poison after them must be intact. */
static void scatter(const world *w, void *to, const ft_view *view, const piece *pieces, int count)
{
    size_t each = view->cols * ft_dtype_size(view->dtype), row = 0;
    uint8_t guard[GUARD];
    for (int i = 0; i < count; row += (size_t) pieces[i++].count)
        must(cudaMemcpy((char *) to + (w->first[pieces[i].text] + (size_t) pieces[i].from) * each,
                        (char *) view->data + row * each, (size_t) pieces[i].count * each,
                        cudaMemcpyDeviceToHost),
             "download");
    must(cudaMemcpy(guard, (char *) view->data + view->rows * each, GUARD, cudaMemcpyDeviceToHost),
         "download");
    for (int i = 0; i < GUARD; i++)
        if (guard[i] != POISON)
            bail_out("a kernel wrote past the end of its result");
}

static void check_counters(void)
{
    static uint32_t host[COUNTERS];
    must(cudaMemcpy(host, counters, sizeof host, cudaMemcpyDeviceToHost), "download");
    for (int i = 0; i < COUNTERS; i++)
        if (host[i] != 0)
            bail_out("a kernel left counter %d at %u", i, host[i]);
}

static ft_limits limits_of(const ft_cuda_batch *batch)
{
    return (ft_limits){ .tokens = batch->tokens,
                        .sequences = batch->sequences,
                        .context =
                            batch->context > batch->capacity ? batch->context : batch->capacity,
                        .cross_kv = batch->cross_kv };
}

static ft_cuda_batch upload(const world *w, const arrays *a, bool step)
{
    size_t each = sizeof(int32_t), n = a->sequences;
    used = 0;
    const int32_t *pages = place(a->pages, n * w->max_pages * each);
    ft_cuda_batch batch = {
        .tokens = a->rows,
        .sequences = n,
        .start = place(a->start, (n + 1) * each),
        .blocks = place(a->block, a->blocks * sizeof *a->block),
        .n_query_tiles = a->blocks,
        .seq_id = place(a->seq_id, a->rows * each),
        .n_past = place(a->n_past, n * each),
        .n_tokens = place(a->n_tokens, n * each),
        .slot = place(a->slot, n * each),
        .pages = w->of.cross_kv ? NULL : pages,
        .max_pages = w->max_pages,
        .context = a->context,
        .capacity = w->max_pages * FT_PAGE_TOKENS,
        .decode_step = step,
        .cross_kv_last = w->of.cross_kv ? place(a->last, n * each) : NULL,
        .cross_kv_pages = w->of.cross_kv ? pages : NULL,
        .max_cross_kv_pages = w->max_pages,
        .cross_kv = a->longest,
        .beam_width = (size_t) w->of.beam_width,
    };
    ft_limits limits = limits_of(&batch);
    batch.few_kv_pages = !step && !w->never_copies && a->kv_pages <= ft_cuda_prefill_pages(&limits);
    return batch;
}

static void add_cache(ft_cuda_args *args, const world *w)
{
    for (int i = 0; i < (w->s.cache == FT_I8 ? 4 : 2); i++)
        args->state[i] = (ft_view){ .data = w->cache[i],
                                    .rows = w->pages * FT_PAGE_TOKENS,
                                    .cols = i < 2 ? world_kv_cols(w) : (size_t) w->s.kv_heads,
                                    .dtype = i < 2 ? w->s.cache : FT_F32 };
    if (w->of.beam_width > 0) {
        size_t count = (size_t) w->texts * w->max_pages * FT_PAGE_TOKENS;
        args->state[FT_STATE_CACHE_INDIRECTION].data =
            place(w->cache_indirection, count * sizeof *w->cache_indirection);
    }
}

/* Stores cross-attention keys and values, without rotary embedding. */
static int store_plain(world *w, ft_cuda_args args, const piece *pieces, int count)
{
    size_t rows = args.batch->tokens, bytes = world_cols(w) * ft_dtype_size(w->s.dtype);
    args.in[1] = gather(w, w->k, world_kv_cols(w), pieces, count, rows);
    args.in[2] = gather(w, w->v, world_kv_cols(w), pieces, count, rows);
    memcpy(w->turned, w->q, w->first[w->texts] * bytes);
    return ft_cuda_store_kv(&args);
}

static void add_stored(ft_cuda_args *args, ft_weight *frequency, const world *w,
                       const piece *pieces, int count)
{
    size_t rows = args->batch->tokens, pairs = (size_t) w->s.head_size / 2;
    *frequency = (ft_weight){ .rows = 1,
                              .cols = pairs,
                              .dtype = FT_F32,
                              .data = place(w->frequency, pairs * sizeof(float)) };
    args->weight[0] = frequency;
    args->in[0] = gather(w, w->q, world_cols(w), pieces, count, rows);
    args->in[1] = gather(w, w->k, world_kv_cols(w), pieces, count, rows);
    args->in[2] = gather(w, w->v, world_kv_cols(w), pieces, count, rows);
    args->out = gather(w, NULL, world_cols(w), pieces, count, rows);
}

static int store(world *w, ft_cuda_args args, const piece *pieces, int count)
{
    ft_weight frequency;
    add_stored(&args, &frequency, w, pieces, count);
    int status = ft_cuda_store_kv(&args);
    if (status == 0)
        scatter(w, w->turned, &args.out, pieces, count);
    return status;
}

/* The output and scratch of attention. */
static void add_result(ft_cuda_args *args, const world *w, const piece *pieces, int count)
{
    ft_value value = { .cols = (int32_t) world_cols(w), .dtype = w->s.cache };
    ft_plan plan = { .value = &value };
    args->out = gather(w, NULL, world_cols(w), pieces, count, args->batch->tokens);
    ft_limits limits = limits_of(args->batch);
    ft_workspace need = ft_cuda_attend_kv_workspace(args->props, &plan, args->op, &limits);
    if (args->batch->decode_step || args->batch->few_kv_pages)
        args->scratch_bytes = need.scratch;
    args->scratch = place(NULL, args->scratch_bytes);
    if (need.counters > COUNTERS)
        bail_out("more than %d counters", COUNTERS);
}

static int attend(world *w, ft_cuda_args args, const piece *pieces, int count)
{
    args.in[0] = gather(w, w->turned, world_cols(w), pieces, count, args.batch->tokens);
    add_result(&args, w, pieces, count);
    int status = ft_cuda_attend_kv(&args);
    if (status == 0)
        scatter(w, w->result, &args.out, pieces, count);
    check_counters();
    return status;
}

static int join(world *w, ft_cuda_args store, const piece *pieces, int count)
{
    ft_weight frequency;
    ft_op op = { .kind = FT_OP_ATTEND_KV, .attr = w->attr };
    ft_cuda_args attend = store;
    add_stored(&store, &frequency, w, pieces, count);
    attend.op = &op;
    attend.in[0] = store.out;
    add_result(&attend, w, pieces, count);
    ft_cuda_group group = { .kind = FT_FUSION_ATTENTION, .store = &store, .attend = &attend };
    int status = ft_cuda_store_attend(&group);
    if (ft_cuda_store_attend_supports(&group) != (status != (int) cudaErrorNotSupported))
        bail_out("store and attention: what the kernel supports is not what it launches");
    if (status == 0)
        scatter(w, w->result, &attend.out, pieces, count);
    check_counters();
    return status;
}

enum { STORES = 1, ATTENDS = 2, JOINS = 4 };

static int run(world *w, const piece *pieces, int count, bool step, int padding, int what)
{
    arrays a = arrays_of(w, pieces, count, padding);
    ft_cuda_batch batch = upload(w, &a, step);
    ft_op op = { .kind = FT_OP_STORE_KV, .attr = w->attr };
    ft_cuda_args args = { .props = &props, .op = &op, .batch = &batch, .counters = counters };
    add_cache(&args, w);
    int status = 0;
    if (what & STORES)
        status =
            w->of.cross_kv ? store_plain(w, args, pieces, count) : store(w, args, pieces, count);
    op.kind = FT_OP_ATTEND_KV;
    if (status == 0 && what & ATTENDS)
        status = attend(w, args, pieces, count);
    op.kind = FT_OP_STORE_KV;
    if (what & JOINS)
        status = join(w, args, pieces, count);
    must((int) cudaDeviceSynchronize(), "batch");
    free_arrays(&a);
    return status;
}

int world_run(world *w, const piece *pieces, int count, bool step, int padding)
{
    return run(w, pieces, count, step, padding, STORES | ATTENDS);
}

int world_store(world *w, const piece *pieces, int count)
{
    return run(w, pieces, count, false, 0, STORES);
}

int world_attend(world *w, const piece *pieces, int count, bool step, int padding)
{
    return run(w, pieces, count, step, padding, ATTENDS);
}

int world_join(world *w, const piece *pieces, int count, int padding)
{
    return run(w, pieces, count, true, padding, JOINS);
}

#endif
