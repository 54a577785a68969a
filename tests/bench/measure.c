/*
 * measure.c - see measure.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/measure.h"

#include "kernels/threads/team.h"
#include "runtime/mem.h"

#include <dlfcn.h>
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
    float *values = ft_calloc_aligned(count * sizeof *values);
    if (values == NULL)
        fail("out of memory");
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

typedef struct summing {
    part_of_sum *part;
    const void *job;
    double *sum; /* [threads] */
} summing;

static void add_part(const void *job, int thread, size_t first, size_t end)
{
    const summing *s = job;
    (void) thread;
    for (size_t i = first; i < end; i++)
        s->sum[i] = s->part(s->job, (int) i);
}

double sum_by_threads(int threads, part_of_sum *part, const void *job)
{
    double *sum = ft_calloc((size_t) threads, sizeof *sum), all = 0.0;
    if (sum == NULL)
        fail("out of memory");
    ft_parallel_for(threads, (size_t) threads, add_part, &(summing){ part, job, sum });
    for (int i = 0; i < threads; i++)
        all += sum[i];
    free(sum);
    return all;
}

void set_openmp_threads(int threads)
{
    void (*set)(int);
    *(void **) &set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set != NULL)
        set(threads);
}

typedef uint64_t line __attribute__((vector_size(64)));

typedef struct reading {
    const void *memory;
    size_t lines; /* of each of a thread's two streams */
} reading;

static double read_two_streams(const void *job, int thread)
{
    enum { AHEAD = 2048 };
    const reading *r = job;
    const line *near = (const line *) r->memory + 2 * r->lines * (size_t) thread;
    const line *far = near + r->lines;
    line total = { 0 };
    for (size_t i = 0; i < r->lines; i++) {
        __builtin_prefetch((const void *) ((uintptr_t) (near + i) + AHEAD));
        __builtin_prefetch((const void *) ((uintptr_t) (far + i) + AHEAD));
        total += near[i] + far[i];
    }
    return (double) (total[0] + total[7]);
}

double read_time(const void *memory, size_t bytes, int threads)
{
    static volatile double sink; /* keeps the sum from being optimized away */
    double start = seconds_by(threads);
    reading r = { memory, bytes / (size_t) threads / 2 / sizeof(line) };
    sink = sum_by_threads(threads, read_two_streams, &r);
    (void) sink;
    return seconds_by(threads) - start;
}
