/*
 * operands.c - see operands.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/cuda/operands.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum {
    PERIOD = 1 << 20
}; /* elements that repeat, because generating all of them takes longer than measuring */

size_t operand_bytes(ft_dtype dtype)
{
    return dtype == FT_F32 || dtype == FT_I32 ? 4 : dtype == FT_F16 ? 2 : dtype == FT_I8 ? 1 : 0;
}

static uint32_t next_random(void)
{
    static uint32_t state = 12345;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void fill(unsigned char *host, size_t n, ft_dtype dtype)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t random = next_random();
        if (dtype == FT_I8)
            ((int8_t *) host)[i] = (int8_t) (random % 255 - 127);
        else if (dtype == FT_F16)
            ((uint16_t *) (void *) host)[i] = (uint16_t) ((random & 0x87ff) | 0x3800);
        else if (dtype == FT_I32)
            ((uint32_t *) (void *) host)[i] = 0;
        else
            ((uint32_t *) (void *) host)[i] = ((random << 8) & 0x80ffff00) | 0x3f000000;
    }
}

void *random_operand(size_t n, ft_dtype dtype)
{
    size_t period = n < PERIOD ? n : PERIOD, bytes = n * operand_bytes(dtype);
    unsigned char *host = malloc(period * operand_bytes(dtype));
    char *memory;
    if (host == NULL)
        exit(1);
    fill(host, period, dtype);
    must(cudaMalloc((void **) &memory, bytes), "cudaMalloc");
    for (size_t at = 0; at < bytes; at += period * operand_bytes(dtype)) {
        size_t all = period * operand_bytes(dtype), rest = bytes - at;
        must(cudaMemcpy(memory + at, host, rest < all ? rest : all, cudaMemcpyHostToDevice),
             "cudaMemcpy");
    }
    free(host);
    return memory;
}

ft_view operand_view(size_t rows, size_t cols, ft_dtype dtype)
{
    ft_view view = {
        .rows = rows, .cols = cols, .dtype = dtype, .scale = dtype == FT_I8 ? 0.03f : 0.0f
    };
    if (dtype != FT_NO_OPERAND)
        view.data = random_operand(rows * cols, dtype);
    return view;
}

static void free_operands(ft_cuda_args *args)
{
    ft_view *all[] = { &args->in[0], &args->in[1], &args->out, &args->quantized, &args->second };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        cudaFree(all[i]->data);
        cudaFree(all[i]->scales);
    }
}

void operand_sets_init(operand_sets *sets, const ft_cuda_device_props *props,
                       int (*run)(const ft_cuda_args *), double bytes, double cold)
{
    size_t wanted = (size_t) (cold / bytes) + 2;
    memset(sets, 0, sizeof *sets);
    sets->props = *props;
    sets->run = run;
    sets->count = wanted < LAUNCHES ? wanted : LAUNCHES;
    sets->is_cold = (double) sets->count * bytes >= cold;
}

void operand_sets_fini(operand_sets *sets)
{
    for (size_t i = 0; i < sets->count; i++)
        free_operands(&sets->set[i]);
}

/* The first `count` sets. */
typedef struct turns {
    const operand_sets *sets;
    size_t count;
} turns;

static int launch_set(cudaStream_t stream, size_t i, void *data)
{
    const turns *t = data;
    ft_cuda_args args = t->sets->set[i % t->count];
    args.props = &t->sets->props;
    args.stream = stream;
    return t->sets->run(&args);
}

double operand_sets_time(const operand_sets *sets, size_t count)
{
    return replay(launch_set, &(turns){ sets, count });
}
