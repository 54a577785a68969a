/*
 * beam_search.c - how long a step of beam search takes on the GPU.
 *
 *     beam_cuda
 *
 * Every case is a graph of launches, replayed; the figure is the median of 30 replays, for one
 * launch, in us: candidates of all lanes, and the merge behind them.  "warm": the logits are in the
 * second cache, as they are behind a model's last product; "cold": launches take turns with several
 * sets.  "read" is the time that the logits need at 4.1 TB/s, what an H200 copies.
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
    ft_cuda_chip chip;
    ft_cuda_beams args;
    float *logits[SETS];
    size_t used; /* of them */
    int (*launch)(const ft_cuda_chip *chip, void *stream, const ft_cuda_beams *args);
} field;

static int launch_step(cudaStream_t stream, size_t i, void *data)
{
    const field *f = data;
    ft_cuda_beams args = f->args;
    args.logits = f->logits[i % f->used];
    return f->launch(&f->chip, stream, &args);
}

static void *device_memory(size_t bytes)
{
    void *memory;
    must(cudaMalloc(&memory, bytes), "cudaMalloc");
    must(cudaMemset(memory, 0, bytes), "cudaMemset");
    return memory;
}

/* Normal logits of standard deviation 2, by sums of uniform numbers. */
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

/* The step in the middle of texts: lanes with scores, origins and tokens. */
static void fill_memory(const ft_cuda_beams *a, size_t width)
{
    size_t seats = a->seats;
    ft_beam *lanes = calloc(seats, sizeof *lanes);
    int32_t *history = malloc(seats * CONTEXT * sizeof *history);
    int32_t *origin = malloc(seats * CONTEXT * sizeof *origin);
    if (lanes == NULL || history == NULL || origin == NULL)
        exit(1);
    for (size_t i = 0; i < seats; i++)
        lanes[i].score = (float) (i % width) * -0.01f;
    for (size_t i = 0; i < seats * CONTEXT; i++) {
        history[i] = (int32_t) (i * 7919 % a->memory.vocabulary);
        origin[i] = (int32_t) (i / CONTEXT % width);
    }
    must(cudaMemcpy(a->memory.beam, lanes, seats * sizeof *lanes, cudaMemcpyHostToDevice), "copy");
    must(cudaMemcpy(a->memory.history, history, seats * CONTEXT * 4, cudaMemcpyHostToDevice),
         "copy");
    must(cudaMemcpy(a->memory.origin, origin, seats * CONTEXT * 4, cudaMemcpyHostToDevice), "copy");
    free(lanes);
    free(history);
    free(origin);
}

static const ft_beams *make_groups(size_t groups, size_t width, int32_t ngram)
{
    ft_beams *beams = calloc(groups, sizeof *beams),
             *device = device_memory(groups * sizeof *beams);
    if (beams == NULL)
        exit(1);
    for (size_t i = 0; i < groups; i++) {
        beams[i] = (ft_beams){ .seat = (int32_t) (i * width),
                               .row = (int32_t) (i * width),
                               .width = (int32_t) width,
                               .parts = 1,
                               .prompt = 1,
                               .known = 16,
                               .longest = CONTEXT,
                               .forced = -1,
                               .ngram = ngram,
                               .ends = 1,
                               .end = { 2 } };
        ft_beams_measure(&beams[i], 1.0);
    }
    must(cudaMemcpy(device, beams, groups * sizeof *beams, cudaMemcpyHostToDevice), "cudaMemcpy");
    free(beams);
    return device;
}

/* Lanes change from launch to launch, but there are always as many. */
static double measure(field *f, size_t used,
                      int (*launch)(const ft_cuda_chip *, void *, const ft_cuda_beams *))
{
    f->used = used;
    f->launch = launch;
    fill_memory(&f->args, f->args.widest);
    return replay(launch_step, f);
}

static void report(field *f, size_t groups, size_t width, size_t vocabulary, int32_t ngram)
{
    size_t seats = groups * width, context = seats * CONTEXT * sizeof(int32_t);
    f->args = (ft_cuda_beams){
        .memory = { .last = device_memory(seats * 4),
                    .history = device_memory(context),
                    .origin = device_memory(context),
                    .finished = device_memory(context),
                    .beam = device_memory(seats * sizeof(ft_beam)),
                    .context = CONTEXT,
                    .vocabulary = vocabulary },
        .beams = make_groups(groups, width, ngram),
        .groups = groups,
        .widest = width,
        .scratch = device_memory(ft_cuda_beam_scratch(seats, vocabulary)),
        .seats = seats,
    };
    for (int i = 0; i < SETS; i++)
        f->logits[i] = random_logits(seats * vocabulary);
    printf("%4zu texts x %2zu lanes x %6zu, ngram %d, read %6.2f: ", groups, width, vocabulary,
           ngram, (double) (seats * vocabulary * 4) / bandwidth * 1e6);
    double warm = measure(f, 1, ft_cuda_beam_step), cold = measure(f, SETS, ft_cuda_beam_step);
    printf("warm %7.2f cold %7.2f, ", warm, cold);
    printf("rows alone %7.2f, merge alone %7.2f\n", measure(f, 1, ft_cuda_beam_rows),
           measure(f, 1, ft_cuda_beam_merge));
    fflush(stdout);
    void *all[] = { f->args.memory.last,   f->args.memory.history,
                    f->args.memory.origin, f->args.memory.finished,
                    f->args.memory.beam,   (void *) (uintptr_t) f->args.beams,
                    f->args.scratch };
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
    f.chip = open_chip();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        report(&f, cases[i].groups, cases[i].width, cases[i].vocabulary, cases[i].ngram);
    return 0;
}
