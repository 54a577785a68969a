/*
 * interleaved.h - times of GEMMs that alternate, ours and the fastest heuristic of cuBLASLt.
 *
 * A candidate is a CUDA graph of launches.  The graphs alternate, with pauses, because a GPU at
 * its power limit slows down the last candidate.  A time is the median over the rounds, divided by
 * the launches of a graph.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_CUDA_INTERLEAVED_H
#define FT_TESTS_BENCH_CUDA_INTERLEAVED_H

#include "tests/bench/cuda/replay.h"

#include <cublasLt.h>
#include <stdbool.h>

enum { MAX_ROUNDS = 100, WORKSPACE = 64 << 20 };

typedef struct timed {
    cudaGraphExec_t graph;
    int launches;                   /* of the graph */
    float time[MAX_ROUNDS], median; /* us of one launch */
} timed;

/* Captures launches 0 .. launches - 1 as a graph; false if one is not supported. */
bool timed_capture(timed *t, cudaStream_t stream, int launches, launch_one launch, void *data);

/* Measures `count` graphs in turns; the first is in *first, and they are `stride` bytes apart. */
void timed_measure(timed *first, size_t stride, int count, cudaStream_t stream, int rounds);

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
bool lt_find_fastest(lt_gemm *g, timed *t, cublasLtHandle_t lt, cudaStream_t stream, int launches,
                     launch_one launch, void *data);

#endif
