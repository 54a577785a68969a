/*
 * decoder.c - the int8 GEMMs of a decoder of Llama-2-7B's shape with every kernel, against the time
 * to read the weights.
 *
 *     tests/bench/cuda/decoder [-a] [M ...]
 *
 * A time is that of one GEMM in a graph of many with rotating operands, launched to overlap as in a
 * forward pass.  x is int8 with row scales, y float16.  For each shape the kernel that is selected
 * comes first; -a also shows all others.  Percentages are of the bandwidth that a read-only kernel
 * reaches in the same run, or of 1,560 TOPS, the int8 wgmma peak of an H200.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/gemm/int8/wgmma_kernels.h"
#include "runtime/mem.h"
#include "tests/bench/cuda/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct extent {
    const char *name;
    size_t n, k;
} extent;

static const extent shapes[] = {
    { "o", 4096, 4096 },
    { "q, k, v", 12288, 4096 },
    { "q, k, v of 32 and 8 heads", 6144, 4096 },
    { "gate, up", 22016, 4096 },
    { "down", 4096, 11008 },
};

enum { MAX_SETS = 16, SET_BYTES = 256 << 20, MAX_M = 2048, PEAK_TOPS = 1560 };

/* ---- Operands ------------------------------------------------------------------------------- */

typedef struct setting {
    ft_cuda_device_props props;
    size_t m, n, k;
    int8_t *x, *w[MAX_SETS];
    void *y[MAX_SETS];
    float *floats; /* scales of rows and columns */
    int sets;
    int each; /* GEMMs for each counted launch: short ones are repeated */
    /* the measured kernel */
    ft_cuda_gemm_kernel how;
    int tile; /* of wgmma, or -1 */
    uint32_t *sink;
} setting;

static void *random_memory(size_t bytes)
{
    enum { BLOCK = 8 << 20 };
    static uint8_t *block;
    char *memory;
    if (block == NULL) {
        block = malloc(BLOCK);
        for (size_t i = 0; i < BLOCK; i++) /* int8 values; pairs of them are moderate f16 numbers */
            block[i] = (uint8_t) (i % 2 == 0 ? rand() : (rand() & 0x80) | (0x20 + rand() % 16));
    }
    must((int) cudaMalloc((void **) &memory, bytes), "cudaMalloc");
    for (size_t at = 0; at < bytes; at += BLOCK)
        must((int) cudaMemcpy(memory + at, block, ft_min_size(BLOCK, bytes - at),
                              cudaMemcpyHostToDevice),
             "cudaMemcpy");
    return memory;
}

static void setting_init(setting *s, size_t m, size_t n, size_t k, size_t element)
{
    s->m = m, s->n = n, s->k = k;
    s->each = m > 256 ? 1 : 4;
    s->sets = (int) ft_min_size(MAX_SETS, SET_BYTES / (n * k * element) + 2);
    s->x = random_memory(m * k * element);
    for (int i = 0; i < s->sets; i++) {
        s->w[i] = random_memory(n * k * element);
        s->y[i] = random_memory(m * n * sizeof(float));
    }
}

static void setting_fini(setting *s)
{
    cudaFree(s->x);
    for (int i = 0; i < s->sets; i++) {
        cudaFree(s->w[i]);
        cudaFree(s->y[i]);
    }
}

/* ---- Launches ------------------------------------------------------------------------------- */

static ft_cuda_gemm_args gemm_of(const setting *s, int set)
{
    return (ft_cuda_gemm_args){
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .x = s->x,
        .w = s->w[set],
        .prepacked = s->w[set],
        .x_scales = s->floats,
        .w_scale = s->floats,
        .y_dtype = FT_F16,
        .n_outputs = 1,
        .width = { s->n },
        .y = { s->y[set] },
    };
}

static int launch_int8(cudaStream_t stream, size_t i, void *data)
{
    const setting *s = data;
    int status = 0;
    for (int j = 0; j < s->each && status == 0; j++) {
        ft_cuda_gemm_args p = gemm_of(s, (int) (i * (size_t) s->each + (size_t) j) % s->sets);
        status = s->tile >= 0
                     ? ft_cuda_wgmma_launch((ft_cuda_wgmma_tile) s->tile, &s->props, stream, &p)
                     : ft_cuda_gemm_launch(s->how, &s->props, stream, &p);
    }
    return status;
}

static int launch_f16(cudaStream_t stream, size_t i, void *data)
{
    const setting *s = data;
    int status = 0;
    for (int j = 0; j < s->each && status == 0; j++) {
        int set = (int) (i * (size_t) s->each + (size_t) j) % s->sets;
        ft_cuda_float_gemm_args p = {
            .m = s->m,
            .n = s->n,
            .k = s->k,
            .x = s->x,
            .w = s->w[set],
            .x_dtype = FT_F16,
            .w_dtype = FT_F16,
            .y_dtype = FT_F32,
            .y = s->y[set],
        };
        status = ft_cuda_float_gemm_batch_invariant(&s->props, stream, &p);
    }
    return status;
}

static int launch_read(cudaStream_t stream, size_t i, void *data)
{
    const setting *s = data;
    int status = 0;
    for (int j = 0; j < s->each && status == 0; j++)
        status = ft_cuda_read_bandwidth(
            &s->props, stream, s->w[(i * (size_t) s->each + (size_t) j) % (size_t) s->sets],
            s->n * s->k, s->sink);
    return status;
}

static double time_of(launch_one launch, setting *s)
{
    return replay(launch, s) / s->each;
}

/* ---- Tables --------------------------------------------------------------------------------- */

static void print_row(const setting *s, const char *what, const char *way, double us,
                      double bytes_per_element, double bandwidth)
{
    double bytes = (double) s->n * (double) s->k * bytes_per_element;
    double tops = 2e-6 * (double) s->m * (double) s->n * (double) s->k / us;
    printf("%5zu %6zu %6zu  %-26s %-10s %9.2f us %7.2f TB/s %5.1f %% %8.1f TOPS %5.1f %%\n", s->m,
           s->n, s->k, what, way, us, 1e-6 * bytes / us, 100e-6 * bytes / us / bandwidth, tops,
           100.0 * tops / PEAK_TOPS);
    fflush(stdout);
}

static void measure_int8(setting *s, const extent *shape, bool all, double bandwidth)
{
    ft_cuda_gemm_args p = gemm_of(s, 0);
    ft_cuda_gemm_kernel chosen = ft_cuda_gemm_select(&s->props, &p);
    ft_cuda_wgmma_tile chosen_tile = ft_cuda_wgmma_select(&s->props, &p);
    s->tile = -1;
    s->how = chosen;
    print_row(s, shape->name, ft_cuda_gemm_name(s->how), time_of(launch_int8, s), 1.0, bandwidth);
    for (int how = FT_CUDA_GEMM_MMA; how < FT_CUDA_GEMM_KERNELS && all; how++) {
        s->how = (ft_cuda_gemm_kernel) how;
        if (how != (int) chosen && how != FT_CUDA_GEMM_WGMMA && how != FT_CUDA_GEMM_CUBLASLT &&
            !(how == FT_CUDA_GEMM_GEMV && !ft_cuda_gemm_gemv_supports(&s->props, &p)))
            print_row(s, "", ft_cuda_gemm_name(s->how), time_of(launch_int8, s), 1.0, bandwidth);
    }
    for (s->tile = 0; s->tile < FT_CUDA_WGMMA_ANY_EPILOGUE && all; s->tile++)
        if (ft_cuda_wgmma_tile_supports((ft_cuda_wgmma_tile) s->tile, &p))
            print_row(s, s->tile == (int) chosen_tile ? "(default wgmma tile)" : "",
                      ft_cuda_wgmma_tile_name((ft_cuda_wgmma_tile) s->tile),
                      time_of(launch_int8, s), 1.0, bandwidth);
}

/* The bandwidth in TB/s of reading the weights of gate and up. */
static double measure_bandwidth(setting *s)
{
    setting_init(s, 1, 22016, 4096, 1);
    double us = time_of(launch_read, s);
    print_row(s, "", "read", us, 1.0, 1e-6 * (double) (s->n * s->k) / us);
    double bandwidth = 1e-6 * (double) (s->n * s->k) / us;
    setting_fini(s);
    return bandwidth;
}

static void setting_open(setting *s)
{
    float *floats = malloc(32768 * sizeof *floats);
    if (floats == NULL)
        exit(1);
    s->props = open_gpu();
    for (int i = 0; i < 32768; i++)
        floats[i] = 0.01f * (float) (1 + rand() % 100) / 100.0f;
    s->floats = device_copy(floats, 32768 * sizeof *floats);
    must((int) cudaMalloc((void **) &s->sink, sizeof *s->sink), "cudaMalloc");
    free(floats);
}

int main(int argc, char **argv)
{
    static const size_t usual[] = { 1, 4, 8, 16, 32, 64, 128, 512, 2048 };
    static setting s;
    bool all = false;
    int option;
    while ((option = getopt(argc, argv, "a")) != -1) {
        if (option != 'a')
            return 2;
        all = true;
    }
    setting_open(&s);
    double bandwidth = measure_bandwidth(&s);
    size_t count = optind < argc ? (size_t) (argc - optind) : sizeof usual / sizeof usual[0];
    for (size_t i = 0; i < count; i++) {
        size_t m = optind < argc ? strtoul(argv[optind + (int) i], NULL, 10) : usual[i];
        if (m == 0 || m > MAX_M)
            return 2;
        for (size_t j = 0; j < sizeof shapes / sizeof shapes[0]; j++) {
            setting_init(&s, m, shapes[j].n, shapes[j].k, 1);
            measure_int8(&s, &shapes[j], all, bandwidth);
            setting_fini(&s);
        }
        setting_init(&s, m, 32000, 4096, 2);
        print_row(&s, "LM head, float16", "batch-inv.", time_of(launch_f16, &s), 2.0, bandwidth);
        setting_fini(&s);
    }
    return 0;
}
