/*
 * gemm_groupwise.c - speed of the GEMM with group-wise quantized weights, against memory bandwidth
 * and the f16 GEMMs that it replaces.
 *
 *     tests/bench/cuda/gemm_groupwise [w4 | w8 | ROWS] ... [gemv | groups | mma | int8] ...
 *
 * Tables cover w4 and w8 and several numbers of rows, or those given as arguments before them.
 *
 * groups: any number of rows with groups of 128, 64 and 32, one group per row, and zero points,
 * relative to groups of 128.
 * gemv: 1 to 8 rows; the bandwidth of weights and scales relative to that of a read-only kernel.
 * mma: 16 rows and more, against dequantization to f16 in memory plus cuBLAS, and against FT's
 * f16 GEMM.  int8: int8 activations, against a plain kernel for int8 operands.  Operands rotate,
 * so that they come from memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/gemm/groupwise/groupwise.h"
#include "runtime/mem.h"
#include "tests/bench/cuda/baselines.h"
#include "tests/bench/cuda/replay.h"

#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SETS = LAUNCHES,
    GROUP = 128,
    POOL = 8 << 20,  /* random bytes, from which all operands are filled */
    COLD = 400 << 20 /* bytes of all sets, so that none is in the L2 cache */
};

typedef struct extent {
    const char *name;
    size_t n, k;
} extent;

static const extent extents[] = {
    { "out", 4096, 4096 },   { "qkv", 12288, 4096 },    { "gate+up", 22016, 4096 },
    { "down", 4096, 11008 }, { "13B out", 5120, 5120 },
};

/* ---- Operands ------------------------------------------------------------------------------- */

typedef enum content { CODES, NIBBLES, HALVES, SCALES, CONTENTS } content;

static void *random_memory(size_t bytes, content what)
{
    static uint8_t *pool[CONTENTS];
    if (pool[0] == NULL)
        for (int c = 0; c < CONTENTS; c++) {
            pool[c] = malloc(POOL);
            for (size_t i = 0; i < POOL; i += 2) {
                uint16_t half =
                    (uint16_t) (c == SCALES ? 0x1c00 + (rand() & 0x7ff)
                                            : (rand() & 0x8000) | (0x3000 + (rand() & 0xfff)));
                uint16_t quantized = (uint16_t) (rand() >> 4);
                if (c == NIBBLES)
                    quantized &= 0x0f0f;
                memcpy(pool[c] + i, c <= NIBBLES ? &quantized : &half, 2);
            }
        }
    char *memory;
    must((int) cudaMalloc((void **) &memory, bytes), "cudaMalloc");
    for (size_t at = 0; at < bytes; at += POOL)
        must((int) cudaMemcpy(memory + at, pool[what], ft_min_size(POOL, bytes - at),
                              cudaMemcpyHostToDevice),
             "cudaMemcpy");
    return memory;
}

/* GEMMs of one shape, each with its own weights. */
typedef struct setting {
    ft_cuda_device_props props;
    ft_cuda_groupwise_args set[MAX_SETS];
    int sets;
    size_t bytes; /* of the weights */
    void *halves; /* the weights as f16 */
    cublasHandle_t blas;
    scalar_product scalar;
} setting;

/* How weights and activations are quantized. */
typedef struct scheme {
    const char *name;
    int32_t group; /* 0: one per row */
    bool asymmetric, int8_activations;
} scheme;

static const scheme plain = { "g128", GROUP, false, false }, w8a8 = { "g128", GROUP, false, true };

static void setting_init(setting *s, const ft_cuda_device_props *props, const extent *e, int bits,
                         size_t m, const scheme *how)
{
    bool int8_activations = how->int8_activations;
    size_t group = how->group > 0 ? (size_t) how->group : e->k;
    size_t scales = (e->k + group - 1) / group * e->n;
    size_t scratch = ft_cuda_groupwise_scratch(props, m, e->n, e->k, FT_F16, int8_activations);
    uint32_t *counters = random_memory(FT_CUDA_GROUPWISE_COUNTERS * 4, CODES);
    must((int) cudaMemset(counters, 0, FT_CUDA_GROUPWISE_COUNTERS * 4), "cudaMemset");
    *s = (setting){ .props = *props,
                    .bytes = e->n * e->k * (size_t) bits / 8 + (how->asymmetric ? 3 : 2) * scales };
    s->sets = (int) ft_min_size(MAX_SETS, COLD / s->bytes + 1);
    ft_cuda_groupwise_args common = {
        .m = m,
        .k = e->k,
        .x = random_memory(2 * m * e->k, HALVES),
        .x_dtype = FT_F16,
        .y_dtype = FT_F16,
        .bits = bits,
        .group = how->group,
        .int8_activations = int8_activations,
        .back_to_back = true,
        .n_linears = 1,
        .scratch = random_memory(scratch + 256, CODES),
        .scratch_bytes = scratch,
        .counters = counters,
    };
    for (int i = 0; i < s->sets; i++) {
        s->set[i] = common;
        s->set[i].linear[0] = (ft_cuda_groupwise_linear){
            .rows = e->n,
            .w = random_memory(e->n * e->k * (size_t) bits / 8, CODES),
            .scale = random_memory(2 * scales, SCALES),
            .zero = how->asymmetric ? random_memory(scales, bits == 4 ? NIBBLES : CODES) : NULL,
            .y = random_memory(2 * m * e->n, HALVES),
        };
    }
}

static void setting_fini(setting *s)
{
    for (int i = 0; i < s->sets; i++) {
        cudaFree((void *) (uintptr_t) s->set[i].linear[0].w);
        cudaFree((void *) (uintptr_t) s->set[i].linear[0].scale);
        cudaFree((void *) (uintptr_t) s->set[i].linear[0].zero);
        cudaFree(s->set[i].linear[0].y);
    }
    cudaFree(s->set[0].x);
    cudaFree(s->set[0].scratch);
    cudaFree(s->set[0].counters);
    cudaFree(s->halves);
}

/* ---- Timed launches ------------------------------------------------------------------------- */

static int run_ours(cudaStream_t stream, size_t i, void *data)
{
    const setting *s = data;
    return ft_cuda_groupwise_gemm(&s->props, stream, &s->set[i % (size_t) s->sets]);
}

static int run_tiles(cudaStream_t stream, size_t i, void *data)
{
    const setting *s = data;
    return ft_cuda_groupwise_launch(FT_CUDA_GROUPWISE_MMA, &s->props, stream,
                                    &s->set[i % (size_t) s->sets]);
}

static int run_read(cudaStream_t stream, size_t i, void *data)
{
    const setting *s = data;
    const ft_cuda_groupwise_args *p = &s->set[i % (size_t) s->sets];
    return ft_cuda_read_bandwidth(&s->props, stream, p->linear[0].w,
                                  p->linear[0].rows * p->k * (size_t) p->bits / 8, p->counters);
}

static int run_library(const setting *s, cudaStream_t stream, const ft_cuda_groupwise_args *p)
{
    const float one = 1.0f, zero = 0.0f;
    int n = (int) p->linear[0].rows, k = (int) p->k, m = (int) p->m;
    cublasSetStream(s->blas, stream);
    return (int) cublasGemmEx(s->blas, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, s->halves,
                              CUDA_R_16F, k, p->x, CUDA_R_16F, k, &zero, p->linear[0].y, CUDA_R_16F,
                              n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static int run_dequantized(cudaStream_t stream, size_t i, void *data)
{
    const setting *s = data;
    const ft_cuda_groupwise_args *p = &s->set[i % (size_t) s->sets];
    ft_weight w = { .rows = p->linear[0].rows,
                    .cols = p->k,
                    .dtype = p->bits == 4 ? FT_U4 : FT_U8,
                    .layout = FT_PANEL32,
                    .groupwise = { .group = p->group, .scale = p->linear[0].scale },
                    .data = p->linear[0].w };
    int status = dequantize(stream, s->halves, &w);
    return status != 0 ? status : run_library(s, stream, p);
}

static int run_only_library(cudaStream_t stream, size_t i, void *data)
{
    const setting *s = data;
    return run_library(s, stream, &s->set[i % (size_t) s->sets]);
}

static int run_f16(cudaStream_t stream, size_t i, void *data)
{
    const setting *s = data;
    const ft_cuda_groupwise_args *p = &s->set[i % (size_t) s->sets];
    ft_cuda_float_gemm_args f = { .m = p->m,
                                  .n = p->linear[0].rows,
                                  .k = p->k,
                                  .x = p->x,
                                  .w = s->halves,
                                  .x_dtype = FT_F16,
                                  .w_dtype = FT_F16,
                                  .y_dtype = FT_F16,
                                  .y = p->linear[0].y };
    return ft_cuda_float_gemm_batch_invariant(&s->props, stream, &f);
}

static int run_scalars(cudaStream_t stream, size_t i, void *data)
{
    const setting *s = data;
    scalar_product p = s->scalar;
    p.w = (const int8_t *) s->set[i % (size_t) s->sets].linear[0].w;
    return multiply_scalars(stream, &p);
}

/* ---- Arguments ------------------------------------------------------------------------------ */

enum { MAX_ROWS = 4096 };

typedef struct wanted {
    int bits; /* 0: all */
    bool some, rows[MAX_ROWS];
} wanted;

static bool wants(const wanted *want, int bits, size_t rows)
{
    return (want->bits == 0 || want->bits == bits) && (!want->some || want->rows[rows]);
}

static void want_one(wanted *want, const char *word)
{
    long rows = strtol(word, NULL, 10);
    if (word[0] == 'w')
        want->bits = (int) strtol(word + 1, NULL, 10);
    else if (rows > 0 && rows < MAX_ROWS)
        want->rows[rows] = want->some = true;
}

/* ---- Tables --------------------------------------------------------------------------------- */

static void measure_gemv(const ft_cuda_device_props *props, const wanted *want)
{
    static const size_t rows[] = { 1, 2, 4, 8 };
    printf("\nsmall m: us (TB/s, fraction of a read-only kernel)\n");
    for (int bits = 4; bits <= 8; bits += 4)
        for (size_t i = 0; i < FT_COUNT(extents) && (want->bits == 0 || want->bits == bits); i++) {
            const extent *e = &extents[i];
            double read = 0.0; /* TB/s */
            printf("w%d g%d %-8s %5zu x %5zu", bits, GROUP, e->name, e->n, e->k);
            for (size_t j = 0; j < FT_COUNT(rows); j++) {
                setting s;
                if (!wants(want, bits, rows[j]))
                    continue;
                setting_init(&s, props, e, bits, rows[j], &plain);
                if (read == 0.0) {
                    double us = replay(run_read, &s);
                    read = (double) (e->n * e->k * (size_t) bits / 8) / us * 1e-6;
                    printf("  read %6.2f (%.2f)", us, read);
                }
                double us = replay(run_ours, &s), speed = (double) s.bytes / us * 1e-6;
                printf("  m=%zu %6.2f (%.2f, %.2f)", rows[j], us, speed, speed / read);
                setting_fini(&s);
            }
            printf("\n");
            fflush(stdout);
        }
}

/* Times of one shape with each scheme, a line for each number of rows. */
static void measure_groups_of(const ft_cuda_device_props *props, const wanted *want,
                              const extent *e, int bits)
{
    static const size_t rows[] = { 1, 2, 4, 8, 16, 32, 64, 128, 512, 2048 };
    static const scheme schemes[] = {
        { "g128", 128, false, false }, { "g64", 64, false, false },   { "g32", 32, false, false },
        { "g0", 0, false, false },     { "g128z", 128, true, false }, { "g32z", 32, true, false },
    };
    setting s[FT_COUNT(schemes)];
    void *halves = random_memory(2 * e->n * e->k, HALVES);
    for (size_t i = 0; i < FT_COUNT(schemes); i++)
        setting_init(&s[i], props, e, bits, rows[FT_COUNT(rows) - 1], &schemes[i]);
    for (size_t j = 0; j < FT_COUNT(rows); j++) {
        double first = 0.0;
        if (!wants(want, bits, rows[j]))
            continue;
        printf("w%d %5zu x %5zu m=%-4zu", bits, e->n, e->k, rows[j]);
        for (size_t i = 0; i < FT_COUNT(schemes); i++) {
            for (int set = 0; set < s[i].sets; set++)
                s[i].set[set].m = rows[j];
            double us = replay(run_ours, &s[i]);
            first = i == 0 ? us : first;
            printf("  %s %7.2f (%.2f)", schemes[i].name, us, us / first);
        }
        s[0].halves = halves;
        if (rows[j] >= 128)
            printf("  f16 %7.2f", replay(run_f16, &s[0]));
        s[0].halves = NULL;
        printf("\n");
        fflush(stdout);
    }
    for (size_t i = 0; i < FT_COUNT(schemes); i++)
        setting_fini(&s[i]);
    cudaFree(halves);
}

static void measure_groups(const ft_cuda_device_props *props, const wanted *want)
{
    printf("\ngroup sizes, z: with zero points: us (relative to the first one)\n");
    for (int bits = 4; bits <= 8; bits += 4)
        for (size_t i = 0; i < FT_COUNT(extents) - 1 && (want->bits == 0 || want->bits == bits);
             i++)
            measure_groups_of(props, want, &extents[i], bits);
}

static void measure_mma(const ft_cuda_device_props *props, const wanted *want)
{
    static const size_t rows[] = { 8, 16, 64, 128, 512, 2048 };
    cublasHandle_t blas;
    must((int) cublasCreate(&blas), "cublasCreate");
    printf("\nlarge m: us (by mma.sync); dequantize + cuBLAS f16, cuBLAS f16 alone, FT f16; their "
           "ratios "
           "to FT group-wise\n");
    for (int bits = 4; bits <= 8; bits += 4)
        for (size_t i = 0; i < FT_COUNT(extents) - 1; i++)
            for (size_t j = 0; j < FT_COUNT(rows); j++) {
                const extent *e = &extents[i];
                setting s;
                if (!wants(want, bits, rows[j]))
                    continue;
                setting_init(&s, props, e, bits, rows[j], &plain);
                s.halves = random_memory(2 * e->n * e->k, HALVES);
                s.blas = blas;
                double ours = replay(run_ours, &s), tiles = replay(run_tiles, &s);
                double slow = replay(run_dequantized, &s);
                double library = replay(run_only_library, &s), halves = replay(run_f16, &s);
                printf("w%d %-8s %5zu x %5zu m=%-4zu %8.2f us (%8.2f) %6.1f TFLOPS; %8.2f %8.2f "
                       "%8.2f; "
                       "%.2f %.2f %.2f\n",
                       bits, e->name, e->n, e->k, rows[j], ours, tiles,
                       2e-6 * (double) (rows[j] * e->n) * (double) e->k / ours, slow, library,
                       halves, slow / ours, library / ours, halves / ours);
                fflush(stdout);
                setting_fini(&s);
            }
    cublasDestroy(blas);
}

static void measure_int8(const ft_cuda_device_props *props, const wanted *want)
{
    static const size_t rows[] = { 1, 16, 64, 128, 512, 2048 };
    printf("\nint8 activations: us; a scalar kernel; ratio\n");
    for (size_t i = 0; i < FT_COUNT(extents) - 1; i++)
        for (size_t j = 0; j < FT_COUNT(rows); j++) {
            const extent *e = &extents[i];
            setting s;
            if (!wants(want, 8, rows[j]))
                continue;
            setting_init(&s, props, e, 8, rows[j], &w8a8);
            size_t groups = e->k / GROUP;
            s.scalar = (scalar_product){
                .m = (int) rows[j],
                .n = (int) e->n,
                .k = (int) e->k,
                .group = GROUP,
                .x = random_memory(rows[j] * e->k, CODES),
                .x_scale = random_memory(4 * rows[j] * groups, SCALES),
                .w_scale = random_memory(4 * e->n * groups, SCALES),
                .zero = random_memory(e->n * groups, CODES),
                .y = s.set[0].linear[0].y,
            };
            double ours = replay(run_ours, &s), scalar = replay_times(run_scalars, &s, 3);
            printf("w8a8 g%d %-8s %5zu x %5zu m=%-4zu %8.2f us %6.1f TOPS; %9.2f; %.1f\n", GROUP,
                   e->name, e->n, e->k, rows[j], ours,
                   2e-6 * (double) (rows[j] * e->n) * (double) e->k / ours, scalar, scalar / ours);
            fflush(stdout);
            cudaFree((void *) (uintptr_t) s.scalar.x);
            cudaFree((void *) (uintptr_t) s.scalar.x_scale);
            cudaFree((void *) (uintptr_t) s.scalar.w_scale);
            cudaFree((void *) (uintptr_t) s.scalar.zero);
            setting_fini(&s);
        }
}

int main(int argc, char **argv)
{
    ft_cuda_device_props props = open_gpu();
    wanted want = { 0 };
    for (int i = 1; i < argc; i++) {
        want_one(&want, argv[i]);
        if (strcmp(argv[i], "gemv") == 0)
            measure_gemv(&props, &want);
        if (strcmp(argv[i], "groups") == 0)
            measure_groups(&props, &want);
        if (strcmp(argv[i], "mma") == 0)
            measure_mma(&props, &want);
        if (strcmp(argv[i], "int8") == 0)
            measure_int8(&props, &want);
    }
    return 0;
}
