/*
 * gemm_f32.c - speed of the float GEMM, against the processor's peak, memory bandwidth and
 * OpenBLAS.
 *
 *     tests/bench/gemm_f32 [-t THREADS] [-s SECONDS] [-q PERCENT] [PATTERN]
 *
 * They are interleaved, see compare.h; options are those of gemm_int8.c.  OpenBLAS runs as in the
 * float plans of encoders: each thread computes an equal part of the columns.  It has no f16 or
 * bf16 GEMM; its baseline for those is f32.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/blas.h"
#include "kernels/cpu/gemm/f32/gemm_f32.h"
#include "kernels/threads/team.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/bench/compare.h"
#include "tests/bench/measure.h"

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
    float *floats[MAX_SETS];   /* the weights for OpenBLAS */
    const float *peer_weights; /* of this round */
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
        s->floats[i] = row->w == FT_F32 ? s->weights[i] : draw_floats(count);
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
}

static void setting_fini(setting *s)
{
    for (size_t i = 0; i < s->sets; i++) {
        if (s->row->w != FT_F32)
            free(s->floats[i]);
        free(s->weights[i]);
    }
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

/* Each thread computes a range of the columns. */
static void multiply_columns(const void *job, int thread, size_t first, size_t end)
{
    const ft_gemm_float *g = &((const setting *) job)->gemm;
    const float *weights = ((const setting *) job)->peer_weights;
    (void) thread;
    ft_sgemm(CblasNoTrans, CblasTrans, (int) g->m, (int) (end - first), (int) g->k, 1.0f, g->x,
             (int) g->k, weights + first * g->k, (int) g->k, 0.0f, (float *) g->y + first,
             (int) g->n);
}

static double peer_time(void *data, size_t set)
{
    setting *s = data;
    const ft_gemm_float *g = &s->gemm;
    double start = seconds_by(g->threads);
    s->peer_weights = s->floats[set % s->sets];
    ft_parallel_for(g->threads, g->n, multiply_columns, s);
    return seconds_by(g->threads) - start;
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
    printf("%s; OpenBLAS for %s\n", ft_isa_name(o.isa), ft_blas_core());
    printf(
        "m n k, weights          threads         us  GFLOPS  / peak  / read / OpenBLAS rounds\n");
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        for (int threads = 1; threads <= 2; threads++)
            if (benchmark_wants(&o, shapes[i].name, threads))
                measure(&shapes[i], threads, &o);
    return 0;
}
