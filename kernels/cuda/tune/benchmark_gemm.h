/*
 * benchmark_gemm.h - benchmark of all kernels for one INT8 GEMM.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_TUNE_BENCHMARK_GEMM_H
#define FT_KERNELS_CUDA_TUNE_BENCHMARK_GEMM_H

#include "kernels/cuda/host/device.h"

#include <cublasLt.h>

enum {
    FT_CUDA_SETS = 24,
    FT_CUDA_NODES = 24,
    FT_CUDA_ROUNDS = 9,
    FT_CUDA_WORKSPACE = 64 << 20, /* bytes, for cuBLASLt */
};

/* One set of GEMM operands. */
typedef struct ft_cuda_operands {
    int8_t *x, *w, *tiles; /* prepacked w; NULL where the device does not use it */
    void *x_half, *w_half;
    void *y; /* large enough for float */
} ft_cuda_operands;

/* Benchmark state: enough operand sets that data cached by one GEMM does not help the next. */
typedef struct ft_cuda_contest {
    const ft_cuda_chip *chip;
    const ft_match *match;
    char *memory;
    ft_cuda_operands set[FT_CUDA_SETS];
    int sets;
    float *scale, *bias; /* [n] */
    void *workspace;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cublasLtHandle_t lt;
} ft_cuda_contest;

/* A cuBLASLt baseline: its compute type and data types. */
typedef struct ft_cuda_rival {
    const char *name;
    cublasComputeType_t compute;
    cudaDataType_t scale, operand, result;
} ft_cuda_rival;

typedef struct ft_cuda_player {
    const char *name;
    ft_cuda_gemm how;           /* our kernel, unless `cublaslt` is set */
    const ft_cuda_rival *rival; /* NULL: our kernel */
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulAlgo_t algorithm;
    cudaGraphExec_t graph; /* FT_CUDA_NODES GEMMs */
    float ms[FT_CUDA_ROUNDS], median;
} ft_cuda_player;

/*
 * Allocates operands of random values, a stream and a cuBLASLt handle. Returns a cudaError_t; fini
 * also accepts a state whose init failed.
 */
int ft_cuda_contest_init(ft_cuda_contest *c, const ft_cuda_chip *chip, const ft_match *match);
void ft_cuda_contest_fini(ft_cuda_contest *c);

/*
 * cuBLASLt candidates (benchmark_cublaslt.c): their number, and initialization of one; false:
 * cuBLASLt has no algorithm.
 */
int ft_cuda_rivals(void);
bool ft_cuda_rival_init(ft_cuda_contest *c, ft_cuda_player *out, int index);
int ft_cuda_rival_launch(const ft_cuda_contest *c, const ft_cuda_player *p,
                         const ft_cuda_operands *set);
void ft_cuda_player_fini(ft_cuda_player *p);

/* Capture the candidate's graph; false: it does not support this GEMM. */
bool ft_cuda_player_record(ft_cuda_contest *c, ft_cuda_player *p);

/* Run all candidates round-robin and compute their median times. */
int ft_cuda_contest_play(ft_cuda_contest *c, ft_cuda_player *player, int count, int rounds);

#endif
