/*
 * throughput.c - one benchmark case of batch throughput: an engine gets all requests at once, and
 * runs as many of them at the same time as fit into the KV cache.
 *
 * The time begins with the first submission, so with the first prefill pass, and ends with the last
 * token of all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/clock.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/bench/engine_requests.h"

/* SEQUENCES, CHUNK: on a device with memory of its own; CPU_SEQUENCES elsewhere. */
enum { SEQUENCES = 2048, CPU_SEQUENCES = 64, CHUNK = 8192, WARM_SEQUENCES = 32 };

/* ---- Sizes -------------------------------------------------------------------------------- */

/* Of an engine for a case. */
typedef struct sizes {
    size_t sequences, pages; /* that run at the same time; of the KV cache */
} sizes;

static size_t context_of(const ft_bench_throughput_shape *s)
{
    return s->length + s->new_tokens;
}

static ft_status open_engine(ft_engine **engine, const ft_bench *b,
                             const ft_bench_throughput_shape *s, const sizes *z, size_t queue,
                             ft_error *err)
{
    size_t chunk = s->chunk == 0 && b->model->backend->runs_async ? CHUNK : s->chunk;
    return ft_engine_open(engine, b->model,
                          &(ft_engine_options){
                              .threads = b->threads,
                              .max_sequences = (int64_t) z->sequences,
                              .chunk = (int64_t) chunk,
                              .context = (int64_t) context_of(s),
                              .cache_tokens = (int64_t) (z->pages * FT_PAGE_TOKENS),
                              .queue = (int64_t) queue,
                          },
                          err);
}

/* Bytes of the KV cache for a page of tokens. */
static size_t page_bytes(const ft_plan *plan)
{
    size_t bytes = 0;
    for (int i = 0; i < plan->nvalue; i++)
        if (plan->value[i].rows == FT_KV_CACHE)
            bytes += (size_t) plan->value[i].cols * ft_dtype_size(plan->value[i].dtype);
    return FT_PAGE_TOKENS * bytes;
}

/*
 * The pages that the memory of the device has room for beside everything else of an engine, which
 * one with the smallest cache occupies meanwhile.  A 32nd is left for the graphs of passes.
 */
static ft_status count_pages_that_fit(size_t *pages, const ft_bench *b,
                                      const ft_bench_throughput_shape *s, size_t sequences,
                                      ft_error *err)
{
    ft_engine *engine;
    const sizes least = { sequences, ft_pages_for_tokens(context_of(s)) };
    FT_TRY(open_engine(&engine, b, s, &least, 1, err));
    size_t bytes = 0;
    ft_status status = b->model->backend->free_memory(b->model->device, &bytes, err);
    ft_engine_close(engine, NULL);
    const size_t most = INT32_MAX / FT_PAGE_TOKENS;
    *pages = ft_min_size(least.pages + (bytes - bytes / 32) / page_bytes(&b->model->plan), most);
    return status;
}

static ft_status find_sizes(sizes *out, const ft_bench *b, const ft_bench_throughput_shape *s,
                            ft_error *err)
{
    bool has_memory = b->model->backend->free_memory != NULL;
    size_t each = ft_pages_for_tokens(context_of(s));
    out->sequences = s->sequences > 0 ? s->sequences : has_memory ? SEQUENCES : CPU_SEQUENCES;
    if (s->requests > 0)
        out->sequences = ft_min_size(out->sequences, s->requests);
    if (s->cache_tokens > 0)
        out->pages = s->cache_tokens / FT_PAGE_TOKENS;
    else if (has_memory)
        FT_TRY(count_pages_that_fit(&out->pages, b, s, out->sequences, err));
    else
        out->pages = out->sequences * each;
    if (out->pages < each)
        return ft_fail(err, FT_ELIMIT,
                       "%s: a KV cache of %zu tokens, but a request of %zu + %zu tokens needs %zu",
                       b->name, out->pages * FT_PAGE_TOKENS, s->length, s->new_tokens,
                       each * FT_PAGE_TOKENS);
    out->sequences = ft_min_size(out->sequences, out->pages / each);
    out->pages = ft_min_size(out->pages, out->sequences * each);
    return FT_OK;
}

/* ---- The run ------------------------------------------------------------------------------ */

static ft_status submit_all(ft_bench_requests *r, ft_engine *engine, ft_error *err)
{
    double now = ft_monotonic_seconds();
    for (size_t i = 0; i < r->count; i++)
        FT_TRY(ft_bench_requests_submit(r, engine, i, now, err));
    return ft_engine_drain(engine, err);
}

static ft_status run(ft_bench_requests *r, const ft_bench_throughput_shape *s, const sizes *z,
                     ft_error *err)
{
    ft_engine *engine;
    FT_TRY(open_engine(&engine, r->bench, s, z, ft_max_size(r->count, z->sequences), err));
    ft_status status =
        ft_bench_requests_warm_up(r, engine, ft_min_size(z->sequences, WARM_SEQUENCES), err);
    if (status == FT_OK)
        status = submit_all(r, engine, err);
    ft_engine_close(engine, NULL);
    return status;
}

static ft_status add_row(ft_bench *b, ft_bench_requests *r, const sizes *z, ft_error *err)
{
    ft_bench_request_times times;
    double seconds = r->last - r->answer[0].arrival;
    FT_TRY(ft_bench_requests_summarize(&times, r, err));
    ft_cell cells[] = {
        { .name = "model", .text = b->name, .column = FT_COLUMN_CSV },
        { .name = "scheme", .text = b->scheme, .column = FT_COLUMN_CSV },
        { .name = "device", .text = b->device, .column = FT_COLUMN_CSV },
        { .name = "length", .number = (double) r->length },
        { .name = "new_tokens", .number = (double) r->new_tokens },
        { .name = "requests", .number = (double) r->count },
        { .name = "sequences", .number = (double) z->sequences },
        { .name = "cache_tokens",
          .number = (double) (z->pages * FT_PAGE_TOKENS),
          .column = FT_COLUMN_MACHINE },
        { .name = "seconds", .number = seconds, .digits = 3 },
        { .name = "tokens_per_s",
          .head = "tokens/s",
          .number = (double) r->tokens / seconds,
          .digits = 1 },
        { .name = "ttft_p50_ms", .number = 1e3 * times.first.median, .digits = 1 },
        { .name = "ttft_p99_ms", .number = 1e3 * times.first.p99, .digits = 1 },
        { .name = "latency_p50_ms", .number = 1e3 * times.last.median, .digits = 1 },
        { .name = "latency_p99_ms", .number = 1e3 * times.last.p99, .digits = 1 },
        { .name = "itl_p50_ms", .number = 1e3 * times.between.median, .digits = 3 },
        { .name = "itl_p99_ms", .number = 1e3 * times.between.p99, .digits = 3 },
    };
    ft_table_row(&b->cases, cells, FT_COUNT(cells));
    return FT_OK;
}

ft_status ft_bench_throughput(ft_bench *bench, const ft_bench_throughput_shape *shape,
                              ft_error *err)
{
    sizes z = { 0 };
    ft_bench_requests r = { .count = 0 };
    ft_status status = find_sizes(&z, bench, shape, err);
    size_t count = shape->requests > 0 ? shape->requests : z.sequences;
    if (status == FT_OK)
        status = ft_bench_requests_init(&r, bench, count, shape->length, shape->new_tokens, err);
    if (status == FT_OK)
        status = run(&r, shape, &z, err);
    if (status == FT_OK)
        status = ft_bench_requests_check(&r, err);
    if (status == FT_OK)
        status = add_row(bench, &r, &z, err);
    ft_bench_requests_fini(&r);
    return status;
}
