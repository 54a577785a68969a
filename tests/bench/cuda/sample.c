/*
 * sample.c - time of sampling on the GPU.
 *
 *     tests/bench/cuda/sample [VOCABULARY [ROWS [BLOCKS]]]
 *
 * Every case is a graph of launches, replayed; the time is the median of 30 replays, for one
 * launch, in us.  "warm": the logits are in the L2 cache, as after the LM head of a model; "cold":
 * launches rotate through several sets of logits.  Logits are random with standard deviation
 * `sigma`.  "read" is the time to read them at 4.1 TB/s, the copy bandwidth of an H200.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/sampling/sample.h"
#include "tests/bench/cuda/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 8, CONTEXT = 512 };
static const double bandwidth = 4.1e12;

static const struct {
    const char *name;
    ft_sampling_params sampling;
    bool logprob;
} methods[] = {
    { "greedy", { 0 }, false },
    { "greedy, logprob", { 0 }, true },
    { "temperature", { .temperature = 0.8f }, false },
    { "top-k 50", { .temperature = 0.8f, .top_k = 50 }, false },
    { "top-k 5000", { .temperature = 0.8f, .top_k = 5000 }, false },
    { "top-p 0.9", { .temperature = 0.8f, .top_p = 0.9f }, false },
    { "top-p 0.9, logprob", { .temperature = 0.8f, .top_p = 0.9f }, true },
    { "min-p 0.05", { .temperature = 0.8f, .min_p = 0.05f }, false },
    { "top-k, top-p, min-p",
      { .temperature = 0.8f, .top_k = 50, .top_p = 0.9f, .min_p = 0.05f },
      false },
    { "top-p, penalties",
      { .temperature = 0.8f, .top_p = 0.9f, .repetition_penalty = 1.1f, .presence_penalty = 0.1f },
      false },
    { "top-p, 3-grams", { .temperature = 0.8f, .top_p = 0.9f, .no_repeat_ngram = 3 }, false },
};

typedef struct field {
    ft_cuda_device_props props;
    ft_cuda_sample_params sets[SETS];
    size_t used; /* sets in use */
    unsigned blocks;
} field;

static int launch_sample(cudaStream_t stream, size_t i, void *data)
{
    field *f = data;
    return ft_cuda_sample_rows_with(f->blocks, &f->props, stream, &f->sets[i % f->used]);
}

static void *device_memory(size_t bytes)
{
    void *memory;
    must(cudaMalloc(&memory, bytes), "cudaMalloc");
    must(cudaMemset(memory, 0, bytes), "cudaMemset");
    return memory;
}

/* Approximately normal logits of standard deviation `sigma`, as sums of uniform numbers. */
static void fill_logits(float *device, size_t n, float sigma)
{
    static uint32_t state = 12345;
    float *host = malloc(n * sizeof *host);
    if (host == NULL)
        exit(1);
    for (size_t i = 0; i < n; i++) {
        float sum = -6.0f;
        for (int k = 0; k < 12; k++) {
            state = state * 1664525u + 1013904223u;
            sum += (float) (state >> 8) * 0x1p-24f;
        }
        host[i] = sum * sigma;
    }
    must(cudaMemcpy(device, host, n * sizeof *host, cudaMemcpyHostToDevice), "cudaMemcpy");
    free(host);
}

static void make_sets(field *f, size_t rows, size_t vocabulary, float sigma)
{
    for (int i = 0; i < SETS; i++) {
        float *logits = device_memory(rows * vocabulary * sizeof *logits);
        fill_logits(logits, rows * vocabulary, sigma);
        f->sets[i] = (ft_cuda_sample_params){
            .memory = { device_memory(rows * CONTEXT * 4), device_memory(rows * vocabulary * 4),
                        device_memory(rows * 4), CONTEXT, vocabulary },
            .logits = logits,
            .sampling = device_memory(rows * sizeof(ft_sampling_params)),
            .rows = rows,
            .token = device_memory(rows * 4),
            .scratch = device_memory(ft_cuda_sample_scratch(&f->props, rows, vocabulary) + 16),
        };
    }
}

static void free_sets(field *f)
{
    for (int i = 0; i < SETS; i++) {
        const ft_cuda_sample_params *s = &f->sets[i];
        cudaFree((void *) (uintptr_t) s->logits);
        cudaFree((void *) (uintptr_t) s->sampling);
        cudaFree(s->memory.history);
        cudaFree(s->memory.seen);
        cudaFree(s->memory.last);
        cudaFree(s->token);
        cudaFree(s->scratch);
    }
}

static void set_method(field *f, size_t method, float *logprob)
{
    for (int i = 0; i < SETS; i++) {
        size_t rows = f->sets[i].rows;
        ft_sampling_params *choices = malloc(rows * sizeof *choices);
        if (choices == NULL)
            exit(1);
        for (size_t row = 0; row < rows; row++) {
            choices[row] = methods[method].sampling;
            choices[row].seed = row;
            choices[row].slot = (int32_t) row;
            choices[row].n_tokens = CONTEXT - 1;
        }
        must(cudaMemcpy((void *) (uintptr_t) f->sets[i].sampling, choices, rows * sizeof *choices,
                        cudaMemcpyHostToDevice),
             "cudaMemcpy");
        free(choices);
        f->sets[i].logprob = methods[method].logprob ? logprob : NULL;
    }
}

static double measure(field *f, size_t used)
{
    f->used = used;
    return replay(launch_sample, f);
}

static void report(field *f, size_t rows, size_t vocabulary, unsigned blocks, float sigma)
{
    float *logprob = device_memory(rows * sizeof *logprob);
    make_sets(f, rows, vocabulary, sigma);
    f->blocks = blocks > 0 ? blocks : ft_cuda_sample_ctas_per_row(&f->props, rows, vocabulary);
    printf("%4zu x %6zu, %u blocks, sigma %.1f, read %5.2f:\n", rows, vocabulary, f->blocks,
           (double) sigma, (double) (rows * vocabulary * 4) / bandwidth * 1e6);
    for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++) {
        set_method(f, m, logprob);
        double warm = measure(f, 1), cold = measure(f, SETS);
        printf("    %-20s warm %7.2f cold %7.2f\n", methods[m].name, warm, cold);
    }
    fflush(stdout);
    free_sets(f);
    cudaFree(logprob);
}

int main(int argc, char **argv)
{
    static const size_t all_rows[] = { 1, 16, 64, 128, 256 };
    static const size_t words[] = { 32000, 128256 };
    size_t vocabulary = argument(argc, argv, 1, 0), one = argument(argc, argv, 2, 0);
    unsigned blocks = (unsigned) argument(argc, argv, 3, 0);
    static field f;
    f.props = open_gpu();
    for (size_t v = 0; v < (vocabulary > 0 ? 1 : sizeof words / sizeof words[0]); v++)
        for (size_t r = 0; r < (one > 0 ? 1 : sizeof all_rows / sizeof all_rows[0]); r++)
            report(&f, one > 0 ? one : all_rows[r], vocabulary > 0 ? vocabulary : words[v], blocks,
                   2.0f);
    if (vocabulary == 0) {
        report(&f, 128, 32000, blocks, 0.5f);
        report(&f, 128, 32000, blocks, 5.0f);
    }
    return 0;
}
