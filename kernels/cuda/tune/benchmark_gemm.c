/*
 * benchmark_gemm.c - benchmark of all kernels for one INT8 GEMM: operands and candidates.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/tune/benchmark_gemm.h"
#include "kernels/cuda/tune/random_operand.h"
#include "kernels/layout.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

enum { ALIGN = 256, ROTATION_BYTES = 160 << 20 };

/* ---- Operands ---------------------------------------------------------------------------- */

/* Bytes of one operand set; with `memory`, also its pointers. */
static size_t layout_operands(const ft_cuda_gemm_benchmark *c, char *memory,
                              ft_cuda_benchmark_operands *out)
{
    size_t m = c->problem->m, n = c->problem->n, k = c->problem->k;
    size_t bytes[] = { m * k,
                       ft_layout_bytes(FT_COL4_4R2_8C, n, k),
                       c->props->has_wgmma ? ft_cuda_prepacked_bytes(n, k) : 0,
                       2 * m * k,
                       2 * n * k,
                       4 * m * n };
    char *buffers[FT_COUNT(bytes)];
    size_t at = 0;
    for (size_t i = 0; i < FT_COUNT(bytes); i++) {
        buffers[i] = memory == NULL ? NULL : memory + at;
        at += ft_round_up(bytes[i], ALIGN);
    }
    if (out != NULL)
        *out =
            (ft_cuda_benchmark_operands){ .x = (int8_t *) buffers[0],
                                          .w = (int8_t *) buffers[1],
                                          .prepacked = bytes[2] > 0 ? (int8_t *) buffers[2] : NULL,
                                          .x_f16 = buffers[3],
                                          .w_f16 = buffers[4],
                                          .y = buffers[5] };
    return at;
}

static int fill_sets(ft_cuda_gemm_benchmark *c)
{
    size_t m = c->problem->m, n = c->problem->n, k = c->problem->k;
    int code = 0;
    for (int i = 0; i < c->sets && code == 0; i++) {
        const ft_cuda_benchmark_operands *set = &c->set[i];
        code = ft_cuda_fill_random(set->x, m * k, FT_I8);
        if (code == 0)
            code = ft_cuda_fill_random(set->w, ft_layout_bytes(FT_COL4_4R2_8C, n, k), FT_I8);
        if (code == 0 && set->prepacked != NULL)
            code = ft_cuda_prepack(c->clock.stream, set->prepacked, set->w, n, k);
        if (code == 0)
            code = ft_cuda_fill_random(set->x_f16, 2 * m * k, FT_F16);
        if (code == 0)
            code = ft_cuda_fill_random(set->w_f16, 2 * n * k, FT_F16);
    }
    return code;
}

/* Weight scales and bias, such that outputs have a realistic magnitude. */
static int fill_vectors(ft_cuda_gemm_benchmark *c)
{
    size_t n = c->problem->n;
    float *values = ft_calloc(2 * n, sizeof *values);
    if (values == NULL)
        return (int) cudaErrorMemoryAllocation;
    for (size_t i = 0; i < 2 * n; i++)
        values[i] = (float) (ft_mix64(i + 1) % 1000 + 1) / (i < n ? 2e6f : 1e3f);
    int code = (int) cudaMemcpy(c->scale, values, 2 * n * sizeof *values, cudaMemcpyHostToDevice);
    free(values);
    return code;
}

int ft_cuda_gemm_benchmark_init(ft_cuda_gemm_benchmark *c, const ft_cuda_device_props *props,
                                const ft_gemm_problem *problem)
{
    *c = (ft_cuda_gemm_benchmark){ .props = props, .problem = problem };
    size_t read = problem->m * problem->k + problem->n * problem->k + problem->m * problem->n;
    size_t set = layout_operands(c, NULL, NULL), vectors = ft_round_up(8 * problem->n, ALIGN);
    c->sets = (int) ft_min_size(FT_CUDA_BENCH_MAX_SETS, ROTATION_BYTES / read + 2);
    int code = (int) cudaSetDevice(props->index);
    if (code == 0)
        code = (int) cudaMalloc((void **) &c->memory,
                                (size_t) c->sets * set + vectors + FT_CUDA_CUBLASLT_WORKSPACE);
    if (code == 0)
        code = ft_cuda_clock_init(&c->clock);
    if (code == 0 && cublasLtCreate(&c->lt) != CUBLAS_STATUS_SUCCESS)
        code = (int) cudaErrorInitializationError;
    if (code == 0) {
        for (int i = 0; i < c->sets; i++)
            layout_operands(c, c->memory + (size_t) i * set, &c->set[i]);
        c->scale = (float *) (void *) (c->memory + (size_t) c->sets * set);
        c->bias = c->scale + problem->n;
        c->workspace = c->memory + (size_t) c->sets * set + vectors;
        code = fill_vectors(c);
    }
    if (code == 0)
        code = fill_sets(c);
    return code != 0 ? code : (int) cudaDeviceSynchronize();
}

void ft_cuda_gemm_benchmark_fini(ft_cuda_gemm_benchmark *c)
{
    if (c->lt != NULL)
        (void) cublasLtDestroy(c->lt);
    ft_cuda_clock_fini(&c->clock);
    (void) cudaFree(c->memory);
}

/* ---- Benchmark --------------------------------------------------------------------------- */

static int init_candidates(ft_cuda_gemm_benchmark *c, ft_cuda_candidate *candidate)
{
    int count = 0;
    for (int kernel = 0; kernel < FT_CUDA_GEMM_KERNELS; kernel++) {
        candidate[count] =
            (ft_cuda_candidate){ .kernel = (ft_cuda_gemm_kernel) kernel,
                                 .name = ft_cuda_gemm_name((ft_cuda_gemm_kernel) kernel) };
        count += ft_cuda_candidate_capture(c, &candidate[count]);
    }
    for (int i = 0; i < ft_cuda_cublaslt_count(); i++)
        count += ft_cuda_cublaslt_init(c, &candidate[count], i);
    return count;
}

ft_status ft_cuda_benchmark_gemm(ft_device *device, const ft_gemm_problem *problem,
                                 ft_gemm_candidate out[FT_MAX_GEMM_CANDIDATES], int *count,
                                 ft_error *err)
{
    static const char what[] = "GEMM benchmark";
    ft_cuda_candidate candidate[FT_MAX_GEMM_CANDIDATES] = { 0 };
    ft_cuda_gemm_benchmark c;
    int n_candidates = 0, code = ft_cuda_gemm_benchmark_init(&c, &device->props, problem);
    if (code == 0) {
        n_candidates = init_candidates(&c, candidate);
        code = ft_cuda_gemm_benchmark_run(&c, candidate, n_candidates, FT_CUDA_REPLAY_MAX_ROUNDS);
        ft_cuda_gemm_args gemm = ft_cuda_gemm_benchmark_args(&c, &c.set[0]);
        ft_cuda_gemm_kernel chosen = ft_cuda_gemm_select(&device->props, &gemm);
        for (int i = 0; i < n_candidates; i++) {
            out[i] = (ft_gemm_candidate){ .seconds = 1e-3 * (double) candidate[i].replay.median,
                                          .chosen = candidate[i].cublaslt == NULL &&
                                                    candidate[i].kernel == chosen };
            snprintf(out[i].name, sizeof out[i].name, "%s", candidate[i].name);
        }
    }
    *count = code == 0 ? n_candidates : 0;
    for (int i = 0; i < n_candidates; i++)
        ft_cuda_candidate_fini(&candidate[i]);
    ft_cuda_gemm_benchmark_fini(&c);
    return code == 0 ? FT_OK : ft_cuda_fail(err, &device->props, code, what);
}
