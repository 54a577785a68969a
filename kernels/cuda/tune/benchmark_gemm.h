/*
 * benchmark_gemm.h - benchmark of all kernels for one INT8 GEMM.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_TUNE_BENCHMARK_GEMM_H
#define FT_KERNELS_CUDA_TUNE_BENCHMARK_GEMM_H

#include "kernels/cuda/host/device.h"
#include "kernels/cuda/tune/replay.h"

#include <cublasLt.h>

enum {
    FT_CUDA_BENCH_MAX_SETS = 24,
    FT_CUDA_CUBLASLT_WORKSPACE = 64 << 20, /* bytes, for cuBLASLt */
};

/* One set of GEMM operands. */
typedef struct ft_cuda_benchmark_operands {
    int8_t *x, *w, *prepacked; /* prepacked w; NULL where the device does not use it */
    void *x_f16, *w_f16;
    void *y; /* large enough for float */
} ft_cuda_benchmark_operands;

/* Benchmark state: enough operand sets that data cached by one GEMM does not help the next. */
typedef struct ft_cuda_gemm_benchmark {
    const ft_cuda_device_props *props;
    const ft_gemm_problem *problem;
    char *memory;
    ft_cuda_benchmark_operands set[FT_CUDA_BENCH_MAX_SETS];
    int sets;
    float *scale, *bias; /* [n] */
    void *workspace;
    ft_cuda_clock clock;
    cublasLtHandle_t lt;
} ft_cuda_gemm_benchmark;

/* A cuBLASLt baseline: its compute type and data types. */
typedef struct ft_cuda_cublaslt_config {
    const char *name;
    cublasComputeType_t compute;
    cudaDataType_t scale, operand, result;
} ft_cuda_cublaslt_config;

typedef struct ft_cuda_candidate {
    const char *name;
    ft_cuda_gemm_kernel kernel;              /* our kernel, unless `cublaslt` is set */
    const ft_cuda_cublaslt_config *cublaslt; /* NULL: our kernel */
    cublasLtMatmulDesc_t gemm;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulAlgo_t algorithm;
    ft_cuda_replay replay;
} ft_cuda_candidate;

/*
 * Allocates operands of random values, a clock and a cuBLASLt handle. Returns a cudaError_t; fini
 * also accepts a state whose init failed.
 */
int ft_cuda_gemm_benchmark_init(ft_cuda_gemm_benchmark *c, const ft_cuda_device_props *props,
                                const ft_gemm_problem *problem);
void ft_cuda_gemm_benchmark_fini(ft_cuda_gemm_benchmark *c);

/* ---- Candidates (benchmark_candidate.c) --------------------------------------------------- */

/* The GEMM on one set of operands, for a kernel of ours. */
ft_cuda_gemm_args ft_cuda_gemm_benchmark_args(const ft_cuda_gemm_benchmark *c,
                                              const ft_cuda_benchmark_operands *set);

/* Capture the candidate's graph; false: it does not support this GEMM. */
bool ft_cuda_candidate_capture(ft_cuda_gemm_benchmark *c, ft_cuda_candidate *p);
void ft_cuda_candidate_fini(ft_cuda_candidate *p);

/* Run all candidates round-robin and compute their median times. */
int ft_cuda_gemm_benchmark_run(ft_cuda_gemm_benchmark *c, ft_cuda_candidate *candidate, int count,
                               int rounds);

/* ---- cuBLASLt baselines (benchmark_cublaslt.c) -------------------------------------------- */

/* Number of baselines, and initialization of one; false: cuBLASLt has no algorithm. */
int ft_cuda_cublaslt_count(void);
bool ft_cuda_cublaslt_init(ft_cuda_gemm_benchmark *c, ft_cuda_candidate *out, int index);

#endif
