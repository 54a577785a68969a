/*
 * quantize.c - time to quantize the matrices that read one input, by GPTAQ on a GPU:
 * quantize [-c 4096] [-m 4096] [-n 2048] [-g 128] [-s 8].
 *
 * Sums of one sample of -n rows and -c columns, their factorization, and one matrix of -m rows: to
 * nearest, by GPTQ, and with -s sweeps of coordinate descent. The host works in between, as in
 * calibration: weights are copied from host memory, values to it. Seconds; of sums and matrices the
 * shortest of three.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/exec.h"
#include "kernels/groupwise.h"
#include "kernels/half.h"
#include "runtime/mem.h"
#include "runtime/model/devices.h"
#include "tests/bench/measure.h"
#include "tests/lib/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RUNS = 3 };

static const ft_weight_quantizer *const calls = &ft_cuda_weight_quantizer;

static void *allocate(size_t bytes)
{
    void *memory = ft_calloc(1, bytes);
    if (memory == NULL)
        fail("no memory");
    return memory;
}

static void must_run(cudaError_t code)
{
    if (code != cudaSuccess)
        fail(cudaGetErrorString(code));
}

/* Correlated float16 numbers, [rows, cols]. */
static uint16_t *random_rows(size_t rows, size_t cols, double size, uint64_t seed)
{
    uint16_t *out = allocate(rows * cols * sizeof *out);
    rng r = { seed };
    for (size_t row = 0; row < rows; row++) {
        double shared = rng_uniform(&r, -size, size);
        for (size_t col = 0; col < cols; col++)
            out[row * cols + col] =
                ft_f16_from_float((float) (shared + rng_uniform(&r, -size, size)));
    }
    return out;
}

/* A plan with one value, whose elements are random. */
typedef struct pass {
    ft_value value;
    ft_plan plan;
    ft_exec exec;
} pass;

static void make_pass(pass *p, ft_device *device, size_t rows, size_t cols, uint64_t seed)
{
    uint16_t *x = random_rows(rows, cols, 1.0, seed);
    p->value = (ft_value){ .name = "x", .cols = (int32_t) cols, .dtype = FT_F16 };
    p->plan = (ft_plan){ .value = &p->value, .nvalue = 1 };
    p->exec = (ft_exec){ .plan = &p->plan, .device = device };
    must_run(cudaMalloc((void **) &p->exec.arena, rows * cols * sizeof *x));
    must_run(cudaMemcpy(p->exec.arena, x, rows * cols * sizeof *x, cudaMemcpyHostToDevice));
    free(x);
}

/* Seconds since `start`, when the device has nothing left to do. */
static double elapsed(double start)
{
    must_run(cudaDeviceSynchronize());
    return seconds_of(CLOCK_MONOTONIC) - start;
}

static double shortest(double old, double seconds)
{
    return old > 0.0 && old < seconds ? old : seconds;
}

static void time_input(ft_quantizer *q, ft_device *device, size_t rows, size_t cols)
{
    static pass prefix, original;
    double sums = 0.0;
    ft_error err;
    make_pass(&prefix, device, rows, cols, 1);
    make_pass(&original, device, rows, cols, 2);
    for (int run = 0; run <= RUNS; run++) { /* the first one allocates memory */
        must(calls->begin(q, cols, true, &err), &err);
        must(calls->choose_unit(q, &prefix.exec, 0, rows, &err), &err);
        must_run(cudaDeviceSynchronize());
        double start = seconds_of(CLOCK_MONOTONIC);
        must(calls->add(q, &prefix.exec, 0, &original.exec, 0, rows, NULL, &err), &err);
        sums = run > 0 ? shortest(sums, elapsed(start)) : 0.0;
    }
    printf("%zu columns: sums of a sample of %zu rows %.6f s\n", cols, rows, sums);
    double start = seconds_of(CLOCK_MONOTONIC);
    must(calls->factorize(q, "x", &err), &err);
    printf("%zu columns: factors %.3f s\n", cols, elapsed(start));
}

static void time_matrix(ft_quantizer *q, const ft_quantizer_matrix *m,
                        const ft_quantizer_options *options, const char *method)
{
    size_t scales =
        ft_groupwise_scale_count(&(ft_groupwise){ .group = options->group }, m->rows, m->cols);
    char *bytes = allocate(ft_panel_bytes(m->rows, m->cols, options->bits) + 3 * scales);
    ft_quantizer_error error;
    ft_error err;
    double seconds = 0.0;
    for (int run = 0; run <= RUNS; run++) {
        double start = seconds_of(CLOCK_MONOTONIC);
        must(calls->quantize(q, m, options, bytes, &error, &err), &err);
        seconds = run > 0 ? shortest(seconds, elapsed(start)) : 0.0;
    }
    printf("%zu x %zu: %s %.3f s, output error %.6f\n", m->rows, m->cols, method, seconds,
           error.out_noise / error.out_signal);
    free(bytes);
}

int main(int argc, char **argv)
{
    int cols = 4096, rows = 4096, tokens = 2048, group = 128, sweeps = FT_QUANTIZER_SWEEPS;
    const ft_backend *backend;
    ft_device *device;
    ft_quantizer *q;
    ft_error err;
    for (int option; (option = getopt(argc, argv, "c:m:n:g:s:")) != -1;)
        *(option == 'c'   ? &cols
          : option == 'm' ? &rows
          : option == 'n' ? &tokens
          : option == 'g' ? &group
                          : &sweeps) = option == '?' ? -1 : atoi(optarg);
    if (cols < 1 || rows < 1 || tokens < 1 || group < 0 || sweeps < 0 || optind != argc)
        fail("usage: quantize [-c COLUMNS] [-m ROWS] [-n TOKENS] [-g GROUP] [-s SWEEPS]");
    must(ft_device_open(&backend, &device, "cuda", &err), &err);
    must(calls->open(&q, device, &err), &err);
    time_input(q, device, (size_t) tokens, (size_t) cols);
    uint16_t *data = random_rows((size_t) rows, (size_t) cols, 0.05, 3);
    const ft_quantizer_matrix m = {
        .name = "w", .dtype = FT_F16, .data = data, .rows = (size_t) rows, .cols = (size_t) cols
    };
    ft_quantizer_options options = { .bits = 4, .group = group, .clip = true };
    time_matrix(q, &m, &options, "to nearest");
    options.gptq = true;
    time_matrix(q, &m, &options, "GPTQ");
    options.sweeps = sweeps;
    time_matrix(q, &m, &options, "GPTQ and coordinate descent");
    free(data);
    calls->close(q);
    backend->close(device);
    return 0;
}
