/*
 * load.c - one benchmark case of an engine under load: requests that arrive by a Poisson process,
 * whether or not earlier ones have ended.
 *
 * Times count from the arrival of a request, not from its submission.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/clock.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/bench/engine_requests.h"
#include "runtime/tools/synthetic/counter_rng.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { ARRIVAL_KEY = 18 };

/* ---- Arrivals ----------------------------------------------------------------------------- */

typedef struct arrivals {
    double *time; /* [count]: from 0 */
    size_t count;
} arrivals;

/* Arrivals in `seconds` seconds, at least one. */
static ft_status draw_arrivals(arrivals *out, const ft_bench_load_shape *s, ft_error *err)
{
    double now = 0.0;
    size_t capacity = 0;
    while (out->count == 0 || now < s->seconds) {
        if (out->count == capacity) {
            double *grown = ft_array_grow(out->time, &capacity, 64, sizeof *grown);
            if (grown == NULL)
                return ft_fail(err, FT_ENOMEM, "no memory for %zu requests", out->count + 1);
            out->time = grown;
        }
        double uniform = (double) (ft_counter_rng(ARRIVAL_KEY, out->count) >> 11) * 0x1p-53;
        out->time[out->count++] = now;
        now -= log1p(-uniform) / s->rate;
    }
    return FT_OK;
}

static void sleep_until(double time)
{
    double whole = floor(time);
    struct timespec t = { .tv_sec = (time_t) whole, .tv_nsec = (long) (1e9 * (time - whole)) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

/* ---- The load ----------------------------------------------------------------------------- */

static ft_status open_engine(ft_engine **engine, const ft_bench_requests *r,
                             const ft_bench_load_shape *s, ft_error *err)
{
    size_t pages = ft_pages_for_tokens(s->length + s->new_tokens);
    return ft_engine_open(
        engine, r->bench->model,
        &(ft_engine_options){ .threads = r->bench->threads,
                              .max_sequences = (int64_t) s->sequences,
                              .context = (int64_t) (s->length + s->new_tokens),
                              .cache_tokens = (int64_t) (s->sequences * pages * FT_PAGE_TOKENS),
                              .queue = (int64_t) ft_max_size(r->count, s->sequences) },
        err);
}

static ft_status submit_all(ft_bench_requests *r, ft_engine *engine, const double *time,
                            ft_error *err)
{
    double before = ft_monotonic_seconds();
    for (size_t i = 0; i < r->count; i++) {
        sleep_until(before + time[i]);
        FT_TRY(ft_bench_requests_submit(r, engine, i, before + time[i], err));
    }
    return ft_engine_drain(engine, err);
}

static ft_status run_load(ft_bench_requests *r, const ft_bench_load_shape *s, const double *time,
                          ft_error *err)
{
    ft_engine *engine;
    FT_TRY(open_engine(&engine, r, s, err));
    ft_status status = ft_bench_requests_warm_up(r, engine, s->sequences, err);
    if (status == FT_OK)
        status = submit_all(r, engine, time, err);
    ft_engine_close(engine, NULL);
    return status;
}

/* ---- Results ------------------------------------------------------------------------------ */

static ft_status add_row(ft_bench *b, ft_bench_requests *r, const ft_bench_load_shape *s,
                         ft_error *err)
{
    ft_bench_request_times times;
    FT_TRY(ft_bench_requests_summarize(&times, r, err));
    ft_cell cells[] = {
        { .name = "model", .text = b->name, .column = FT_COLUMN_CSV },
        { .name = "scheme", .text = b->scheme, .column = FT_COLUMN_CSV },
        { .name = "device", .text = b->device, .column = FT_COLUMN_CSV },
        { .name = "request_rate", .head = "rate", .number = s->rate, .digits = 2 },
        { .name = "sequences", .number = (double) s->sequences },
        { .name = "length", .number = (double) s->length },
        { .name = "new_tokens", .number = (double) s->new_tokens },
        { .name = "requests", .number = (double) r->count },
        { .name = "drain_s", .number = r->last - r->answer[r->count - 1].arrival, .digits = 2 },
        { .name = "tokens_per_s",
          .head = "tokens/s",
          .number = (double) r->tokens / (r->last - r->answer[0].arrival),
          .digits = 1 },
        { .name = "ttft_p50_ms", .number = 1e3 * times.first.median, .digits = 2 },
        { .name = "ttft_p99_ms", .number = 1e3 * times.first.p99, .digits = 2 },
        { .name = "itl_p50_ms", .number = 1e3 * times.between.median, .digits = 3 },
        { .name = "itl_p99_ms", .number = 1e3 * times.between.p99, .digits = 3 },
    };
    ft_table_row(&b->cases, cells, FT_COUNT(cells));
    return FT_OK;
}

ft_status ft_bench_load(ft_bench *bench, const ft_bench_load_shape *shape, ft_error *err)
{
    arrivals drawn = { .count = 0 };
    ft_bench_requests r = { .count = 0 };
    ft_status status = draw_arrivals(&drawn, shape, err);
    if (status == FT_OK)
        status =
            ft_bench_requests_init(&r, bench, drawn.count, shape->length, shape->new_tokens, err);
    if (status == FT_OK)
        status = run_load(&r, shape, drawn.time, err);
    if (status == FT_OK)
        status = ft_bench_requests_check(&r, err);
    if (status == FT_OK)
        status = add_row(bench, &r, shape, err);
    ft_bench_requests_fini(&r);
    free(drawn.time);
    return status;
}
