/*
 * measure.c - see measure.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/measure.h"

#include "runtime/mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void fail(const char *text)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
    exit(1);
}

void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        fail(err->text);
}

double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

double seconds_by(int threads)
{
    return seconds_of(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC);
}

float *draw_floats(size_t count)
{
    float *values = ft_alloc(count * sizeof *values);
    if (values == NULL)
        fail("no memory");
    for (size_t i = 0; i < count; i++)
        values[i] = (float) (rand() % 2001 - 1000) / 1024.0f;
    return values;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

double quantile(double *values, size_t count, int percent)
{
    qsort(values, count, sizeof *values, ascending);
    return values[(count - 1) * (size_t) percent / 100];
}

typedef uint64_t line __attribute__((vector_size(64)));

double read_time(const void *memory, size_t bytes, int threads)
{
    enum { AHEAD = 2048 };
    double start = seconds_by(threads);
    uint64_t sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
    for (int thread = 0; thread < threads; thread++) {
        size_t lines = bytes / (size_t) threads / 2 / sizeof(line);
        const line *near = (const line *) memory + 2 * lines * (size_t) thread, *far = near + lines;
        line total = { 0 };
        for (size_t i = 0; i < lines; i++) {
            __builtin_prefetch((const void *) ((uintptr_t) (near + i) + AHEAD));
            __builtin_prefetch((const void *) ((uintptr_t) (far + i) + AHEAD));
            total += near[i] + far[i];
        }
        sum += total[0] + total[7];
    }
    static volatile uint64_t sink; /* the sum is needed */
    sink = sum;
    (void) sink;
    return seconds_by(threads) - start;
}
