/*
 * benchmark_gemm.h - a contest of the ways to compute one int8 product.
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
    FT_CUDA_WORKSPACE = 64 << 20, /* bytes, of cuBLASLt */
};

/* One copy of everything that a product reads and writes. */
typedef struct ft_cuda_operands {
    int8_t *x, *w, *tiles; /* tiles: NULL where the device has no use for them */
    void *x_half, *w_half;
    void *y; /* room for float */
} ft_cuda_operands;

/* The stage: so many copies that what one product leaves in the cache does not help the next. */
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

/* Who takes part: ours, or a product of cuBLASLt. */
typedef struct ft_cuda_rival {
    const char *name;
    cublasComputeType_t compute;
    cudaDataType_t scale, operand, result;
} ft_cuda_rival;

typedef struct ft_cuda_player {
    const char *name;
    ft_cuda_gemm how;           /* ours; else: */
    const ft_cuda_rival *rival; /* NULL: ours */
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulAlgo_t algorithm;
    cudaGraphExec_t graph; /* FT_CUDA_NODES products */
    float ms[FT_CUDA_ROUNDS], median;
} ft_cuda_player;

/* Memory full of random numbers, a stream, cuBLASLt.  CUDA's error; fini takes a failed one too. */
int ft_cuda_contest_init(ft_cuda_contest *c, const ft_cuda_chip *chip, const ft_match *match);
void ft_cuda_contest_fini(ft_cuda_contest *c);

/* cuBLASLt's players (benchmark_cublaslt.c): how many there are, and one made ready; false: it has none. */
int ft_cuda_rivals(void);
bool ft_cuda_rival_init(ft_cuda_contest *c, ft_cuda_player *out, int index);
int ft_cuda_rival_launch(const ft_cuda_contest *c, const ft_cuda_player *p,
                         const ft_cuda_operands *set);
void ft_cuda_player_fini(ft_cuda_player *p);

/* Record the player's graph; false: it does not take this product. */
bool ft_cuda_player_record(ft_cuda_contest *c, ft_cuda_player *p);

/* Let all of them play in turns, and find their medians. */
int ft_cuda_contest_play(ft_cuda_contest *c, ft_cuda_player *player, int count, int rounds);

#endif
