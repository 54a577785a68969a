/*
 * compare.h - a GEMM against the processor's peak, memory bandwidth and another library.
 *
 * All run interleaved in one process, each after an untimed warm-up call; weights rotate through
 * several sets, so that they are as cold as in a forward pass of many layers.  Every time is a
 * quantile over the rounds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_COMPARE_H
#define FT_TESTS_BENCH_COMPARE_H

#include "kernels/cpu/base/isa.h"

#include <stdbool.h>
#include <stddef.h>

/* [-t THREADS] [-s SECONDS] [-q PERCENT] [PATTERN] */
typedef struct benchmark_options {
    ft_isa isa;
    int threads, percent; /* threads 0: one, then two */
    double seconds;
    const char *pattern;
} benchmark_options;

/* Ends the program if the command line is invalid. */
benchmark_options benchmark_options_of(int argc, char **argv);

/* Whether the options select a row of this name and number of threads. */
bool benchmark_wants(const benchmark_options *options, const char *name, int threads);

typedef struct benchmark {
    void *setting;
    double (*ours)(void *setting, size_t turn);   /* seconds of one GEMM */
    double (*theirs)(void *setting, size_t turn); /* the baseline; NULL: none */
    double (*peak)(ft_isa isa, int threads);      /* peak operations per second */
    size_t sets, bytes;                           /* of weights; of one set */
    double operations;
} benchmark;

/* Seconds of one GEMM, of its operations at peak speed, and of reading its weights. */
typedef struct benchmark_times {
    double ours, theirs, operations, bytes; /* theirs: 0 without a baseline */
    size_t rounds;
} benchmark_times;

benchmark_times benchmark_run(const benchmark *c, const benchmark_options *options, int threads);

/*
 * Runs a float GEMM, m x n x k, and prints its row: microseconds, GFLOPS, and the ratios to the
 * peak, to memory bandwidth (for small m), and to the baseline.
 */
void benchmark_print_floats(const benchmark *c, const benchmark_options *options, const char *name,
                            size_t m, int threads);

/* Peak float operations per second, a fused multiply-add counting two; 0 without FMA. */
double peak_of_floats(ft_isa isa, int threads);

/* Prints a ratio, or a dash where there is none. */
void print_ratio(double value);

#endif
