/*
 * compare.h - a product against the processor's peak, memory, and another library's.
 *
 * All run in one process, in turns, each after an untimed call of its own; weights come from sets
 * in rotation, so that they are as cold as in a run of many layers.  Every time is a quantile over
 * the rounds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_COMPARE_H
#define FT_TESTS_BENCH_COMPARE_H

#include "kernels/cpu/base/isa.h"

#include <stdbool.h>
#include <stddef.h>

/* [-t THREADS] [-s SECONDS] [-q PERCENT] [PATTERN] */
typedef struct contest_options {
    ft_isa isa;
    int threads, percent; /* threads 0: one, then two */
    double seconds;
    const char *pattern;
} contest_options;

/* Ends the program where the command line is not such. */
contest_options contest_options_of(int argc, char **argv);

/* Whether a row of this name is asked for, with so many threads. */
bool contest_wants(const contest_options *options, const char *name, int threads);

typedef struct contest {
    void *setting;
    double (*ours)(void *setting, size_t turn);   /* seconds of one product */
    double (*theirs)(void *setting, size_t turn); /* NULL: there is no other */
    double (*peak)(ft_isa isa, int threads);      /* operations per second of nothing else */
    size_t sets, bytes;                           /* of weights; of one set */
    double operations;
} contest;

/* Seconds of one product, and of its operations alone or its weights' bytes alone. */
typedef struct contest_times {
    double ours, theirs, operations, bytes; /* theirs: 0 without another */
    size_t rounds;
} contest_times;

contest_times contest_run(const contest *c, const contest_options *options, int threads);

/*
 * Run a product of floats, m x n x k, and print its row: microseconds, GFLOPS, and what it reaches
 * of the peak, of reading (where rows are few), and of the other.
 */
void contest_print_floats(const contest *c, const contest_options *options, const char *name,
                          size_t m, int threads);

/* Multiply-adds of floats a second, each counting two; 0 where they are no single instruction. */
double peak_of_floats(ft_isa isa, int threads);

/* A dash where there is nothing to compare with. */
void print_ratio(double value);

#endif
