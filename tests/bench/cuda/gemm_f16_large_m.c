/*
 * gemm_f16_large_m.c - speed of the f16 and bf16 GEMMs of encoders on sm_90a against cuBLASLt.
 *
 *     tests/bench/cuda/gemm_f16_large_m [-b] [-r ROUNDS] [-s] [-t] [PATTERN]
 *
 * Candidates alternate (interleaved.h) on rotating sets of operands, so that operands come from
 * memory and not from a cache.  cuBLASLt runs without bias and with bias and GELU; "parts" GEMMs of
 * one x are a single wide GEMM for it.  Ours always add a bias, and overlap as in a forward pass
 * unless -s is given.  -b measures bf16, -t prints every tile.  PATTERN selects the shapes whose
 * line contains it.  Results of all tiles are compared bit by bit first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.h"
#include "runtime/mem.h"
#include "tests/bench/cuda/interleaved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct extent {
    size_t m, n, k, parts;
} extent;

static const extent shapes[] = {
    { 128, 768, 768, 3 },     { 128, 768, 768, 1 },     { 128, 3072, 768, 1 },
    { 128, 768, 3072, 1 },    { 384, 1024, 1024, 3 },   { 384, 1024, 1024, 1 },
    { 384, 4096, 1024, 1 },   { 384, 1024, 4096, 1 },   { 1024, 768, 768, 3 },
    { 1024, 768, 768, 1 },    { 1024, 3072, 768, 1 },   { 1024, 768, 3072, 1 },
    { 4096, 768, 768, 3 },    { 4096, 768, 768, 1 },    { 4096, 3072, 768, 1 },
    { 4096, 768, 3072, 1 },   { 4096, 1024, 1024, 3 },  { 4096, 1024, 1024, 1 },
    { 4096, 4096, 1024, 1 },  { 4096, 1024, 4096, 1 },  { 16384, 768, 768, 3 },
    { 16384, 768, 768, 1 },   { 16384, 3072, 768, 1 },  { 16384, 768, 3072, 1 },
    { 12288, 1024, 1024, 3 }, { 12288, 1024, 1024, 1 }, { 12288, 4096, 1024, 1 },
    { 12288, 1024, 4096, 1 },
};

enum {
    MAX_SETS = 12,
    SET_BYTES = 200 << 20, /* of all sets together, at least */
    NODES = 12,
    MAX_CANDIDATES = 64,
};

typedef struct operands {
    char *x, *w, *y;
} operands;

typedef struct setting {
    const extent *shape;
    operands set[MAX_SETS];
    size_t sets;
    ft_dtype dtype;
    float *bias;
    void *workspace;
    ft_cuda_clock clock;
    cublasLtHandle_t lt;
    ft_cuda_device_props props;
} setting;

/* ---- Operands ------------------------------------------------------------------------------- */

/* Random f16 or bf16 of either sign, from 2^-7 to 2^-3 in f16 and of similar size in bf16. */
static char *random_memory(size_t count, ft_dtype dtype)
{
    enum { BLOCK = 1 << 22 };
    static uint16_t *block;
    char *memory;
    if (block == NULL) {
        block = malloc(BLOCK * sizeof *block);
        for (size_t i = 0; i < BLOCK; i++)
            block[i] = dtype == FT_F16 ? (uint16_t) ((rand() & 0x8fff) | 0x2000)
                                       : (uint16_t) ((rand() & 0x81ff) | 0x3c00);
    }
    must((int) cudaMalloc((void **) &memory, count * 2), "cudaMalloc");
    for (size_t at = 0; at < count; at += BLOCK)
        must((int) cudaMemcpy(memory + 2 * at, block, 2 * ft_min_size(BLOCK, count - at),
                              cudaMemcpyHostToDevice),
             "cudaMemcpy");
    return memory;
}

static size_t result_bytes(const setting *s)
{
    return 2 * s->shape->m * s->shape->n * s->shape->parts;
}

static void setting_init(setting *s, const extent *shape)
{
    size_t m = shape->m, k = shape->k, n = shape->n * shape->parts;
    float *bias = malloc(n * sizeof *bias);
    s->shape = shape;
    s->sets = ft_min_size(MAX_SETS, SET_BYTES / (2 * (m * k + n * k + m * n)) + 2);
    for (size_t i = 0; i < s->sets; i++)
        s->set[i] = (operands){ .x = random_memory(m * k, s->dtype),
                                .w = random_memory(n * k, s->dtype),
                                .y = random_memory(m * n, s->dtype) };
    for (size_t i = 0; i < n; i++)
        bias[i] = (float) (rand() % 2001 - 1000) / 1000.0f;
    s->bias = device_copy(bias, n * sizeof *bias);
    free(bias);
    must((int) cudaDeviceSynchronize(), "operands"); /* the clock's stream waits for no other */
}

static void setting_fini(setting *s)
{
    for (size_t i = 0; i < s->sets; i++) {
        cudaFree(s->set[i].x);
        cudaFree(s->set[i].w);
        cudaFree(s->set[i].y);
    }
    cudaFree(s->bias);
}

/* ---- Candidates ----------------------------------------------------------------------------- */

typedef struct candidate {
    char name[40];
    bool gelu;
    int large, split;      /* tiles of wgmma_f16_large_m.cu and wgmma_f16_split_k.cu, or -1 */
    ft_cuda_f16_tile tile; /* else, where it has rows */
    bool is_lt;
    lt_gemm lt;
    ft_cuda_replay replay;
} candidate;

static int run_ours(const setting *s, const candidate *c, const operands *set)
{
    ft_cuda_float_gemm_args p[FT_CUDA_MAX_FUSED];
    const extent *e = s->shape;
    for (size_t i = 0; i < e->parts; i++)
        p[i] = (ft_cuda_float_gemm_args){
            .m = e->m,
            .n = e->n,
            .k = e->k,
            .x = set->x,
            .w = set->w + 2 * i * e->n * e->k,
            .x_dtype = s->dtype,
            .w_dtype = s->dtype,
            .y_dtype = s->dtype,
            .bias = s->bias + i * e->n,
            .activation = c->gelu ? FT_ACT_GELU : FT_ACT_NONE,
            .y = set->y + 2 * i * e->m * e->n,
        };
    if (c->large >= 0)
        return ft_cuda_f16_large_m_launch_tile(c->large, &s->props, s->clock.stream, p,
                                               (int) e->parts);
    if (c->split >= 0)
        return ft_cuda_f16_split_k_launch_tile(c->split, &s->props, s->clock.stream, p,
                                               (int) e->parts);
    if (c->tile.rows > 0)
        return ft_cuda_f16_wgmma_launch_tile(&c->tile, 1, &s->props, s->clock.stream, p,
                                             (int) e->parts);
    return ft_cuda_f16_wgmma_fastest(&s->props, s->clock.stream, p, (int) e->parts);
}

static int run_cublaslt(const setting *s, const candidate *c, const operands *set)
{
    static const float one = 1.0f, zero = 0.0f;
    const lt_gemm *g = &c->lt;
    return (int) cublasLtMatmul(s->lt, g->product, &one, set->w, g->w, set->x, g->x, &zero, set->y,
                                g->y, set->y, g->y, &g->algorithm, s->workspace, WORKSPACE,
                                s->clock.stream);
}

static int run(const setting *s, const candidate *c, const operands *set)
{
    return c->is_lt ? run_cublaslt(s, c, set) : run_ours(s, c, set);
}

typedef struct launch {
    const setting *s;
    const candidate *c;
} launch;

static int run_set(const void *context, int set)
{
    const launch *l = context;
    return run(l->s, l->c, &l->s->set[set]);
}

/* The fastest heuristic of cuBLASLt; false if there is none. */
static bool add_baseline(const setting *s, bool gelu, candidate *c)
{
    const extent *e = s->shape;
    cudaDataType_t type = s->dtype == FT_F16 ? CUDA_R_16F : CUDA_R_16BF;
    const lt_types types = { CUBLAS_COMPUTE_32F, CUDA_R_32F, type, type, type };
    *c = (candidate){ .gelu = gelu, .large = -1, .split = -1, .is_lt = true };
    snprintf(c->name, sizeof c->name, "%s", gelu ? "Lt gelu" : "Lt");
    lt_describe(&c->lt, e->m, e->n * e->parts, e->k, &types,
                gelu ? s->set[0].x : NULL); /* some 16-bit values as bias */
    return lt_find_fastest(&c->lt, &c->replay, s->lt, &s->clock,
                           &(ft_cuda_launches){ run_set, &(launch){ s, c }, (int) s->sets, NODES });
}

/* ---- Ours ----------------------------------------------------------------------------------- */

static const ft_cuda_f16_tile small_tiles[] = {
    { 1, 32, true, 2 },  { 1, 64, true, 2 },  { 1, 96, true, 1 },
    { 1, 128, true, 1 }, { 2, 128, true, 1 }, { 2, 256, true, 1 },
};

static int add_tile(const setting *s, bool gelu, candidate *c, int large, int split,
                    ft_cuda_f16_tile tile)
{
    *c = (candidate){ .gelu = gelu, .large = large, .split = split, .tile = tile };
    if (large >= 0)
        snprintf(c->name, sizeof c->name, "%s", ft_cuda_f16_large_m_name(large));
    else if (split >= 0)
        snprintf(c->name, sizeof c->name, "%s", ft_cuda_f16_split_k_name(split));
    else if (tile.rows > 0)
        snprintf(c->name, sizeof c->name, "%dx%d small", tile.rows, 64 * tile.warpgroups);
    else
        snprintf(c->name, sizeof c->name, "selected");
    return ft_cuda_replay_capture(
        &c->replay, &s->clock,
        &(ft_cuda_launches){ run_set, &(launch){ s, c }, (int) s->sets, NODES });
}

static int add_ours(const setting *s, bool gelu, candidate *list)
{
    const ft_cuda_f16_tile none = { .rows = 0 };
    int count = add_tile(s, gelu, list, -1, -1, none);
    for (size_t i = 0; i < FT_COUNT(small_tiles); i++)
        count += add_tile(s, gelu, list + count, -1, -1, small_tiles[i]);
    for (int i = 0; i < FT_CUDA_F16_LARGE_M_TILES; i++)
        count += add_tile(s, gelu, list + count, i, -1, none);
    for (int i = 0; i < FT_CUDA_F16_SPLIT_K_TILES && s->shape->m <= 1024; i++)
        count += add_tile(s, gelu, list + count, -1, i, none);
    return count;
}

/* ---- Comparison ----------------------------------------------------------------------------- */

static double half_value(uint16_t bits, ft_dtype dtype)
{
    int exponent = dtype == FT_F16 ? bits >> 10 & 31 : bits >> 7 & 255;
    double fraction = dtype == FT_F16 ? (bits & 1023) / 1024.0 : (bits & 127) / 128.0;
    double scale = 1.0, sign = bits & 0x8000 ? -1.0 : 1.0;
    int power = (exponent == 0 ? 1 : exponent) - (dtype == FT_F16 ? 15 : 127);
    for (int i = 0; i < power; i++)
        scale *= 2;
    for (int i = 0; i > power; i--)
        scale /= 2;
    return sign * (fraction + (exponent == 0 ? 0.0 : 1.0)) * scale;
}

static uint16_t *result_of(const setting *s, const candidate *c)
{
    uint16_t *y = malloc(result_bytes(s));
    must((int) cudaMemsetAsync(s->set[0].y, 0xff, result_bytes(s), s->clock.stream), "poison");
    must(run(s, c, &s->set[0]), c->name);
    must((int) cudaStreamSynchronize(s->clock.stream), c->name);
    must((int) cudaMemcpy(y, s->set[0].y, result_bytes(s), cudaMemcpyDeviceToHost), "result");
    return y;
}

/* Results of all tiles with one split have the bits of the first of them. */
static void check_bits(const setting *s, const candidate *list, int count)
{
    uint16_t *expected = NULL;
    for (int i = 0; i < count; i++) {
        if (list[i].is_lt || list[i].split >= 0 || strcmp(list[i].name, "selected") == 0)
            continue;
        uint16_t *y = result_of(s, &list[i]);
        size_t n = result_bytes(s) / 2, wrong = 0;
        bool same = expected == NULL || memcmp(y, expected, result_bytes(s)) == 0;
        for (size_t j = 0; !same && j < n; j++)
            wrong += y[j] != expected[j];
        if (wrong > 0)
            printf("  %s%s: %zu of %zu results differ\n", list[i].name, list[i].gelu ? " gelu" : "",
                   wrong, n);
        if (expected == NULL)
            expected = y;
        else
            free(y);
    }
    free(expected);
}

/* The relative distance of our results, whose bias is removed, to those of cuBLASLt. */
static void print_distance(setting *s, const candidate *theirs, const candidate *ours)
{
    const extent *e = s->shape;
    float *bias = s->bias;
    void *zero;
    double difference = 0, norm = 0;
    if (e->parts > 1)
        return;
    must((int) cudaMalloc(&zero, e->n * sizeof(float)), "zero");
    must((int) cudaMemsetAsync(zero, 0, e->n * sizeof(float), s->clock.stream), "zero");
    s->bias = zero;
    uint16_t *a = result_of(s, theirs), *b = result_of(s, ours);
    for (size_t i = 0; i < e->m * e->n; i += 7) {
        double u = half_value(a[i], s->dtype), v = half_value(b[i], s->dtype);
        difference += (u - v) * (u - v);
        norm += u * u;
    }
    printf("  distance^2 to cuBLASLt %.2g\n", difference / norm);
    s->bias = bias;
    cudaFree(zero);
    free(a);
    free(b);
}

/* ---- One shape ------------------------------------------------------------------------------ */

static const candidate *fastest(const candidate *list, int count, bool gelu)
{
    const candidate *best = NULL;
    for (int i = 0; i < count; i++)
        if (list[i].gelu == gelu && (best == NULL || list[i].replay.median < best->replay.median))
            best = &list[i];
    return best;
}

/* What ft_cuda_f16_wgmma_fastest() selects. */
static const candidate *selected(const candidate *list, int count, bool gelu)
{
    for (int i = 0; i < count; i++)
        if (list[i].gelu == gelu && strcmp(list[i].name, "selected") == 0)
            return &list[i];
    return NULL;
}

static void print_row(const setting *s, const candidate *list, int theirs, int count, bool every)
{
    const extent *e = s->shape;
    printf("%5zu %zu x %4zu %4zu |", e->m, e->parts, e->n, e->k);
    for (int gelu = 0; gelu < 2; gelu++) {
        const candidate *lt = fastest(list, theirs, gelu);
        const candidate *ours = selected(list + theirs, count - theirs, gelu);
        const candidate *best = fastest(list + theirs, count - theirs, gelu);
        if (lt == NULL || ours == NULL)
            continue;
        double flop = 2e-6 * (double) (e->m * e->n * e->parts * e->k);
        printf(" %s %7.2f FT %7.2f ratio %.2f, %4.0f TFLOPS; best %s %.2f |", lt->name,
               us_of(&lt->replay), us_of(&ours->replay), us_of(&lt->replay) / us_of(&ours->replay),
               flop / us_of(&ours->replay), best->name, us_of(&best->replay));
    }
    printf("\n");
    for (int i = theirs; every && i < count; i++)
        printf("    %-20s%s %7.2f\n", list[i].name, list[i].gelu ? " gelu" : "     ",
               us_of(&list[i].replay));
    fflush(stdout);
}

static void measure_shape(setting *s, const extent *shape, int rounds, bool every)
{
    static candidate list[MAX_CANDIDATES];
    int theirs = 0, count;
    bool gelu = shape->parts == 1 && shape->n > shape->k;
    setting_init(s, shape);
    theirs += add_baseline(s, false, &list[theirs]);
    if (gelu)
        theirs += add_baseline(s, true, &list[theirs]);
    count = theirs + add_ours(s, false, list + theirs);
    int linear = count;
    if (gelu)
        count += add_ours(s, true, list + count);
    check_bits(s, list, linear);
    check_bits(s, list + linear, count - linear);
    if (every && theirs > 0)
        print_distance(s, &list[0], &list[linear - 1]);
    replay_alternating(&list[0].replay, sizeof *list, count, &s->clock, rounds);
    print_row(s, list, theirs, count, every);
    for (int i = 0; i < count; i++)
        ft_cuda_replay_fini(&list[i].replay);
    setting_fini(s);
}

int main(int argc, char **argv)
{
    static setting s;
    int option, rounds = 9;
    bool every = false, serial = false;
    s.dtype = FT_F16;
    while ((option = getopt(argc, argv, "br:st")) != -1) {
        if (option == 'b')
            s.dtype = FT_BF16;
        else if (option == 'r')
            rounds = atoi(optarg);
        else if (option == 's')
            serial = true;
        else if (option == 't')
            every = true;
        else
            return 2;
    }
    s.props = open_gpu();
    if (!s.props.has_wgmma || rounds < 1 || rounds > FT_CUDA_REPLAY_MAX_ROUNDS)
        return 1;
    s.props.has_pdl = s.props.has_pdl && !serial;
    must(ft_cuda_clock_init(&s.clock), "stream");
    must((int) cublasLtCreate(&s.lt), "cuBLASLt");
    must((int) cudaMalloc(&s.workspace, WORKSPACE), "workspace");
    for (size_t i = 0; i < FT_COUNT(shapes); i++) {
        char line[80];
        snprintf(line, sizeof line, "%zu,%zu,%zu,%zu,", shapes[i].m, shapes[i].n, shapes[i].k,
                 shapes[i].parts);
        if (optind >= argc || strstr(line, argv[optind]) == line)
            measure_shape(&s, &shapes[i], rounds, every);
    }
    return 0;
}
