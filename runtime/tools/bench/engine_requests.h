/*
 * engine_requests.h - random requests to an engine, and the times of the tokens that answer them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_BENCH_ENGINE_REQUESTS_H
#define FT_RUNTIME_TOOLS_BENCH_ENGINE_REQUESTS_H

#include "runtime/tools/bench/bench.h"

typedef struct ft_bench_requests ft_bench_requests;

/* A request and what became of it. */
typedef struct ft_bench_answer {
    ft_bench_requests *requests;
    double arrival, first, last; /* of the request, of its first and its last token so far, on the
                                    monotonic clock */
    size_t prompt_tokens, new_tokens, tokens;
    uint64_t hash; /* of the tokens that are checked */
} ft_bench_answer;

struct ft_bench_requests {
    const ft_bench *bench;
    size_t count, length, new_tokens; /* of the longest prompt and answer */
    ft_bench_answer *answer;          /* [count] */
    int32_t *ids;                     /* [length] */
    double *between;                  /* [count * new_tokens]: seconds between two tokens */
    size_t num_between, tokens;       /* so far */
    double last;                      /* time of the last token of all */
};

/* The mean lengths are bench->fill times the longest ones; free also what failed. */
FT_MUST_USE ft_status ft_bench_requests_init(ft_bench_requests *requests, const ft_bench *bench,
                                             size_t count, size_t length, size_t new_tokens,
                                             ft_error *err);
void ft_bench_requests_fini(ft_bench_requests *requests);

/* Run `sequences` short requests at the same time, for caches, clocks and kernels. */
FT_MUST_USE ft_status ft_bench_requests_warm_up(ft_bench_requests *requests, ft_engine *engine,
                                                size_t sequences, ft_error *err);

/* Submit request `index`, which has arrived at a time of the monotonic clock. */
FT_MUST_USE ft_status ft_bench_requests_submit(ft_bench_requests *requests, ft_engine *engine,
                                               size_t index, double arrival, ft_error *err);

/*
 * FT_EDEVICE unless every request has received all of its tokens, and a few requests the same
 * first 256 tokens as alone.
 */
FT_MUST_USE ft_status ft_bench_requests_check(ft_bench_requests *requests, ft_error *err);

/* Seconds from the arrival to the first or last token, and between two tokens. */
typedef struct ft_bench_request_times {
    ft_bench_times first, last, between;
} ft_bench_request_times;

FT_MUST_USE ft_status ft_bench_requests_summarize(ft_bench_request_times *out,
                                                  ft_bench_requests *requests, ft_error *err);

#endif
