/*
 * gemm_f32.c - speed of the float GEMM, against the processor's peak, memory bandwidth and oneDNN.
 *
 *     tests/bench/gemm_f32 [-t THREADS] [-s SECONDS] [-q PERCENT] [PATTERN]
 *
 * They are interleaved, see compare.h; options are those of gemm_int8.c.  oneDNN gets its weights
 * in f32, in the layout that it prefers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/f32/gemm_f32.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/bench/compare.h"
#include "tests/bench/measure.h"
#if defined HAVE_DNNL
#include "tests/bench/onednn.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    const char *name;
    size_t m, n, k;
    ft_dtype w;
} shape;

static const shape shapes[] = {
    { "1 2048 2048 f32", 1, 2048, 2048, FT_F32 },
    { "1 2048 2048 f16", 1, 2048, 2048, FT_F16 },
    { "1 2048 2048 bf16", 1, 2048, 2048, FT_BF16 },
    { "1 8192 2048 f32", 1, 8192, 2048, FT_F32 },
    { "1 2048 8192 f16", 1, 2048, 8192, FT_F16 },
    { "1 32000 2048 f16", 1, 32000, 2048, FT_F16 },
    { "4 8192 2048 f16", 4, 8192, 2048, FT_F16 },
    { "8 2048 2048 f32", 8, 2048, 2048, FT_F32 },
    { "16 2048 2048 f32", 16, 2048, 2048, FT_F32 },
    { "64 2048 2048 f32", 64, 2048, 2048, FT_F32 },
    { "64 2048 2048 f16", 64, 2048, 2048, FT_F16 },
    { "128 768 768 f32", 128, 768, 768, FT_F32 },
    { "128 3072 768 f32", 128, 3072, 768, FT_F32 },
    { "128 768 3072 f32", 128, 768, 3072, FT_F32 },
    { "512 2048 2048 f32", 512, 2048, 2048, FT_F32 },
    { "512 2048 2048 f16", 512, 2048, 2048, FT_F16 },
    { "512 2048 2048 bf16", 512, 2048, 2048, FT_BF16 },
    { "7 312 312 f32", 7, 312, 312, FT_F32 },
    { "130 1000 200 f32", 130, 1000, 200, FT_F32 },
};

enum { MAX_SETS = 16, SET_BYTES = 256 << 20 };

/* ---- One row ------------------------------------------------------------------------------ */

typedef struct setting {
    const shape *row;
    ft_gemm_float gemm;
    size_t sets, bytes;
    void *weights[MAX_SETS];
#if defined HAVE_DNNL
    onednn *peer;
#endif
} setting;

/* Random numbers near 1. */
static void fill_weights(void *to, size_t count, ft_dtype dtype)
{
    for (size_t i = 0; i < count; i++)
        if (dtype == FT_F32)
            ((float *) to)[i] = (float) (rand() % 2001 - 1000) / 1024.0f;
        else
            ((uint16_t *) to)[i] = (uint16_t) ((rand() & 0x80ff) | 0x3b00);
}

static void setting_init(setting *s, const shape *row, ft_isa isa, int threads)
{
    size_t count = row->n * row->k;
    *s = (setting){ .row = row, .bytes = count * ft_dtype_size(row->w) };
    s->sets = ft_min_size(MAX_SETS, SET_BYTES / (count * sizeof(float)) + 1);
    for (size_t i = 0; i < s->sets; i++) {
        s->weights[i] = ft_calloc_aligned(s->bytes);
        if (i == 0)
            fill_weights(s->weights[i], count, row->w);
        else
            memcpy(s->weights[i], s->weights[0], s->bytes);
    }
    s->gemm = (ft_gemm_float){
        .isa = isa,
        .threads = threads,
        .m = row->m,
        .n = row->n,
        .k = row->k,
        .x = draw_floats(row->m * row->k),
        .x_stride = row->k,
        .x_dtype = FT_F32,
        .w_dtype = row->w,
        .y_dtype = FT_F32,
        .y = ft_calloc_aligned(row->m * row->n * sizeof(float)),
        .y_stride = row->n,
        .scratch_bytes = ft_gemm_float_scratch(FT_F32, row->m, row->k, threads),
    };
    s->gemm.scratch = ft_calloc_aligned(s->gemm.scratch_bytes);
#if defined HAVE_DNNL
    float *weights = draw_floats(count);
    s->peer = onednn_f32_new(row->m, row->n, row->k, weights, s->sets);
    free(weights);
#endif
}

static void setting_fini(setting *s)
{
#if defined HAVE_DNNL
    onednn_free(s->peer);
#endif
    for (size_t i = 0; i < s->sets; i++)
        free(s->weights[i]);
    free((void *) (uintptr_t) s->gemm.x);
    free(s->gemm.y);
    free(s->gemm.scratch);
}

static double our_time(void *data, size_t set)
{
    setting *s = data;
    double start = seconds_by(s->gemm.threads);
    s->gemm.w = s->weights[set % s->sets];
    ft_gemm_float_run(&s->gemm);
    return seconds_by(s->gemm.threads) - start;
}

#if defined HAVE_DNNL
static double peer_time(void *data, size_t set)
{
    setting *s = data;
    double start = seconds_by(s->gemm.threads);
    onednn_f32_run(s->peer, s->gemm.x, s->gemm.y, set % s->sets);
    return seconds_by(s->gemm.threads) - start;
}
#else
#define peer_time NULL
#endif

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
    printf("m n k, weights          threads         us  GFLOPS  / peak  / read / oneDNN rounds\n");
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        for (int threads = 1; threads <= 2; threads++)
            if (benchmark_wants(&o, shapes[i].name, threads))
                measure(&shapes[i], threads, &o);
    return 0;
}
