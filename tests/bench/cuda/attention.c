/*
 * attention.c - time of self-attention on the GPU, against its rooflines.
 *
 *     tests/bench/cuda/attention [HEADS HEAD_SIZE [SEQUENCES LENGTH]]
 *
 * Every case is a graph of launches over input sets that together exceed the L2 cache; the time is
 * the median of 30 replays, for one launch.  "peak" compares 4 L^2 head_size operations per head
 * with 740 TFLOPS, which f16 GEMMs reach on an H200; "traffic" is the time to read q, k, v and
 * write y at 4.3 TB/s.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tensor.h"
#include "tests/bench/cuda/replay.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_SETS = 24 };

static const double peak_flops = 740e12, bandwidth = 4.3e12;

/* Random int8 values, which read as f16 are numbers between 2^-1 and 2. */
static void *random_bytes(size_t bytes, ft_dtype dtype)
{
    static uint32_t state = 12345;
    uint8_t *host = malloc(bytes);
    if (host == NULL)
        exit(1);
    for (size_t i = 0; i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        host[i] = (uint8_t) (state >> 24);
        if (dtype == FT_I8 && host[i] == 0x80)
            host[i] = 0;
        if (dtype != FT_I8 && i % 2 == 1)
            host[i] = (uint8_t) ((host[i] & 0x80) | (0x38 + (host[i] & 7)));
    }
    void *memory = device_copy(host, bytes);
    free(host);
    return memory;
}

typedef struct problem {
    size_t sequences, length;
    int heads, head_size;
    ft_dtype dtype;
} problem;

/* As in a forward pass, there is room for one more tile per sequence: ft_cuda_max_query_tiles(). */
static ft_cuda_query_tile *blocks_of(const problem *p, size_t *count)
{
    size_t each = (p->length + FT_CUDA_QUERY_TILE - 1) / FT_CUDA_QUERY_TILE;
    *count = p->sequences * p->length / FT_CUDA_QUERY_TILE + p->sequences;
    ft_cuda_query_tile *host = calloc(*count, sizeof *host);
    for (size_t i = 0; i < p->sequences * each; i++)
        host[i] = (ft_cuda_query_tile){ (int32_t) (i / each * p->length), (int32_t) p->length,
                                        (int32_t) (i % each * FT_CUDA_QUERY_TILE), 0 };
    ft_cuda_query_tile *device = device_copy(host, *count * sizeof *host);
    free(host);
    return device;
}

/* Sets of operands that rotate. */
typedef struct field {
    const ft_cuda_device_props *props;
    const ft_cuda_attention_args *sets;
    int count;
} field;

static int launch_attention(cudaStream_t stream, size_t i, void *data)
{
    const field *f = data;
    return ft_cuda_attention_launch(f->props, stream, &f->sets[i % (size_t) f->count]);
}

/* Microseconds of one launch. */
static double measure(const ft_cuda_device_props *props, const ft_cuda_attention_args *sets,
                      int count)
{
    return replay(launch_attention, &(field){ props, sets, count });
}

static void report(const ft_cuda_device_props *props, const problem *p)
{
    size_t bytes =
        p->sequences * p->length * (size_t) (p->heads * p->head_size) * ft_dtype_size(p->dtype);
    int count = (int) (120e6 / (4.0 * (double) bytes)) + 2;
    count = count > MAX_SETS ? MAX_SETS : count;
    ft_cuda_attention_args sets[MAX_SETS];
    size_t n_query_tiles;
    ft_cuda_query_tile *blocks = blocks_of(p, &n_query_tiles);
    void *memory[MAX_SETS][4];
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < 4; j++)
            memory[i][j] = random_bytes(bytes, p->dtype);
        sets[i] = (ft_cuda_attention_args){ .blocks = blocks,
                                            .n_query_tiles = n_query_tiles,
                                            .heads = p->heads,
                                            .head_size = p->head_size,
                                            .dtype = p->dtype,
                                            .tokens = p->sequences * p->length,
                                            .sequences = p->sequences,
                                            .q = memory[i][0],
                                            .k = memory[i][1],
                                            .v = memory[i][2],
                                            .y = memory[i][3],
                                            .score_scale = p->dtype == FT_I8 ? 4e-5f : 0.1f,
                                            .value_scale = 1e-2f,
                                            .y_inv_scale = 1e2f };
    }
    ft_cuda_device_props plain = *props;
    plain.has_pdl = false;
    double us = measure(&plain, sets, count), overlapped = measure(props, sets, count);
    double flops = 4.0 * (double) p->sequences * (double) p->length * (double) p->length *
                   (double) (p->heads * p->head_size);
    double best = us < overlapped ? us : overlapped;
    printf("%-4s %3zu x %4zu, %2d heads of %3d: %8.2f us, overlapped %8.2f; %6.1f TFLOPS, %4.1f %% "
           "of peak; traffic %5.2f us\n",
           p->dtype == FT_I8    ? "i8"
           : p->dtype == FT_F16 ? "f16"
           : p->dtype == FT_F32 ? "f32"
                                : "bf16",
           p->sequences, p->length, p->heads, p->head_size, us, overlapped, flops / best * 1e-6,
           flops / best * 1e8 / peak_flops, 4.0 * (double) bytes / bandwidth * 1e6);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < 4; j++)
            cudaFree(memory[i][j]);
    cudaFree(blocks);
    fflush(stdout);
}

typedef struct sequences {
    size_t count, length;
} sequences;

int main(int argc, char **argv)
{
    static const sequences all[] = { { 1, 128 },   { 8, 128 },  { 32, 128 },
                                     { 128, 128 }, { 32, 256 }, { 32, 384 },
                                     { 16, 512 },  { 8, 1024 }, { 2, 4096 } };
    static const ft_dtype dtypes[] = { FT_I8, FT_F16 };
    int heads = (int) argument(argc, argv, 1, 12), head_size = (int) argument(argc, argv, 2, 64);
    const sequences asked = { argument(argc, argv, 3, 0), argument(argc, argv, 4, 0) };
    bool one = argc > 4;
    ft_cuda_device_props props = open_gpu();
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
        for (size_t i = 0; i < (one ? 1 : sizeof all / sizeof all[0]); i++) {
            sequences s = one ? asked : all[i];
            problem p = { s.count, s.length, heads, head_size, dtypes[d] };
            report(&props, &p);
        }
    return 0;
}
