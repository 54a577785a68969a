/*
 * bench.h - the parts of ft-bench: time runs, count their work, compare with what the device can
 * do.
 *
 * Times are in seconds inside the program and in milliseconds where they are printed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_BENCH_BENCH_H
#define FT_RUNTIME_TOOLS_BENCH_BENCH_H

#include "runtime/model/session.h"
#include "runtime/cli/table.h"

/* ---- Time --------------------------------------------------------------------------------- */

/* What is run again and again: a plan, or one operation of it. */
typedef struct ft_target {
    const ft_backend *backend;
    ft_exec *exec;
    const ft_batch *batch;
    int op; /* -1: all */
} ft_target;

/* Whether a run may still be at work when run() returns. */
bool ft_target_queues(const ft_target *target);

/* Seconds from the start of the first of `count` runs to the end of the last, divided by `count`.
 */
FT_MUST_USE ft_status ft_target_time(const ft_target *target, int count, double *seconds,
                                     ft_error *err);

/* Run twice, and on for a tenth of a second: caches fill, clocks rise. */
FT_MUST_USE ft_status ft_target_warm(const ft_target *target, ft_error *err);

typedef struct ft_times {
    double median, least, p95; /* p95: 95 % of the samples take no longer */
} ft_times;

/* Sorts the samples; count >= 1. */
ft_times ft_times_of(double *sample, size_t count);

/* ---- Work --------------------------------------------------------------------------------- */

/* What must be computed and moved. */
typedef struct ft_work {
    double int8, real; /* additions and multiplications of products, by what is multiplied */
    double bytes;      /* read once and written once */
} ft_work;

/* The best that was measured on the device; 0: not measured. */
typedef struct ft_ceilings {
    double int8, real; /* operations of products a second */
    double copy;       /* bytes read and written a second */
    double read;       /* bytes read a second, by products of one row */
} ft_ceilings;

ft_work ft_work_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch);

/* The seconds that this work takes at the best rate, or at that of copying if that is longer. */
double ft_work_roof(const ft_work *work, const ft_ceilings *ceilings);

/*
 * Measure a device with the kernels that plans run: the best rate of square products of 512 to 8192
 * of each kind that `plan` has, a copy of 256 MiB and a
 * product of one row with as much.
 */
FT_MUST_USE ft_status ft_ceilings_measure(ft_ceilings *out, const ft_plan *plan, const char *device,
                                          int threads, ft_error *err);

/* ---- Single products ---------------------------------------------------------------------- */

/* act(x . w^T + b), x [m, k], w [n, k], y [m, n]. */
typedef struct ft_product {
    size_t m, n, k;
    ft_dtype x, w, y; /* FT_I8: codes; w U4 or U8: in blocks ... */
    int32_t group;    /* ... of so many inputs, ... */
    bool by_codes;    /* ... for which they become codes too */
    ft_activation activation;
} ft_product;

/*
 * The product that a LINEAR of a plan computes.  That of real numbers writes what it reads: logits
 * alone differ, and no operation may but theirs.
 */
ft_product ft_product_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch);

/* Times of one product of random numbers: of ten runs, or as many as 0.2 s allow. */
FT_MUST_USE ft_status ft_product_time(ft_times *out, const ft_product *product,
                                      const ft_backend *backend, ft_device *device, int threads,
                                      ft_error *err);

/* ---- ft-bench ----------------------------------------------------------------------------- */

typedef enum ft_bench_view { FT_BENCH_RUNS, FT_BENCH_OPS, FT_BENCH_GEMM } ft_bench_view;

/* What is the same for all cases. */
typedef struct ft_bench {
    const char *name, *scheme, *device;
    const ft_model *model;
    int threads, runs;
    bool verbose; /* say by which ways int8 products are computed, on standard error */
    double fill;
    double top_p; /* decoding draws tokens from so much mass; 0: it takes the most likely one */
    ft_bench_view view;
    ft_ceilings ceilings;
    ft_table cases, ops, kinds, products;
} ft_bench;

/* Time runs of `sequences` sequences of at most `length` tokens; adds rows to the tables. */
FT_MUST_USE ft_status ft_bench_case(ft_bench *bench, size_t sequences, size_t length,
                                    ft_error *err);

/* Time steps of `sequences` sequences that have `context` tokens in the cache; adds rows. */
FT_MUST_USE ft_status ft_bench_decode(ft_bench *bench, size_t sequences, size_t context,
                                      ft_error *err);

/* Texts to search for. */
typedef struct ft_bench_texts {
    size_t sources, length; /* tokens of the longest source */
    size_t beams, new_tokens;
} ft_bench_texts;

/* Time beam searches for the texts of random sources, each as long as it may be; adds rows. */
FT_MUST_USE ft_status ft_bench_search(ft_bench *bench, const ft_bench_texts *texts, ft_error *err);

/*
 * Make a session's last run the step of a search that finds the last of `new_tokens` tokens: to
 * every source of `requests` belongs a group of `beams` seats.  The run reads `rules` [sources],
 * which must outlive it.
 */
FT_MUST_USE ft_status ft_bench_step(ft_session *session, const ft_request *requests,
                                    const ft_bench_texts *texts, struct ft_beams *rules,
                                    ft_error *err);

/*
 * Draw true lengths whose mean is `fill` times `length`: spread evenly over a range that reaches up
 * to `length`, or, for a mean below half of it, down to 1; in random order.
 */
void ft_bench_lengths(size_t *out, size_t count, size_t length, double fill);

/* Columns of the matrix that was set, or tokens of the longest text in the cache. */
size_t ft_bench_length(const ft_session *session);

/* Time the operations of a session's last run one by one. */
FT_MUST_USE ft_status ft_bench_ops(ft_bench *bench, const ft_session *session, ft_error *err);

/* Time each shape of product that a session's last run has, alone. */
FT_MUST_USE ft_status ft_bench_products(ft_bench *bench, const ft_session *session, ft_error *err);

#endif
