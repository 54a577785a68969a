/*
 * beam_search.c - time of a beam search step on the GPU.
 *
 *     tests/bench/cuda/beam_search
 *
 * Every case is a graph of launches, replayed; the time is the median of 30 replays, for one
 * launch, in us: the candidates of all beams, and their merge.  "warm": the logits are in the L2
 * cache, as after the LM head of a model; "cold": launches rotate through several sets.  "read" is
 * the time to read the logits at 4.1 TB/s, the copy bandwidth of an H200.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/sampling/beam_search.h"
#include "tests/bench/cuda/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 4, CONTEXT = 128 };
static const double bandwidth = 4.1e12;

typedef struct field {
    ft_cuda_device_props props;
    ft_cuda_beam_params args;
    float *logits[SETS];
    size_t used; /* sets in use */
    int (*launch)(const ft_cuda_device_props *props, void *stream, const ft_cuda_beam_params *args);
} field;

static int launch_step(cudaStream_t stream, size_t i, void *data)
{
    const field *f = data;
    ft_cuda_beam_params args = f->args;
    args.logits = f->logits[i % f->used];
    return f->launch(&f->props, stream, &args);
}

static void *device_memory(size_t bytes)
{
    void *memory;
    must(cudaMalloc(&memory, bytes), "cudaMalloc");
    must(cudaMemset(memory, 0, bytes), "cudaMemset");
    return memory;
}

/* Approximately normal logits of standard deviation 2, as sums of uniform numbers. */
static float *random_logits(size_t n)
{
    static uint32_t state = 12345;
    float *host = malloc(n * sizeof *host), *device = device_memory(n * sizeof *device);
    if (host == NULL)
        exit(1);
    for (size_t i = 0; i < n; i++) {
        float sum = -6.0f;
        for (int k = 0; k < 12; k++) {
            state = state * 1664525u + 1013904223u;
            sum += (float) (state >> 8) * 0x1p-24f;
        }
        host[i] = sum * 2.0f;
    }
    must(cudaMemcpy(device, host, n * sizeof *host, cudaMemcpyHostToDevice), "cudaMemcpy");
    free(host);
    return device;
}

/* A step in the middle of a search: beams with scores, cache indirection and tokens. */
static void fill_memory(const ft_cuda_beam_params *a, size_t width)
{
    size_t num_slots = a->num_slots;
    ft_beam *beam = calloc(num_slots, sizeof *beam);
    int32_t *history = malloc(num_slots * CONTEXT * sizeof *history);
    int32_t *cache_indirection = malloc(num_slots * CONTEXT * sizeof *cache_indirection);
    if (beam == NULL || history == NULL || cache_indirection == NULL)
        exit(1);
    for (size_t i = 0; i < num_slots; i++)
        beam[i].score = (float) (i % width) * -0.01f;
    for (size_t i = 0; i < num_slots * CONTEXT; i++) {
        history[i] = (int32_t) (i * 7919 % a->memory.vocabulary);
        cache_indirection[i] = (int32_t) (i / CONTEXT % width);
    }
    must(cudaMemcpy(a->memory.beam, beam, num_slots * sizeof *beam, cudaMemcpyHostToDevice),
         "copy");
    must(cudaMemcpy(a->memory.history, history, num_slots * CONTEXT * 4, cudaMemcpyHostToDevice),
         "copy");
    must(cudaMemcpy(a->memory.cache_indirection, cache_indirection, num_slots * CONTEXT * 4,
                    cudaMemcpyHostToDevice),
         "copy");
    free(beam);
    free(history);
    free(cache_indirection);
}

static const ft_beam_params *make_groups(size_t groups, size_t width, int32_t ngram)
{
    ft_beam_params *beams = calloc(groups, sizeof *beams),
                   *device = device_memory(groups * sizeof *beams);
    if (beams == NULL)
        exit(1);
    for (size_t i = 0; i < groups; i++) {
        beams[i] = (ft_beam_params){ .slot = (int32_t) (i * width),
                                     .row = (int32_t) (i * width),
                                     .width = (int32_t) width,
                                     .num_beam_groups = 1,
                                     .prompt = 1,
                                     .n_tokens = 16,
                                     .max_length = CONTEXT,
                                     .forced = -1,
                                     .no_repeat_ngram = ngram,
                                     .n_eos = 1,
                                     .eos = { 2 } };
        ft_beam_set_length_divisors(&beams[i], 1.0);
    }
    must(cudaMemcpy(device, beams, groups * sizeof *beams, cudaMemcpyHostToDevice), "cudaMemcpy");
    free(beams);
    return device;
}

/* The beams change from launch to launch, but their number does not. */
static double measure(field *f, size_t used,
                      int (*launch)(const ft_cuda_device_props *, void *,
                                    const ft_cuda_beam_params *))
{
    f->used = used;
    f->launch = launch;
    fill_memory(&f->args, f->args.widest);
    return replay(launch_step, f);
}

static void report(field *f, size_t groups, size_t width, size_t vocabulary, int32_t ngram)
{
    size_t num_slots = groups * width, context = num_slots * CONTEXT * sizeof(int32_t);
    f->args = (ft_cuda_beam_params){
        .memory = { .last = device_memory(num_slots * 4),
                    .history = device_memory(context),
                    .cache_indirection = device_memory(context),
                    .finished = device_memory(context),
                    .beam = device_memory(num_slots * sizeof(ft_beam)),
                    .context = CONTEXT,
                    .vocabulary = vocabulary },
        .beams = make_groups(groups, width, ngram),
        .groups = groups,
        .widest = width,
        .scratch = device_memory(ft_cuda_beam_scratch(num_slots, vocabulary)),
        .num_slots = num_slots,
    };
    for (int i = 0; i < SETS; i++)
        f->logits[i] = random_logits(num_slots * vocabulary);
    printf("%4zu texts x %2zu beams x %6zu, ngram %d, read %6.2f: ", groups, width, vocabulary,
           ngram, (double) (num_slots * vocabulary * 4) / bandwidth * 1e6);
    double warm = measure(f, 1, ft_cuda_beam_step), cold = measure(f, SETS, ft_cuda_beam_step);
    printf("warm %7.2f cold %7.2f, ", warm, cold);
    printf("rows alone %7.2f, merge alone %7.2f\n", measure(f, 1, ft_cuda_beam_candidates),
           measure(f, 1, ft_cuda_beam_merge));
    fflush(stdout);
    void *all[] = {
        f->args.memory.last,     f->args.memory.history, f->args.memory.cache_indirection,
        f->args.memory.finished, f->args.memory.beam,    (void *) (uintptr_t) f->args.beams,
        f->args.scratch
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        cudaFree(all[i]);
    for (int i = 0; i < SETS; i++)
        cudaFree(f->logits[i]);
}

int main(void)
{
    static const struct {
        size_t groups, width, vocabulary;
        int32_t ngram;
    } cases[] = {
        { 1, 4, 30000, 0 },  { 8, 4, 30000, 0 },  { 128, 4, 30000, 0 }, { 8, 1, 30000, 0 },
        { 8, 8, 30000, 0 },  { 8, 16, 30000, 0 }, { 8, 32, 30000, 0 },  { 8, 64, 30000, 0 },
        { 8, 4, 30000, 3 },  { 8, 32, 30000, 3 }, { 1, 4, 256206, 0 },  { 32, 4, 256206, 0 },
        { 1, 32, 30000, 0 },
    };
    static field f;
    f.props = open_gpu();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        report(&f, cases[i].groups, cases[i].width, cases[i].vocabulary, cases[i].ngram);
    return 0;
}
