/*
 * measure.h - shared by the CPU benchmarks: clocks, quantiles, memory bandwidth, and error exits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_MEASURE_H
#define FT_TESTS_BENCH_MEASURE_H

#include "runtime/error.h"

#include <stddef.h>
#include <time.h>

/* End the program with this message, or with that of a failed call. */
_Noreturn void fail(const char *text);
void must(ft_status status, const ft_error *err);

double seconds_of(clockid_t clock);

/* One thread is timed by its CPU clock, which excludes the time of other programs. */
double seconds_by(int threads);

/* Random numbers between -1 and 1, for free(). */
float *draw_floats(size_t count);

/* The value below which `percent` of the values are.  Sorts them in ascending order. */
double quantile(double *values, size_t count, int percent);

/* The sum of the results of all threads. */
typedef double part_of_sum(const void *job, int thread);
double sum_by_threads(int threads, part_of_sum *part, const void *job);

/* Sets the number of OpenMP threads, if a loaded library uses OpenMP. */
void set_openmp_threads(int threads);

/* Seconds to read memory, by seconds_by(): each thread reads its own part in two streams. */
double read_time(const void *memory, size_t bytes, int threads);

#endif
