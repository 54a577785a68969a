/*
 * interleaved.h - times of GEMMs that alternate (kernels/cuda/tune/replay.c), ours and the fastest
 * heuristic of cuBLASLt.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_CUDA_INTERLEAVED_H
#define FT_TESTS_BENCH_CUDA_INTERLEAVED_H

#include "kernels/cuda/tune/replay.h"
#include "tests/bench/cuda/replay.h"

#include <cublasLt.h>
#include <stdbool.h>

enum { WORKSPACE = 64 << 20 };

/* Median microseconds of one launch. */
double us_of(const ft_cuda_replay *replay);

/* Measures `count` graphs in turns; the first is in *first, and they are `stride` bytes apart. */
void replay_alternating(ft_cuda_replay *first, size_t stride, int count, const ft_cuda_clock *clock,
                        int rounds);

/* y = x . w^T, as cuBLASLt sees it: column-major and transposed. */
typedef struct lt_gemm {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulAlgo_t algorithm;
} lt_gemm;

typedef struct lt_types {
    cublasComputeType_t compute;
    cudaDataType_t scale, operand, result, bias;
} lt_types;

/* `bias` NULL: neither bias nor GELU. */
void lt_describe(lt_gemm *g, size_t m, size_t n, size_t k, const lt_types *types, const void *bias);

/*
 * Finds the fastest of cuBLASLt's first eight heuristics, with launches that read g->algorithm, and
 * captures it; false if there is none.
 */
bool lt_find_fastest(lt_gemm *g, ft_cuda_replay *out, cublasLtHandle_t lt,
                     const ft_cuda_clock *clock, const ft_cuda_launches *launches);

#endif
