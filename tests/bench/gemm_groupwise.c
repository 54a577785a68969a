/*
 * gemm_groupwise.c - speed of the GEMM with group-wise quantized weights, against the processor's
 * peak, memory bandwidth and FT's own float GEMM.
 *
 *     tests/bench/gemm_groupwise [-t THREADS] [-s SECONDS] [-q PERCENT] [PATTERN]
 *
 * They are interleaved, see compare.h; options are those of gemm_int8.c.  The float GEMM has F16
 * weights.  The peak is that of float multiply-adds, also with int8 activations, which may exceed
 * it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/groupwise/gemm_groupwise.h"
#include "kernels/cpu/gemm/f32/gemm_f32.h"
#include "runtime/mem.h"
#include "tests/bench/compare.h"
#include "tests/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    const char *name;
    size_t m, n, k;
    int bits;
    int32_t group;
    bool zeros, int8_activations;
} shape;

static const shape shapes[] = {
    { "1 2048 2048 u4 g32", 1, 2048, 2048, 4, 32, false, false },
    { "1 8192 2048 u4 g32", 1, 8192, 2048, 4, 32, false, false },
    { "1 8192 2048 u4 g128", 1, 8192, 2048, 4, 128, false, false },
    { "1 8192 2048 u4 g128 asym", 1, 8192, 2048, 4, 128, true, false },
    { "1 2048 8192 u4 g32", 1, 2048, 8192, 4, 32, false, false },
    { "1 2048 8192 u4 g128", 1, 2048, 8192, 4, 128, false, false },
    { "1 32000 2048 u4 g32", 1, 32000, 2048, 4, 32, false, false },
    { "1 8192 2048 u8 g32", 1, 8192, 2048, 8, 32, false, false },
    { "1 2048 8192 u8 g128", 1, 2048, 8192, 8, 128, false, false },
    { "1 8192 2048 u8 g32 int8", 1, 8192, 2048, 8, 32, false, true },
    { "1 8192 2048 u8 g128 int8", 1, 8192, 2048, 8, 128, false, true },
    { "1 8192 2048 u4 g32 int8", 1, 8192, 2048, 4, 32, false, true },
    { "2 8192 2048 u4 g32", 2, 8192, 2048, 4, 32, false, false },
    { "4 8192 2048 u4 g32", 4, 8192, 2048, 4, 32, false, false },
    { "8 8192 2048 u4 g32", 8, 8192, 2048, 4, 32, false, false },
    { "8 8192 2048 u8 g32", 8, 8192, 2048, 8, 32, false, false },
    { "16 8192 2048 u4 g32", 16, 8192, 2048, 4, 32, false, false },
    { "8 8192 2048 u8 g32 int8", 8, 8192, 2048, 8, 32, false, true },
    { "8 8192 2048 u8 g128 int8", 8, 8192, 2048, 8, 128, false, true },
    { "16 8192 2048 u8 g32 int8", 16, 8192, 2048, 8, 32, false, true },
    { "64 8192 2048 u4 g32", 64, 8192, 2048, 4, 32, false, false },
    { "64 8192 2048 u8 g32 int8", 64, 8192, 2048, 8, 32, false, true },
    { "64 8192 2048 u8 g128 int8", 64, 8192, 2048, 8, 128, false, true },
    { "512 2048 2048 u4 g32", 512, 2048, 2048, 4, 32, false, false },
    { "512 2048 2048 u4 g128 asym", 512, 2048, 2048, 4, 128, true, false },
    { "512 8192 2048 u8 g32", 512, 8192, 2048, 8, 32, false, false },
    { "512 2048 8192 u4 g128", 512, 2048, 8192, 4, 128, false, false },
    { "512 2048 2048 u8 g32 int8", 512, 2048, 2048, 8, 32, false, true },
    { "512 2048 2048 u8 g128 int8", 512, 2048, 2048, 8, 128, false, true },
    { "512 2048 2048 u4 g32 int8", 512, 2048, 2048, 4, 32, false, true },
    { "13 1000 200 u4 g32", 13, 1000, 200, 4, 32, false, false },
};

enum { MAX_SETS = 64, SET_BYTES = 256 << 20, HALF = 0x2c00 /* 1/16 in F16 */ };

typedef struct setting {
    const shape *row;
    ft_gemm_groupwise gemm;
    ft_gemm_float peer;
    size_t sets, bytes, peer_sets;
    void *quantized[MAX_SETS], *halves[MAX_SETS];
    uint16_t *scale[MAX_SETS];
    uint8_t *zero[MAX_SETS];
} setting;

static void *random_bytes(size_t bytes)
{
    uint8_t *all = ft_calloc_aligned(bytes);
    for (size_t i = 0; i < bytes; i++)
        all[i] = (uint8_t) (rand() >> 8);
    return all;
}

/* Random f16 numbers below 1. */
static uint16_t *random_f16(size_t count)
{
    uint16_t *all = ft_calloc_aligned(count * sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = (uint16_t) ((rand() & 0xff) | HALF);
    return all;
}

static void make_weights(setting *s)
{
    const shape *row = s->row;
    size_t quantized = ft_panel_bytes(row->n, row->k, row->bits);
    size_t count = ft_groupwise_scale_count(&s->gemm.groupwise, row->n, row->k);
    s->bytes = quantized + count * (row->zeros ? 3 : 2);
    s->sets = ft_min_size(MAX_SETS, SET_BYTES / s->bytes + 1);
    s->peer_sets = ft_min_size(s->sets, SET_BYTES / (row->n * row->k * 2) + 1);
    for (size_t i = 0; i < s->sets; i++) {
        s->quantized[i] = random_bytes(quantized);
        s->scale[i] = random_f16(count);
        s->zero[i] = row->zeros ? random_bytes(count) : NULL;
    }
    for (size_t i = 0; i < s->peer_sets; i++)
        s->halves[i] = random_f16(row->n * row->k);
}

static void setting_init(setting *s, const shape *row, ft_isa isa, int threads)
{
    *s = (setting){ .row = row };
    s->gemm = (ft_gemm_groupwise){
        .isa = isa,
        .threads = threads,
        .m = row->m,
        .n = row->n,
        .k = row->k,
        .x = draw_floats(row->m * row->k),
        .x_stride = row->k,
        .bits = row->bits,
        .groupwise = { .group = row->group, .int8_activations = row->int8_activations },
        .y = ft_calloc_aligned(row->m * row->n * sizeof(float)),
        .y_stride = row->n,
    };
    s->gemm.scratch_bytes = ft_gemm_groupwise_scratch(&s->gemm.groupwise, row->m, row->k, threads);
    s->gemm.scratch = ft_calloc_aligned(s->gemm.scratch_bytes);
    s->peer = (ft_gemm_float){
        .isa = isa,
        .threads = threads,
        .m = row->m,
        .n = row->n,
        .k = row->k,
        .x = s->gemm.x,
        .x_stride = row->k,
        .w_dtype = FT_F16,
        .y = s->gemm.y,
        .y_stride = row->n,
        .scratch_bytes = ft_gemm_float_scratch(FT_F32, row->m, row->k, threads),
    };
    s->peer.scratch = ft_calloc_aligned(s->peer.scratch_bytes);
    make_weights(s);
}

static void setting_fini(setting *s)
{
    for (size_t i = 0; i < s->sets; i++) {
        free(s->quantized[i]);
        free(s->scale[i]);
        free(s->zero[i]);
    }
    for (size_t i = 0; i < s->peer_sets; i++)
        free(s->halves[i]);
    free((void *) (uintptr_t) s->gemm.x);
    free(s->gemm.y);
    free(s->gemm.scratch);
    free(s->peer.scratch);
}

static double our_time(void *data, size_t set)
{
    setting *s = data;
    double start = seconds_by(s->gemm.threads);
    s->gemm.w = s->quantized[set % s->sets];
    s->gemm.groupwise.scale = s->scale[set % s->sets];
    s->gemm.groupwise.zero = s->zero[set % s->sets];
    ft_gemm_groupwise_run(&s->gemm);
    return seconds_by(s->gemm.threads) - start;
}

static double peer_time(void *data, size_t set)
{
    setting *s = data;
    double start = seconds_by(s->peer.threads);
    s->peer.w = s->halves[set % s->peer_sets];
    ft_gemm_float_run(&s->peer);
    return seconds_by(s->peer.threads) - start;
}

static void measure(const shape *row, int threads, const benchmark_options *o)
{
    setting s;
    setting_init(&s, row, o->isa, threads);
    benchmark_print_floats(
        &(benchmark){
            .setting = &s,
            .ours = our_time,
            .theirs = peer_time,
            .peak = peak_of_floats,
            .sets = s.sets,
            .bytes = s.bytes,
            .operations = 2.0 * (double) row->m * (double) row->n * (double) row->k,
        },
        o, row->name, row->m, threads);
    setting_fini(&s);
}

int main(int argc, char **argv)
{
    benchmark_options o = benchmark_options_of(argc, argv);
    printf("%s\n", ft_isa_name(o.isa));
    printf("m n k, weights          threads         us  GFLOPS  / peak  / read  / float rounds\n");
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        for (int threads = 1; threads <= 2; threads++)
            if (benchmark_wants(&o, shapes[i].name, threads))
                measure(&shapes[i], threads, &o);
    return 0;
}
