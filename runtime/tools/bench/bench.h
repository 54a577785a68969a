/*
 * bench.h - the parts of ft-bench: timing, cost model and roofline.
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

/* What is benchmarked: a plan, or one operation of it. */
typedef struct ft_bench_target {
    const ft_backend *backend;
    ft_exec *exec;
    const ft_batch *batch;
    int op; /* -1: all */
} ft_bench_target;

/* Whether run() is asynchronous. */
bool ft_bench_is_async(const ft_bench_target *target);

/* Average seconds of `count` back-to-back runs, including the final synchronization. */
FT_MUST_USE ft_status ft_bench_time_runs(const ft_bench_target *target, int count, double *seconds,
                                         ft_error *err);

/* Warm up: at least two runs and 0.1 s, for caches and clocks. */
FT_MUST_USE ft_status ft_bench_warm_up(const ft_bench_target *target, ft_error *err);

typedef struct ft_bench_times {
    double median, min, p95, p99; /* p95, p99: percentiles */
} ft_bench_times;

/* Sorts the samples.  All are NaN without samples. */
ft_bench_times ft_bench_summarize(double *sample, size_t count);

/* ---- Roofline ----------------------------------------------------------------------------- */

/* Peak rates measured on the device; 0: not measured. */
typedef struct ft_roofline {
    double int8_ops, float_flops; /* ops per second in GEMMs */
    double copy;                  /* bytes read plus written per second */
    double read;                  /* bytes read per second, by GEMVs */
} ft_roofline;

/* Roofline time in seconds: the larger of compute time and memory time. */
double ft_roofline_seconds(const ft_op_cost *work, const ft_roofline *roofline);

/*
 * Measure the roofline with the kernels that plans use: the best rate of square GEMMs from 512 to
 * 8192 of each input type in `plan`, a copy of 256 MiB, and a GEMV with a matrix of 256 MiB.
 */
FT_MUST_USE ft_status ft_roofline_measure(ft_roofline *out, const ft_plan *plan, const char *device,
                                          int threads, ft_error *err);

/* ---- Single GEMMs ------------------------------------------------------------------------- */

/*
 * The GEMM of a LINEAR operation.  The output dtype of a float GEMM is set to its input dtype; in
 * plans they differ only for logits.
 */
ft_gemm_problem ft_bench_gemm_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch);

/* Time one GEMM on random data: ten samples, or as many as fit into 0.2 s. */
FT_MUST_USE ft_status ft_bench_gemm_time(ft_bench_times *out, const ft_gemm_problem *gemm,
                                         const ft_backend *backend, ft_device *device, int threads,
                                         ft_error *err);

/* ---- ft-bench ----------------------------------------------------------------------------- */

typedef enum ft_bench_view {
    FT_BENCH_RUNS,
    FT_BENCH_OPS,
    FT_BENCH_GEMM,
    FT_BENCH_TUNE
} ft_bench_view;

/*
 * The times of a model in all schemes, for ft-calibrate --times: the member "scheme_times" of the
 * results.  Times are medians in microseconds.
 */
typedef struct ft_bench_scheme_times {
    bool is_wanted;
    json_t
        *passes; /* [{scheme, pass, sequences, length, us, count}]; NULL: not wanted, no memory */
    json_t *ops; /* [{scheme, kind, name, us, count}]; of linears the weight, with rows and cols */
} ft_bench_scheme_times;

/* State common to all cases. */
typedef struct ft_bench {
    const char *name, *scheme, *device;
    const ft_model *model;
    int threads, runs;
    bool verbose; /* print the selected int8 GEMM kernels to standard error */
    double fill;
    double top_p; /* nucleus sampling of decode steps; 0: greedy */
    ft_bench_view view;
    ft_roofline roofline;
    ft_table cases, ops, kinds, gemms;
    ft_bench_scheme_times times;
} ft_bench;

/* Time forward passes of `sequences` sequences of at most `length` tokens; adds table rows. */
FT_MUST_USE ft_status ft_bench_forward(ft_bench *bench, size_t sequences, size_t length,
                                       ft_error *err);

/* Time decode steps of `sequences` sequences with `context` tokens in the KV cache; adds rows. */
FT_MUST_USE ft_status ft_bench_decode(ft_bench *bench, size_t sequences, size_t context,
                                      ft_error *err);

/* Requests that arrive by a Poisson process, for an engine. */
typedef struct ft_bench_load_shape {
    double rate, seconds;      /* requests per second; duration of the arrivals */
    size_t sequences;          /* that run at the same time, at most */
    size_t length, new_tokens; /* of the longest prompt and answer */
} ft_bench_load_shape;

/*
 * Time the tokens of such requests, and compare a few answers with those alone; adds a row.
 * FT_EDEVICE: an answer is another one.
 */
FT_MUST_USE ft_status ft_bench_load(ft_bench *bench, const ft_bench_load_shape *shape,
                                    ft_error *err);

/* Requests that an engine gets all at once. */
typedef struct ft_bench_throughput_shape {
    size_t sequences;          /* that run at the same time, at most; 0: as many as fit */
    size_t length, new_tokens; /* of the longest prompt and answer */
    size_t requests;           /* 0: as many as run at the same time */
    size_t cache_tokens;       /* of the KV cache; 0: what fits */
    size_t chunk;              /* tokens of a pass; 0: a default */
} ft_bench_throughput_shape;

/*
 * Time all of them, and compare a few answers with those alone; adds a row.  FT_EDEVICE: an answer
 * is another one.
 */
FT_MUST_USE ft_status ft_bench_throughput(ft_bench *bench, const ft_bench_throughput_shape *shape,
                                          ft_error *err);

/*
 * Find the fastest kernels for the GEMMs of the model and write them to the tuning file
 * (ft_tuning_path()); adds rows.  FT_EUNSUPPORTED: there is nothing to choose.
 */
FT_MUST_USE ft_status ft_bench_tune(ft_bench *bench, const char *path, ft_error *err);

/* Shape of a beam search. */
typedef struct ft_bench_beam_search_shape {
    size_t sources, length; /* tokens of the longest source */
    size_t beams, new_tokens;
} ft_bench_beam_search_shape;

/* Time beam searches for random sources, to the maximum length; adds rows. */
FT_MUST_USE ft_status ft_bench_beam_search(ft_bench *bench, const ft_bench_beam_search_shape *texts,
                                           ft_error *err);

/*
 * Run a session up to the beam search step that samples the last of `new_tokens` tokens, with a
 * group of `beams` slots per source of `requests`.  The step reads `params` [sources], which must
 * outlive it.
 */
FT_MUST_USE ft_status ft_bench_beam_step(ft_session *session, const ft_request *requests,
                                         const ft_bench_beam_search_shape *texts,
                                         struct ft_beam_params *params, ft_error *err);

/*
 * Random sequence lengths with mean fill * length, in shuffled order: uniform over a range that
 * ends at `length`, or, for a mean below half of it, starts at 1.
 */
void ft_bench_lengths(size_t *out, size_t count, size_t length, double fill);

/* Columns of the padded input, or tokens of the longest sequence in the KV cache. */
static inline size_t ft_bench_length(const ft_session *session)
{
    return session->chunks != NULL ? session->batch.context : session->text[FT_PADDED_INPUT].cols;
}

/*
 * Time the operations of a session's last pass one by one; `pass` is the median time of all of it
 * in seconds.
 */
FT_MUST_USE ft_status ft_bench_ops(ft_bench *bench, const ft_session *session, double pass,
                                   ft_error *err);

/* Add a pass, and the times of its operations [nop] in seconds, to the times of all schemes. */
void ft_bench_scheme_times_add(ft_bench *bench, const ft_session *session, double pass,
                               const double *seconds);

/* The member "scheme_times" of the results; NULL: no memory. */
json_t *ft_bench_scheme_times_json(const ft_bench_scheme_times *times, int32_t group);
void ft_bench_scheme_times_fini(ft_bench_scheme_times *times);

/* Time each GEMM shape of a session's last pass on its own. */
FT_MUST_USE ft_status ft_bench_gemms(ft_bench *bench, const ft_session *session, ft_error *err);

#endif
