/*
 * gemm_int8.c - speed of the int8 GEMM, against the processor's peak, memory bandwidth and oneDNN.
 *
 *     tests/bench/gemm_int8 [-t THREADS] [-s SECONDS] [-q PERCENT] [PATTERN]
 *
 * They are interleaved, see compare.h.  Every time is the median over the rounds, or with -q a
 * lower quantile, for a machine with other load.  PATTERN selects rows by part of their name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/int8/gemm_i8.h"
#include "kernels/half.h"
#include "kernels/layout.h"
#include "runtime/mem.h"
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
    ft_activation activation;
    bool residual;
    ft_dtype y; /* oneDNN writes F32 where FT writes F16, which this version lacks */
} shape;

static const shape shapes[] = {
    { "1024 768 768 int8", 1024, 768, 768, FT_ACT_NONE, false, FT_I8 },
    { "1024 2304 768 int8", 1024, 2304, 768, FT_ACT_NONE, false, FT_I8 },
    { "1024 3072 768 gelu int8", 1024, 3072, 768, FT_ACT_GELU_APPROX, false, FT_I8 },
    { "1024 768 3072 f32 residual", 1024, 768, 3072, FT_ACT_NONE, true, FT_F32 },
    { "1024 768 3072 f32", 1024, 768, 3072, FT_ACT_NONE, false, FT_F32 },
    { "1024 768 3072 f16", 1024, 768, 3072, FT_ACT_NONE, false, FT_F16 },
    { "1024 768 768 f32", 1024, 768, 768, FT_ACT_NONE, false, FT_F32 },
    { "1024 768 768 f16", 1024, 768, 768, FT_ACT_NONE, false, FT_F16 },
    { "128 768 768 int8", 128, 768, 768, FT_ACT_NONE, false, FT_I8 },
    { "128 3072 768 gelu int8", 128, 3072, 768, FT_ACT_GELU_APPROX, false, FT_I8 },
    { "128 768 3072 int8", 128, 768, 3072, FT_ACT_NONE, false, FT_I8 },
    { "32 4096 4096 int8", 32, 4096, 4096, FT_ACT_NONE, false, FT_I8 },
    { "16 4096 4096 int8", 16, 4096, 4096, FT_ACT_NONE, false, FT_I8 },
    { "8 4096 4096 f32", 8, 4096, 4096, FT_ACT_NONE, false, FT_F32 },
    { "4 4096 4096 f32", 4, 4096, 4096, FT_ACT_NONE, false, FT_F32 },
    { "1 4096 4096 f32", 1, 4096, 4096, FT_ACT_NONE, false, FT_F32 },
    { "1 11008 4096 f32", 1, 11008, 4096, FT_ACT_NONE, false, FT_F32 },
    { "7 312 312 int8", 7, 312, 312, FT_ACT_NONE, false, FT_I8 },
    { "130 1000 200 int8", 130, 1000, 200, FT_ACT_NONE, false, FT_I8 },
};

enum { MAX_SETS = 32, SET_BYTES = 512 << 20 };

/* ---- The machine's limits ------------------------------------------------------------------ */

#if defined __x86_64__
#define ZMM(i) "vpdpbusd %%zmm31, %%zmm30, %%zmm" #i "\n\t"
#define YMM(i) "%{vex%} vpdpbusd %%ymm15, %%ymm14, %%ymm" #i "\n\t"
#define TWELVE(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#define TWELVE_CLOBBERS                                                                            \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11"

__attribute__((target("avx512f"))) static double zmm_operations(long loops)
{
    long left = loops;
    __asm__ volatile("1:\n\t" TWELVE(ZMM) "dec %0\n\tjnz 1b"
                     : "+r"(left)
                     :
                     : TWELVE_CLOBBERS, "xmm30", "xmm31");
    return (double) loops * 12 * 128;
}

__attribute__((target("avx2"))) static double ymm_operations(long loops)
{
    long left = loops;
    __asm__ volatile("1:\n\t" TWELVE(YMM) "dec %0\n\tjnz 1b"
                     : "+r"(left)
                     :
                     : TWELVE_CLOBBERS, "xmm14", "xmm15");
    return (double) loops * 12 * 64;
}
#endif

static double operations_of(const void *job, int thread)
{
    const ft_isa *isa = job;
    (void) thread;
#if defined __x86_64__
    if (*isa >= FT_ISA_AVX512VNNI)
        return zmm_operations(20000);
    if (*isa == FT_ISA_AVXVNNI)
        return ymm_operations(20000);
#else
    (void) isa;
#endif
    return 0.0;
}

/* Peak operations per second of vpdpbusd, a multiply-add counting two; 0 without VNNI. */
static double peak(ft_isa isa, int threads)
{
    double start = seconds_by(threads);
    double operations = sum_by_threads(threads, operations_of, &isa);
    return operations / (seconds_by(threads) - start);
}

/* ---- One row ----------------------------------------------------------------------------------
 */

typedef struct setting {
    const shape *row;
    ft_gemm_i8 gemm;
    size_t sets, bytes;
    int8_t *weights[MAX_SETS];
#if defined HAVE_DNNL
    onednn *peer;
#endif
} setting;

static float *random_floats(size_t count, float scale)
{
    float *values = ft_calloc_aligned(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = scale * (0.5f + (float) (rand() % 1000) / 1000.0f);
    return values;
}

static int8_t *random_int8(size_t count)
{
    int8_t *quantized = ft_calloc_aligned(count);
    for (size_t i = 0; i < count; i++)
        quantized[i] = (int8_t) (rand() % 255 - 127);
    return quantized;
}

static void set_weights(setting *s)
{
    size_t n = s->row->n, k = s->row->k, padded_n = ft_layout_rows(FT_COL4_4R2_8C, n);
    s->bytes = ft_layout_bytes(FT_COL4_4R2_8C, n, k);
    s->sets = ft_min_size(MAX_SETS, SET_BYTES / s->bytes);
    int8_t *row_major = random_int8(n * k);
    const int8_t *same[MAX_SETS];
    for (size_t i = 0; i < s->sets; i++) {
        same[i] = row_major;
        s->weights[i] = ft_calloc_aligned(s->bytes);
    }
    for (size_t r = 0; r < n; r++)
        for (size_t c = 0; c < k; c++)
            s->weights[0][ft_offset_col4(r, c, padded_n)] = row_major[r * k + c];
    for (size_t i = 1; i < s->sets; i++)
        memcpy(s->weights[i], s->weights[0], s->bytes);
#if defined HAVE_DNNL
    s->peer = onednn_new(&s->gemm, same, s->sets);
#else
    (void) same;
#endif
    free(row_major);
}

static void setting_init(setting *s, const shape *row, ft_isa isa, int threads)
{
    size_t y_bytes = row->m * row->n * (row->y == FT_I8 ? 1 : sizeof(float));
    *s = (setting){ .row = row };
    s->gemm = (ft_gemm_i8){
        .isa = isa,
        .threads = threads,
        .m = row->m,
        .n = row->n,
        .k = row->k,
        .x = random_int8(row->m * row->k),
        .x_stride = row->k,
        .x_scale = 1.0f / 64.0f,
        .w_scale = random_floats(row->n, 1.0f / 64.0f / 30.0f),
        .bias = random_floats(row->n, 0.1f),
        .activation = row->activation,
        .y_dtype = row->y,
        .out_inverse = row->y == FT_I8 ? 50.0f : 0.0f,
        .y = ft_calloc_aligned(y_bytes),
        .y_stride = row->n,
        .scratch_bytes = ft_gemm_i8_scratch(row->m, row->n, row->k, threads),
    };
    s->gemm.residual = row->residual ? s->gemm.y : NULL;
    s->gemm.residual_stride = row->n;
    s->gemm.scratch = ft_calloc_aligned(s->gemm.scratch_bytes);
    set_weights(s);
}

static void setting_fini(setting *s)
{
    for (size_t i = 0; i < s->sets; i++)
        free(s->weights[i]);
    free((void *) (uintptr_t) s->gemm.x);
    free((void *) (uintptr_t) s->gemm.w_scale);
    free((void *) (uintptr_t) s->gemm.bias);
    free(s->gemm.y);
    free(s->gemm.scratch);
#if defined HAVE_DNNL
    onednn_free(s->peer);
#endif
}

static double our_time(void *data, size_t set)
{
    setting *s = data;
    double start = seconds_by(s->gemm.threads);
    s->gemm.w = s->weights[set % s->sets];
    ft_gemm_i8_run(&s->gemm);
    return seconds_by(s->gemm.threads) - start;
}

#if defined HAVE_DNNL
static double peer_time(void *data, size_t set)
{
    setting *s = data;
    double start = seconds_by(s->gemm.threads);
    onednn_run(s->peer, &s->gemm, set % s->sets);
    return seconds_by(s->gemm.threads) - start;
}

static double number(const void *y, ft_dtype dtype, size_t i)
{
    return dtype == FT_I8    ? ((const int8_t *) y)[i]
           : dtype == FT_F16 ? (double) ft_float_from_f16(((const uint16_t *) y)[i])
                             : (double) ((const float *) y)[i];
}

/* The largest difference between the two outputs, which shows that both compute the same. */
static double difference(setting *s)
{
    size_t count = s->row->m * s->row->n, bytes = count * (s->row->y == FT_I8 ? 1 : sizeof(float));
    void *ours = malloc(bytes);
    memset(s->gemm.y, 0, bytes);
    our_time(s, 0);
    memcpy(ours, s->gemm.y, bytes);
    memset(s->gemm.y, 0, bytes);
    peer_time(s, 0);
    double worst = 0.0;
    for (size_t i = 0; i < count; i++) {
        double d =
            number(ours, s->row->y, i) - number(s->gemm.y, s->row->y == FT_I8 ? FT_I8 : FT_F32, i);
        worst = d > worst ? d : -d > worst ? -d : worst;
    }
    free(ours);
    return worst;
}
#endif

static void measure(const shape *row, int threads, const benchmark_options *o)
{
    setting s;
    set_openmp_threads(threads);
    setting_init(&s, row, o->isa, threads);
    benchmark_times t = benchmark_run(
        &(benchmark) {
            .setting = &s, .ours = our_time,
#if defined HAVE_DNNL
            .theirs = peer_time,
#endif
            .peak = peak, .sets = s.sets, .bytes = s.bytes,
            .operations = 2.0 * (double) row->m * (double) row->n * (double) row->k,
        },
        o, threads);
    printf("%-28s %d %9.1f %7.0f", row->name, threads, 1e6 * t.ours,
           2e-9 * (double) row->m * (double) row->n * (double) row->k / t.ours);
    print_ratio(o->isa >= FT_ISA_AVXVNNI ? t.operations / t.ours : 0.0);
    print_ratio(row->m <= 16 ? t.bytes / t.ours : 0.0);
    print_ratio(t.theirs / t.ours);
#if defined HAVE_DNNL
    printf("  %8.2g", difference(&s));
#endif
    printf(" %5zu\n", t.rounds);
    fflush(stdout);
    setting_fini(&s);
}

int main(int argc, char **argv)
{
    benchmark_options o = benchmark_options_of(argc, argv);
    printf("%s\n", ft_isa_name(o.isa));
    printf("m n k, epilogue         threads        us    GOPS  / peak  / read / oneDNN max diff "
           "rounds\n");
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        for (int threads = 1; threads <= 2; threads++)
            if (benchmark_wants(&o, shapes[i].name, threads))
                measure(&shapes[i], threads, &o);
    return 0;
}
