/*
 * attend_kv.c - time of attention over a KV cache on the GPU, and of storing into it.
 *
 *     tests/bench/cuda/attend_kv [HEADS KV_HEADS HEAD_SIZE [SEQUENCES CONTEXT [LANES]]]
 *
 * Decode: one row for each of some sequences of equal length; the bandwidth is that of reading the
 * cache.  Prefill: the last rows of one text; the TFLOPS count 4 head_size operations for each key
 * to which a row attends; over an int8 cache also without the copy in float.  With LANES, that many
 * sequences are the beams of a search, with a cache that they share, and with cross-attention KV of
 * CONTEXT tokens.  Every case is a graph of launches over caches that together exceed the L2 cache
 * (replay.h); the first line is the bandwidth of a copy kernel measured in the same way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/kv_cache.h"
#include "kernels/cuda/cuda.h"
#include "runtime/tensor.h"
#include "tests/bench/cuda/replay.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SETS = 12, MAX_RANDOM = 64 << 20 };

typedef struct problem {
    int heads, kv_heads, head_size;
    size_t sequences, context; /* tokens of each text */
    size_t rows;               /* of each text: 1 is a decode step */
    ft_dtype cache;
    size_t beam_width; /* beams; 0: none */
    bool cross_kv;
} problem;

/* Operands of one launch. */
typedef struct set {
    ft_cuda_batch batch;
    ft_cuda_args store, attend;
} set;

typedef struct field {
    set sets[MAX_SETS];
    int count;
    ft_op store, attend;
    ft_weight frequency;
    void *cross_kv[MAX_SETS * 8];
    int allocations;
} field;

static ft_cuda_device_props props;

/* ---- Operands ------------------------------------------------------------------------------- */

static void *device_memory(field *f, size_t bytes)
{
    void *cross_kv;
    must(cudaMalloc(&cross_kv, bytes > 0 ? bytes : 1), "cudaMalloc");
    must(cudaMemset(cross_kv, 0, bytes), "cudaMemset");
    f->cross_kv[f->allocations++] = cross_kv;
    return cross_kv;
}

static void *copied(field *f, const void *data, size_t bytes)
{
    void *cross_kv = device_memory(f, bytes);
    must(cudaMemcpy(cross_kv, data, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    return cross_kv;
}

/*
 * Random int8 values; read as f16, numbers between 2^-1 and 2; as f32, scales about 2^-7.  Data
 * larger than the L2 cache repeats.
 */
static void *random_bytes(field *f, size_t bytes, ft_dtype dtype)
{
    static uint32_t state = 12345;
    size_t most = bytes < MAX_RANDOM ? bytes : MAX_RANDOM;
    uint8_t *host = malloc(most), *cross_kv = device_memory(f, bytes);
    if (host == NULL)
        exit(1);
    for (size_t i = 0; i < most; i++) {
        state = state * 1664525u + 1013904223u;
        host[i] = (uint8_t) (state >> 24);
        if (dtype == FT_F16 && i % 2 == 1)
            host[i] = (uint8_t) ((host[i] & 0x80) | (0x38 + (host[i] & 7)));
        if (dtype == FT_F32 && i % 4 == 3)
            host[i] = 0x3c;
    }
    for (size_t at = 0; at < bytes; at += most)
        must(cudaMemcpy(cross_kv + at, host, bytes - at < most ? bytes - at : most,
                        cudaMemcpyHostToDevice),
             "cudaMemcpy");
    free(host);
    return cross_kv;
}

/* The index arrays of a batch, in one allocation. */
static ft_cuda_batch batch_of(field *f, const problem *p)
{
    size_t n = p->sequences, pages = ft_pages_for_tokens(p->context), blocks = 0;
    size_t each = (p->rows + FT_CUDA_QUERY_TILE - 1) / FT_CUDA_QUERY_TILE;
    int32_t *numbers = malloc((n + 1 + n * p->rows + 4 * n + n * pages) * sizeof *numbers);
    ft_cuda_query_tile *block = malloc(n * each * sizeof *block);
    if (numbers == NULL || block == NULL)
        exit(1);
    int32_t *start = numbers, *seq_id = start + n + 1, *n_past = seq_id + n * p->rows,
            *n_tokens = n_past + n, *last = n_tokens + n, *slot = last + n, *page = slot + n;
    for (size_t i = 0; i <= n; i++)
        start[i] = (int32_t) (i * p->rows);
    for (size_t i = 0; i < n; i++) {
        n_past[i] = (int32_t) (p->context - p->rows);
        n_tokens[i] = (int32_t) p->context;
        last[i] = (int32_t) p->context - 1;
        slot[i] = (int32_t) i;
        for (size_t j = 0; j < p->rows; j++)
            seq_id[i * p->rows + j] = (int32_t) i;
        for (size_t j = 0; j < pages; j++) /* the pages of a sequence are scattered */
            page[i * pages + j] = (int32_t) (j * n + (p->cross_kv ? i - i % p->beam_width : i));
        for (size_t j = 0; j < each; j++)
            block[blocks++] =
                (ft_cuda_query_tile){ start[i], (int32_t) p->rows,
                                      (int32_t) (j * FT_CUDA_QUERY_TILE), (int32_t) i };
    }
    size_t total = n + 1 + n * p->rows + 4 * n + n * pages;
    const int32_t *at = copied(f, numbers, total * sizeof *numbers);
    ft_cuda_batch batch = { .tokens = n * p->rows,
                            .sequences = n,
                            .start = at,
                            .blocks = copied(f, block, n * each * sizeof *block),
                            .n_query_tiles = n * each,
                            .seq_id = at + (seq_id - numbers),
                            .n_past = at + (n_past - numbers),
                            .n_tokens = at + (n_tokens - numbers),
                            .pages = at + (page - numbers),
                            .max_pages = pages,
                            .context = p->context,
                            .capacity = pages * FT_PAGE_TOKENS,
                            .decode_step = p->rows == 1,
                            .slot = at + (slot - numbers),
                            .cross_kv_last = at + (last - numbers),
                            .cross_kv_pages = at + (page - numbers),
                            .max_cross_kv_pages = pages,
                            .cross_kv = p->context,
                            .beam_width = p->beam_width };
    free(numbers);
    free(block);
    return batch;
}

static ft_view rows_of(field *f, size_t rows, int cols, ft_dtype dtype)
{
    return (ft_view){ .data = random_bytes(f, rows * (size_t) cols * ft_dtype_size(dtype), dtype),
                      .rows = rows,
                      .cols = (size_t) cols,
                      .dtype = dtype };
}

/* Each cached token of a beam belongs to a random beam. */
static ft_view origins_of(field *f, const problem *p)
{
    size_t count = p->sequences * ft_pages_for_tokens(p->context) * FT_PAGE_TOKENS;
    int32_t *cache_indirection = malloc(count * sizeof *cache_indirection);
    if (cache_indirection == NULL)
        exit(1);
    for (size_t i = 0; i < count; i++)
        cache_indirection[i] = (int32_t) (i * 2654435761u % 4294967296u * p->beam_width >> 32);
    ft_view view = { .data = copied(f, cache_indirection, count * sizeof *cache_indirection) };
    free(cache_indirection);
    return view;
}

static void fill_set(field *f, set *s, const problem *p, const set *first)
{
    int cols = p->heads * p->head_size, kv_cols = p->kv_heads * p->head_size;
    size_t rows = p->sequences * p->rows,
           cached = p->sequences * ft_pages_for_tokens(p->context) * FT_PAGE_TOKENS;
    if (s == first) {
        s->batch = batch_of(f, p);
        s->store = (ft_cuda_args){ .props = &props, .op = &f->store };
        s->store.weight[0] = &f->frequency;
        s->store.in[0] = s->store.out = rows_of(f, rows, cols, FT_F16);
        s->store.in[1] = s->store.in[2] = rows_of(f, rows, kv_cols, FT_F16);
        ft_value value = { .cols = cols, .dtype = p->cache };
        ft_plan plan = { .value = &value };
        ft_limits limits = { .tokens = rows,
                             .sequences = p->sequences,
                             .context = cached / p->sequences };
        s->batch.few_kv_pages =
            p->rows > 1 && cached / FT_PAGE_TOKENS <= ft_cuda_prefill_pages(&limits);
        ft_workspace need = ft_cuda_attend_kv_workspace(&props, &plan, &f->attend, &limits);
        s->store.scratch_bytes = need.scratch;
        s->store.scratch = device_memory(f, need.scratch);
        s->store.counters = device_memory(f, need.counters * sizeof(uint32_t));
    } else
        *s = *first;
    for (int i = 0; i < (p->cache == FT_I8 ? 4 : 2); i++)
        s->store.state[i] =
            rows_of(f, cached, i < 2 ? kv_cols : p->kv_heads, i < 2 ? p->cache : FT_F32);
    if (p->beam_width > 0)
        s->store.state[FT_STATE_CACHE_INDIRECTION] = origins_of(f, p);
    s->store.batch = &s->batch;
    s->attend = s->store;
    s->attend.op = &f->attend;
}

static void open_field(field *f, const problem *p)
{
    memset(f, 0, sizeof *f);
    f->store =
        (ft_op){ .kind = FT_OP_STORE_KV,
                 .attr = { .heads = p->heads, .kv_heads = p->kv_heads, .softmax_scale = 0.01f } };
    f->attend = f->store;
    f->attend.kind = FT_OP_ATTEND_KV;
    f->attend.attr.cross_kv = p->cross_kv;
    f->frequency.data = random_bytes(f, 1024, FT_F32);
    double bytes = 2.0 * (double) p->sequences * (double) p->context *
                   (double) (p->kv_heads * p->head_size) * (double) ft_dtype_size(p->cache);
    f->count = (int) (120e6 / bytes) + 2;
    f->count = f->count > MAX_SETS ? MAX_SETS : f->count;
    for (int i = 0; i < f->count; i++)
        fill_set(f, &f->sets[i], p, &f->sets[0]);
}

static void close_field(field *f)
{
    for (int i = 0; i < f->allocations; i++)
        cudaFree(f->cross_kv[i]);
}

/* ---- Cases ---------------------------------------------------------------------------------- */

static int launch_attend(cudaStream_t stream, size_t i, void *data)
{
    field *f = data;
    ft_cuda_args args = f->sets[i % (size_t) f->count].attend;
    args.stream = stream;
    return ft_cuda_attend_kv(&args);
}

static int launch_attend_in_place(cudaStream_t stream, size_t i, void *data)
{
    field *f = data;
    ft_cuda_args args = f->sets[i % (size_t) f->count].attend;
    ft_cuda_batch batch = *args.batch;
    batch.few_kv_pages = false;
    args.batch = &batch;
    args.stream = stream;
    return ft_cuda_attend_kv(&args);
}

static int launch_store(cudaStream_t stream, size_t i, void *data)
{
    field *f = data;
    ft_cuda_args args = f->sets[i % (size_t) f->count].store;
    args.stream = stream;
    return ft_cuda_store_kv(&args);
}

static void report(const problem *p)
{
    field *f = malloc(sizeof *f);
    if (f == NULL)
        exit(1);
    open_field(f, p);
    double attend = replay(launch_attend, f), store = replay(launch_store, f);
    double bytes = 2.0 * (double) (p->sequences * p->context) *
                   (double) (p->kv_heads * p->head_size) * (double) ft_dtype_size(p->cache);
    double seen = (double) p->rows * (double) (p->context - p->rows) +
                  (double) p->rows * (double) (p->rows + 1) / 2.0;
    double flops = 4.0 * (double) p->sequences * seen * (double) (p->heads * p->head_size);
    printf("%-6s %-3s %3zu x %5zu, %2d heads over %2d of %3d: %8.2f us, ",
           p->cross_kv         ? "cross"
           : p->beam_width > 0 ? "beams"
           : p->rows == 1      ? "step"
                               : "prompt",
           p->cache == FT_I8 ? "i8" : "f16", p->sequences, p->context, p->heads, p->kv_heads,
           p->head_size, attend);
    if (p->rows == 1)
        printf("%6.0f GB/s; ", bytes / attend * 1e-3);
    else
        printf("%6.1f TFLOPS (%zu rows); ", flops / attend * 1e-6, p->rows);
    if (p->rows > 1 && p->cache == FT_I8)
        printf("in place %8.2f us; ", replay(launch_attend_in_place, f));
    printf("store %6.2f us\n", store);
    fflush(stdout);
    close_field(f);
    free(f);
}

/* ---- Memory bandwidth ----------------------------------------------------------------------- */

typedef struct sums {
    void *cross_kv;
    size_t bytes;
} sums;

static int launch_fill(cudaStream_t stream, size_t i, void *data)
{
    const sums *s = data;
    (void) i;
    return (int) cudaMemcpyAsync(s->cross_kv, (char *) s->cross_kv + s->bytes, s->bytes,
                                 cudaMemcpyDeviceToDevice, stream);
}

static void report_memory(void)
{
    sums s = { .bytes = (size_t) 256 << 20 };
    must(cudaMalloc(&s.cross_kv, 2 * s.bytes), "cudaMalloc");
    double us = replay(launch_fill, &s);
    printf("a copy of %zu MiB: %.2f us, %.0f GB/s read and written\n", s.bytes >> 20, us,
           2.0 * (double) s.bytes / us * 1e-3);
    cudaFree(s.cross_kv);
}

int main(int argc, char **argv)
{
    static const struct {
        size_t sequences, context, rows;
    } all[] = { { 1, 128, 1 },    { 1, 512, 1 },    { 1, 2048, 1 },    { 1, 16384, 1 },
                { 8, 512, 1 },    { 64, 512, 1 },   { 64, 1024, 1 },   { 16, 4096, 1 },
                { 1, 128, 128 },  { 1, 512, 512 },  { 1, 2048, 2048 }, { 8, 512, 512 },
                { 1, 4096, 512 }, { 1, 8192, 8192 } };
    int heads = (int) argument(argc, argv, 1, 32), kv_heads = (int) argument(argc, argv, 2, 32);
    int head_size = (int) argument(argc, argv, 3, 128);
    props = open_gpu();
    report_memory();
    if (argc > 5) {
        size_t context = argument(argc, argv, 5, 512);
        problem p = { heads,   kv_heads, head_size, argument(argc, argv, 4, 1),
                      context, 1,        FT_F16,    .beam_width = argument(argc, argv, 6, 0) };
        for (int cross_kv = 0; cross_kv < (p.beam_width > 0 ? 2 : 1); cross_kv++)
            for (int quantized = 0; quantized < 2; quantized++) {
                p.cross_kv = cross_kv;
                p.cache = quantized ? FT_I8 : FT_F16;
                report(&p);
            }
        return 0;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (int quantized = 0; quantized < 2; quantized++) {
            problem p = { heads,
                          kv_heads,
                          head_size,
                          all[i].sequences,
                          all[i].context,
                          all[i].rows,
                          quantized ? FT_I8 : FT_F16,
                          .beam_width = 0 };
            report(&p);
        }
    return 0;
}
