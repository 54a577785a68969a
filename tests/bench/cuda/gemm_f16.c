/*
 * gemm_f16.c - f16 GEMMs of decoders: microseconds, against reading the weights at 4 TB/s or
 * multiplying at 500 TFLOPS.
 *
 *     tests/bench/cuda/gemm_f16 [-a] [M ...]
 *
 * A time is that of one GEMM in a graph of many, launched to overlap as in a forward pass, whose
 * weights together exceed the L2 cache.  "older" is the time of the kernels for devices before
 * sm_90a.  -a tries every tile configuration, with the usual number of splits and with half of it,
 * and prints the best of each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.h"
#include "runtime/mem.h"
#include "tests/bench/cuda/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct extent {
    size_t n, k;
    int parts;
} extent;

static const extent shapes[] = {
    { 512, 512, 1 },     { 2048, 512, 1 },   { 512, 2048, 1 },   { 30000, 512, 1 },
    { 1024, 1024, 1 },   { 1024, 1024, 3 },  { 4096, 1024, 1 },  { 1024, 4096, 1 },
    { 256206, 1024, 1 }, { 4096, 4096, 1 },  { 4096, 4096, 3 },  { 11008, 4096, 1 },
    { 22016, 4096, 1 },  { 4096, 11008, 1 }, { 32000, 4096, 1 },
};

/* COLD: more than any L2 cache */
enum { COLD = 100 << 20, MAX_M = 8192 };

typedef struct setting {
    ft_cuda_device_props props;
    size_t m, n, k;
    int parts;
    char *w, *x, *y;
    size_t sets, each;            /* of operands; GEMMs for each counted launch */
    const ft_cuda_f16_tile *form; /* NULL: the default selection */
    int ranges;
} setting;

/* ---- Operands ------------------------------------------------------------------------------- */

/* Random f16 of either sign, from 2^-7 to 2^-3. */
static char *random_f16(size_t count)
{
    enum { BLOCK = 1 << 22 };
    static uint16_t *block;
    char *memory;
    if (block == NULL) {
        block = malloc(BLOCK * sizeof *block);
        for (size_t i = 0; i < BLOCK; i++)
            block[i] = (uint16_t) ((rand() & 0x8fff) | 0x2000);
    }
    must((int) cudaMalloc((void **) &memory, count * 2), "cudaMalloc");
    for (size_t at = 0; at < count; at += BLOCK)
        must((int) cudaMemcpy(memory + 2 * at, block, 2 * ft_min_size(BLOCK, count - at),
                              cudaMemcpyHostToDevice),
             "cudaMemcpy");
    return memory;
}

static size_t bytes_of(const setting *s)
{
    return 2 * s->n * s->k * (size_t) s->parts;
}

static void setting_init(setting *s, const extent *shape)
{
    s->n = shape->n, s->k = shape->k, s->parts = shape->parts;
    s->sets = COLD / bytes_of(s) + 1;
    s->each = ft_min_size((s->sets + LAUNCHES - 1) / LAUNCHES, 16);
    s->w = random_f16(s->sets * bytes_of(s) / 2);
    s->x = random_f16(MAX_M * s->k);
    s->form = NULL;
}

static void setting_fini(setting *s)
{
    cudaFree(s->w);
    cudaFree(s->x);
}

/* ---- Launches ------------------------------------------------------------------------------- */

static int launch_one_gemm(cudaStream_t stream, const setting *s, size_t set)
{
    ft_cuda_float_gemm_args p[FT_CUDA_MAX_FUSED];
    size_t part = 2 * s->n * s->k, result = 2 * s->m * s->n;
    for (size_t i = 0; i < (size_t) s->parts; i++)
        p[i] = (ft_cuda_float_gemm_args){
            .m = s->m,
            .n = s->n,
            .k = s->k,
            .x = s->x,
            .w = s->w + set % s->sets * bytes_of(s) + i * part,
            .x_dtype = FT_F16,
            .w_dtype = FT_F16,
            .y_dtype = FT_F16,
            .y = s->y + (set % 2 * (size_t) s->parts + i) * result,
        };
    if (s->form != NULL)
        return ft_cuda_f16_wgmma_launch_tile(s->form, s->ranges, &s->props, stream, p, s->parts);
    if (s->props.has_wgmma)
        return ft_cuda_f16_wgmma(&s->props, stream, p, s->parts);
    int status = 0;
    for (int i = 0; i < s->parts && status == 0; i++)
        status = ft_cuda_float_gemm_batch_invariant(&s->props, stream, &p[i]);
    return status;
}

static int launch_gemms(cudaStream_t stream, size_t i, void *data)
{
    const setting *s = data;
    int status = 0;
    for (size_t j = 0; j < s->each && status == 0; j++)
        status = launch_one_gemm(stream, s, i * s->each + j);
    return status;
}

static double time_of(setting *s, int replays)
{
    return replay_times(launch_gemms, s, replays) / (double) s->each;
}

/* ---- Tables --------------------------------------------------------------------------------- */

/* The roofline of a GEMM in microseconds. */
static double least_of(const setting *s)
{
    double read = (double) bytes_of(s) / 4e6, flop = (double) bytes_of(s) * (double) s->m / 5e8;
    return read > flop ? read : flop;
}

/* The fastest tile configuration with that many splits, within a CTA or over a cluster. */
static void print_best(setting *s, int ranges, bool spread)
{
    ft_cuda_f16_tile best = { .rows = 0 };
    double least = 1e9;
    int fit = 8;
    while ((size_t) fit < s->m && fit < 256)
        fit *= 2;
    for (int i = 0; i < 8; i++) {
        ft_cuda_f16_tile form = { 1 + i % 2, fit >> i / 4, spread, 1 + i / 2 % 2 };
        s->form = &form;
        s->ranges = ranges;
        if (form.rows < 8 || launch_one_gemm(NULL, s, 0) != 0)
            continue;
        double us = time_of(s, 4);
        if (us < least) {
            least = us;
            best = form;
        }
    }
    s->form = NULL;
    if (best.rows > 0)
        printf(" | %d%s %.2f %dx%d/%d", ranges, spread ? "s" : "t", least, best.warpgroups,
               best.rows, best.blocks_per_sm);
}

/* The usual number of splits, and half of it. */
static void print_all(setting *s)
{
    int usual = ft_cuda_f16_wgmma_splits(s->n, s->k);
    for (int ranges = usual; ranges > 0 && 2 * ranges >= usual; ranges /= 2) {
        print_best(s, ranges, true);
        if (ranges > 1 && s->m > 64)
            print_best(s, ranges, false);
    }
}

static void measure(setting *s, bool all)
{
    double least = least_of(s), us = time_of(s, 9);
    s->props.has_wgmma = false;
    double older = time_of(s, 5);
    s->props.has_wgmma = true;
    printf("%4zu %d x %6zu %5zu %9.2f us, %5.1f %% of %8.2f; older %9.2f", s->m, s->parts, s->n,
           s->k, us, 100.0 * least / us, least, older);
    if (all)
        print_all(s);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const size_t usual[] = { 1, 4, 8, 16, 32, 64, 128, 256, 512, 2048 };
    static setting s;
    bool all = false;
    int option;
    while ((option = getopt(argc, argv, "a")) != -1) {
        if (option != 'a')
            return 2;
        all = true;
    }
    s.props = open_gpu();
    if (!s.props.has_wgmma)
        return 1;
    size_t count = optind < argc ? (size_t) (argc - optind) : sizeof usual / sizeof usual[0];
    for (size_t j = 0; j < sizeof shapes / sizeof shapes[0]; j++) {
        setting_init(&s, &shapes[j]);
        for (size_t i = 0; i < count; i++) {
            s.m = optind < argc ? strtoul(argv[optind + (int) i], NULL, 10) : usual[i];
            if (s.m == 0 || s.m > MAX_M)
                return 2;
            must((int) cudaMalloc((void **) &s.y, 4 * s.m * s.n * (size_t) s.parts), "cudaMalloc");
            measure(&s, all);
            cudaFree(s.y);
        }
        setting_fini(&s);
    }
    return 0;
}
