/*
 * compare.c - see compare.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/compare.h"

#include "runtime/base/clock.h"
#include "runtime/mem.h"
#include "tests/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ROUNDS = 1000, MIN_ROUNDS = 5 };

benchmark_options benchmark_options_of(int argc, char **argv)
{
    benchmark_options o = { .percent = 50, .seconds = 2.0, .pattern = "" };
    ft_error err;
    for (int option; (option = getopt(argc, argv, "t:s:q:")) != -1;)
        switch (option) {
        case 't':
            o.threads = atoi(optarg);
            break;
        case 's':
            o.seconds = atof(optarg);
            break;
        case 'q':
            o.percent = atoi(optarg);
            break;
        default:
            exit(2);
        }
    if (optind < argc)
        o.pattern = argv[optind];
    if (o.percent < 0 || o.percent > 100)
        fail("a quantile is from 0 to 100 percent");
    must(ft_cpu_isa(&o.isa, &err), &err);
    return o;
}

bool benchmark_wants(const benchmark_options *o, const char *name, int threads)
{
    return strstr(name, o->pattern) != NULL && (o->threads == 0 || o->threads == threads);
}

/* Memory of the size of the weights that no kernel reads. */
static void *sweep_memory(size_t bytes)
{
    void *memory = ft_calloc_aligned(bytes);
    if (memory == NULL)
        fail("out of memory");
    memset(memory, 1, bytes);
    return memory;
}

static double timed(double (*call)(void *, size_t), const benchmark *c, size_t round)
{
    if (call == NULL)
        return 0.0;
    (void) call(c->setting, round + c->sets / 2);
    return call(c->setting, round);
}

benchmark_times benchmark_run(const benchmark *c, const benchmark_options *o, int threads)
{
    static double ours[MAX_ROUNDS], theirs[MAX_ROUNDS], alone[MAX_ROUNDS], reading[MAX_ROUNDS];
    size_t stride = ft_round_up(c->bytes, 64), n = 0;
    char *memory = sweep_memory(c->sets * stride);
    for (double end = ft_monotonic_seconds() + o->seconds;
         n < MAX_ROUNDS && (n < MIN_ROUNDS || ft_monotonic_seconds() < end); n++) {
        ours[n] = timed(c->ours, c, n);
        alone[n] = c->operations / c->peak(o->isa, threads);
        reading[n] = read_time(memory + n % c->sets * stride, c->bytes, threads);
        theirs[n] = timed(c->theirs, c, n);
    }
    free(memory);
    return (benchmark_times){ .ours = quantile(ours, n, o->percent),
                              .theirs = quantile(theirs, n, o->percent),
                              .operations = quantile(alone, n, o->percent),
                              .bytes = quantile(reading, n, o->percent),
                              .rounds = n };
}

void print_ratio(double value)
{
    if (value > 0.0)
        printf(" %7.3f", value);
    else
        printf("       -");
}

void benchmark_print_floats(const benchmark *c, const benchmark_options *o, const char *name,
                            size_t m, int threads)
{
    benchmark_times t = benchmark_run(c, o, threads);
    printf("%-28s %d %10.1f %7.1f", name, threads, 1e6 * t.ours, 1e-9 * c->operations / t.ours);
    print_ratio(o->isa >= FT_ISA_AVX2 ? t.operations / t.ours : 0.0);
    print_ratio(m <= 16 ? t.bytes / t.ours : 0.0);
    print_ratio(t.theirs / t.ours);
    printf(" %5zu\n", t.rounds);
    fflush(stdout);
}
