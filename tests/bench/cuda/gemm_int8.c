/*
 * gemm_int8.c - speed of the int8 GEMM of sm_90a against cuBLASLt.
 *
 *     tests/bench/cuda/gemm_int8 [-r ROUNDS] [-p] [PATTERN]
 *
 * Candidates alternate (interleaved.h) on rotating sets of operands, so that operands come from
 * memory and not from a cache.  -p lets FT's GEMMs overlap (programmatic dependent launch), which
 * cuBLASLt's never do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/gemm/int8/wgmma_kernels.h"
#include "runtime/mem.h"
#include "tests/bench/cuda/interleaved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct extent {
    size_t m, n, k;
} extent;

static const extent shapes[] = {
    { 4096, 768, 768 },  { 4096, 2304, 768 },  { 4096, 3072, 768 }, { 4096, 768, 3072 },
    { 1024, 3072, 768 }, { 8192, 4096, 4096 }, { 128, 2304, 768 },  { 128, 768, 3072 },
    { 64, 4096, 4096 },  { 8, 11008, 4096 },   { 128, 768, 768 },   { 128, 3072, 768 },
};

enum {
    MAX_SETS = 24,
    SET_BYTES = 200 << 20, /* of all sets together, at least */
    NODES = 24,
    MAX_CONTENDERS = 128,
};

/* ---- Operands ------------------------------------------------------------------------------- */

typedef struct operands {
    int8_t *x, *w;
    uint16_t *x16, *w16, *residual;
    void *y;
} operands;

typedef struct setting {
    const extent *shape;
    operands set[MAX_SETS];
    int sets;
    float *w_scale, *bias;
    uint16_t *bias16;
    void *workspace;
    ft_cuda_clock clock;
    cublasLtHandle_t lt;
    ft_cuda_device_props props;
} setting;

enum { BLOCK = 8 << 20 };

/* Device memory of random int8 values, or of random f16 between -2 and 2. */
static void *random_memory(size_t bytes, bool halves)
{
    static uint8_t *quantized, *sixteen;
    if (quantized == NULL) {
        quantized = malloc(BLOCK);
        sixteen = malloc(BLOCK);
        for (size_t i = 0; i < BLOCK; i++) {
            quantized[i] = (uint8_t) (rand() % 255 - 127);
            sixteen[i] = (uint8_t) (i % 2 == 0 ? rand() : (rand() & 0x80) | (0x30 + rand() % 16));
        }
    }
    char *memory;
    must((int) cudaMalloc((void **) &memory, bytes), "cudaMalloc");
    for (size_t at = 0; at < bytes; at += BLOCK)
        must((int) cudaMemcpy(memory + at, halves ? sixteen : quantized,
                              ft_min_size(BLOCK, bytes - at), cudaMemcpyHostToDevice),
             "cudaMemcpy");
    return memory;
}

static void *upload_floats(size_t n, float low, float high)
{
    float *values = malloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = low + (high - low) * (float) (rand() % 1000) / 1000.0f;
    void *memory = device_copy(values, n * sizeof *values);
    free(values);
    return memory;
}

static void setting_init(setting *s, const extent *shape)
{
    size_t m = shape->m, n = shape->n, k = shape->k, bytes = m * k + n * k + m * n;
    s->shape = shape;
    s->sets = (int) ft_min_size(MAX_SETS, SET_BYTES / bytes + 2);
    for (int i = 0; i < s->sets; i++)
        s->set[i] = (operands){
            .x = random_memory(m * k, false),
            .w = random_memory(n * k, false),
            .x16 = random_memory(2 * m * k, true),
            .w16 = random_memory(2 * n * k, true),
            .residual = random_memory(4 * m * n, true),
            .y = random_memory(4 * m * n, true),
        };
    s->w_scale = upload_floats(n, 0.2f / 2000.0f, 1.0f / 2000.0f);
    s->bias = upload_floats(n, -1.0f, 1.0f);
    s->bias16 = random_memory(2 * n, true);
    must((int) cudaDeviceSynchronize(), "operands"); /* the clock's stream waits for no other */
}

static void setting_fini(setting *s)
{
    for (int i = 0; i < s->sets; i++) {
        cudaFree(s->set[i].x);
        cudaFree(s->set[i].w);
        cudaFree(s->set[i].x16);
        cudaFree(s->set[i].w16);
        cudaFree(s->set[i].residual);
        cudaFree(s->set[i].y);
    }
    cudaFree(s->w_scale);
    cudaFree(s->bias);
    cudaFree(s->bias16);
}

/* ---- Candidates ----------------------------------------------------------------------------- */

typedef struct candidate {
    char name[40];
    ft_dtype y; /* FT */
    bool gelu, residual;
    ft_cuda_wgmma_tile tile;
    bool has_pdl;
    bool is_lt, halves, sums; /* cuBLASLt */
    lt_gemm lt;
    ft_cuda_replay replay;
} candidate;

static ft_cuda_gemm_args gemm_of(const setting *s, const candidate *c, const operands *set)
{
    return (ft_cuda_gemm_args){
        .m = s->shape->m,
        .n = s->shape->n,
        .k = s->shape->k,
        .x = set->x,
        .w = set->w,
        .prepacked = set->w,
        .x_scale = 1.0f / 64.0f,
        .w_scale = s->w_scale,
        .bias = s->bias,
        .activation = c->gelu ? FT_ACT_GELU_APPROX : FT_ACT_NONE,
        .y_dtype = c->y,
        .n_outputs = 1,
        .width = { s->shape->n },
        .y = { set->y },
        .y_inv_scale = { 20.0f },
        .residual = c->residual ? set->residual : NULL,
    };
}

static int run_ours(const setting *s, const candidate *c, const operands *set)
{
    ft_cuda_device_props props = s->props;
    ft_cuda_gemm_args p = gemm_of(s, c, set);
    props.has_pdl = c->has_pdl;
    return ft_cuda_wgmma_launch(c->tile, &props, s->clock.stream, &p);
}

static int run_theirs(const setting *s, const candidate *c, const operands *set)
{
    static const float one = 1.0f / 4096.0f, zero = 0.0f;
    static const int32_t whole = 1, none = 0;
    const void *alpha = c->sums ? (const void *) &whole : &one;
    const void *beta = c->sums ? (const void *) &none : &zero;
    const void *w = c->halves ? (void *) set->w16 : set->w,
               *x = c->halves ? (void *) set->x16 : set->x;
    const lt_gemm *g = &c->lt;
    return (int) cublasLtMatmul(s->lt, g->product, alpha, w, g->w, x, g->x, beta, set->y, g->y,
                                set->y, g->y, &g->algorithm, s->workspace, WORKSPACE,
                                s->clock.stream);
}

typedef struct launch {
    const setting *s;
    const candidate *c;
} launch;

static int run_set(const void *context, int set)
{
    const launch *l = context;
    const operands *of = &l->s->set[set];
    return l->c->is_lt ? run_theirs(l->s, l->c, of) : run_ours(l->s, l->c, of);
}

/* ---- cuBLASLt ------------------------------------------------------------------------------- */

typedef struct peer {
    const char *name;
    lt_types types;
    bool gelu;
} peer;

static const peer peers[] = {
    { "lt i8", { CUBLAS_COMPUTE_32I, CUDA_R_32F, CUDA_R_8I, CUDA_R_8I, CUDA_R_32F }, false },
    { "lt i32", { CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I, CUDA_R_32F }, false },
    { "lt f16", { CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F }, false },
    { "lt i8 gelu", { CUBLAS_COMPUTE_32I, CUDA_R_32F, CUDA_R_8I, CUDA_R_8I, CUDA_R_32F }, true },
    { "lt f16 gelu", { CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F }, true },
};

/* The fastest heuristic of cuBLASLt; false if there is none. */
static bool add_baseline(const setting *s, const peer *r, candidate *c)
{
    const void *bias = r->types.bias == CUDA_R_16F ? (void *) s->bias16 : s->bias;
    *c = (candidate){ .is_lt = true,
                      .halves = r->types.operand == CUDA_R_16F,
                      .sums = r->types.scale == CUDA_R_32I };
    snprintf(c->name, sizeof c->name, "%s", r->name);
    lt_describe(&c->lt, s->shape->m, s->shape->n, s->shape->k, &r->types, r->gelu ? bias : NULL);
    return lt_find_fastest(&c->lt, &c->replay, s->lt, &s->clock,
                           &(ft_cuda_launches){ run_set, &(launch){ s, c }, s->sets, NODES });
}

/* ---- One shape ------------------------------------------------------------------------------ */

typedef struct result {
    const char *name;
    ft_dtype y;
    bool gelu, residual;
    const char *baseline;
} result;

static const result results[] = {
    { "int8", FT_I8, false, false, "lt i8" },
    { "gelu int8", FT_I8, true, false, "lt i8" },
    { "f16 + residual", FT_F16, false, true, "lt f16" },
    { "f16", FT_F16, false, false, "lt f16" },
    { "f32", FT_F32, false, false, "lt i32" },
    { "f32 + residual", FT_F32, false, true, "lt i32" },
};

static int add_ours(const setting *s, bool has_pdl, candidate *list)
{
    int count = 0;
    for (size_t i = 0; i < FT_COUNT(results); i++)
        for (int tile = 0; tile < FT_CUDA_WGMMA_ANY_EPILOGUE; tile++) {
            candidate *c = &list[count];
            if (tile >= FT_CUDA_WGMMA_SMALL_M_64 && s->shape->m > 256)
                continue;
            *c = (candidate){
                .y = results[i].y,
                .gelu = results[i].gelu,
                .residual = results[i].residual,
                .tile = (ft_cuda_wgmma_tile) tile,
                .has_pdl = has_pdl,
            };
            snprintf(c->name, sizeof c->name, "%s", results[i].name);
            ft_cuda_gemm_args p = gemm_of(s, c, &s->set[0]);
            count += ft_cuda_wgmma_tile_supports(c->tile, &p) &&
                     ft_cuda_replay_capture(
                         &c->replay, &s->clock,
                         &(ft_cuda_launches){ run_set, &(launch){ s, c }, s->sets, NODES });
        }
    return count;
}

static double time_of(const candidate *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return us_of(&list[i].replay);
    return 0.0;
}

static void print_ours(const candidate *list, int count, int num_peers, const result *r)
{
    double best = 1e30, baseline = time_of(list, num_peers, r->baseline);
    printf("  %-15s", r->name);
    for (int i = num_peers; i < count; i++)
        if (strcmp(list[i].name, r->name) == 0) {
            printf(" %s %.2f", ft_cuda_wgmma_tile_name(list[i].tile), us_of(&list[i].replay));
            best = us_of(&list[i].replay) < best ? us_of(&list[i].replay) : best;
        }
    printf("   %s / best %.2f\n", r->baseline, baseline / best);
}

static void measure_shape(setting *s, const extent *shape, int rounds, bool has_pdl)
{
    static candidate list[MAX_CONTENDERS];
    int theirs = 0, count;
    setting_init(s, shape);
    for (size_t i = 0; i < FT_COUNT(peers); i++)
        theirs += add_baseline(s, &peers[i], &list[theirs]);
    count = theirs + add_ours(s, has_pdl, list + theirs);
    replay_alternating(&list[0].replay, sizeof *list, count, &s->clock, rounds);
    printf("%zu x %zu x %zu%s, us, %d sets:", shape->m, shape->n, shape->k,
           has_pdl ? ", overlapping" : "", s->sets);
    for (int i = 0; i < theirs; i++)
        printf("  %s %.2f", list[i].name, us_of(&list[i].replay));
    printf("\n");
    for (size_t i = 0; i < FT_COUNT(results); i++)
        print_ours(list, count, theirs, &results[i]);
    fflush(stdout);
    for (int i = 0; i < count; i++)
        ft_cuda_replay_fini(&list[i].replay);
    setting_fini(s);
}

int main(int argc, char **argv)
{
    static setting s;
    struct cudaDeviceProp properties;
    int option, rounds = 15;
    bool has_pdl = false;
    while ((option = getopt(argc, argv, "r:p")) != -1) {
        if (option == 'r')
            rounds = atoi(optarg);
        else if (option == 'p')
            has_pdl = true;
        else
            return 2;
    }
    rounds = rounds < 1                           ? 1
             : rounds > FT_CUDA_REPLAY_MAX_ROUNDS ? FT_CUDA_REPLAY_MAX_ROUNDS
                                                  : rounds;
    must((int) cudaGetDeviceProperties(&properties, 0), "no CUDA device");
    s.props = (ft_cuda_device_props){
        .capability = 10 * properties.major + properties.minor,
        .sm_count = properties.multiProcessorCount,
        .smem_bytes = properties.sharedMemPerBlockOptin,
        .has_wgmma = properties.major == 9,
    };
    if (!s.props.has_wgmma) {
        fprintf(stderr, "gemm_int8: %s has no wgmma\n", properties.name);
        return 1;
    }
    must(ft_cuda_clock_init(&s.clock), "stream");
    must((int) cublasLtCreate(&s.lt), "cublasLt");
    must((int) cudaMalloc(&s.workspace, WORKSPACE), "workspace");
    for (size_t i = 0; i < FT_COUNT(shapes); i++) {
        char name[64];
        snprintf(name, sizeof name, "%zu,%zu,%zu", shapes[i].m, shapes[i].n, shapes[i].k);
        if (optind >= argc || strstr(name, argv[optind]) != NULL)
            measure_shape(&s, &shapes[i], rounds, has_pdl);
    }
    return 0;
}
