/*
 * measure.h - what benchmarks on the CPU share: clocks, quantiles, the speed of memory, and an end
 * when something fails.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_MEASURE_H
#define FT_TESTS_BENCH_MEASURE_H

#include "runtime/error.h"

#include <stddef.h>
#include <time.h>

/* End the program with these words, or with those of a failed call. */
_Noreturn void fail(const char *text);
void must(ft_status status, const ft_error *err);

double seconds_of(clockid_t clock);

/* One thread is timed by its own clock, which stands still while others have the processor. */
double seconds_by(int threads);

/* Numbers between -1 and 1, for free(). */
float *draw_floats(size_t count);

/* The value below which `percent` of them lie.  They are sorted: the least comes first. */
double quantile(double *values, size_t count, int percent);

/* The sum of what each thread returns. */
typedef double part_of_sum(const void *job, int thread);
double sum_by_threads(int threads, part_of_sum *part, const void *job);

/* As many threads for a library that has those of OpenMP; nothing where none is loaded. */
void set_openmp_threads(int threads);

/* Seconds to read memory, by seconds_by(): each thread its own part, in two streams. */
double read_time(const void *memory, size_t bytes, int threads);

#endif
