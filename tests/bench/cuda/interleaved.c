/*
 * interleaved.c - see interleaved.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/cuda/interleaved.h"

#include <stdlib.h>
#include <unistd.h>

enum { HEURISTICS = 8, TRIALS = 3, PAUSE_US = 500 };

/* ---- Graphs --------------------------------------------------------------------------------- */

bool timed_capture(timed *t, cudaStream_t stream, int launches, launch_one launch, void *data)
{
    cudaGraph_t graph;
    int status = 0;
    t->launches = launches;
    must((int) cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 0; i < launches && status == 0; i++)
        status = launch(stream, (size_t) i, data);
    must((int) cudaStreamEndCapture(stream, &graph), "end of capture");
    if (status == 0)
        must((int) cudaGraphInstantiate(&t->graph, graph, 0), "graph");
    cudaGraphDestroy(graph);
    return status == 0;
}

/* Microseconds of one launch, behind a graph that is not counted. */
static float measure(const timed *t, cudaStream_t stream)
{
    static cudaEvent_t begin, end;
    float ms;
    if (begin == NULL) {
        must((int) cudaEventCreate(&begin), "event");
        must((int) cudaEventCreate(&end), "event");
    }
    usleep(PAUSE_US);
    must((int) cudaGraphLaunch(t->graph, stream), "graph");
    must((int) cudaEventRecord(begin, stream), "event");
    must((int) cudaGraphLaunch(t->graph, stream), "graph");
    must((int) cudaEventRecord(end, stream), "event");
    must((int) cudaStreamSynchronize(stream), "graph");
    must((int) cudaEventElapsedTime(&ms, begin, end), "time");
    return 1000.0f * ms / (float) t->launches;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *) a, y = *(const float *) b;
    return (x > y) - (x < y);
}

static timed *at(timed *first, size_t stride, int i)
{
    return (timed *) (void *) ((char *) first + (size_t) i * stride);
}

void timed_measure(timed *first, size_t stride, int count, cudaStream_t stream, int rounds)
{
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++)
            at(first, stride, i)->time[round] = measure(at(first, stride, i), stream);
    for (int i = 0; i < count; i++) {
        timed *t = at(first, stride, i);
        qsort(t->time, (size_t) rounds, sizeof *t->time, compare);
        t->median = t->time[rounds / 2];
    }
}

/* ---- cuBLASLt ------------------------------------------------------------------------------- */

static void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                const void *value, size_t bytes)
{
    must((int) cublasLtMatmulDescSetAttribute(product, attribute, value, bytes), "cuBLASLt");
}

void lt_describe(lt_gemm *g, size_t m, size_t n, size_t k, const lt_types *types, const void *bias)
{
    cublasOperation_t transposed = CUBLAS_OP_T;
    cublasLtEpilogue_t gelu = CUBLASLT_EPILOGUE_GELU_BIAS;
    must((int) cublasLtMatmulDescCreate(&g->product, types->compute, types->scale), "cuBLASLt");
    set(g->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    if (bias != NULL) {
        set(g->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &gelu, sizeof gelu);
        set(g->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        set(g->product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &types->bias, sizeof types->bias);
    }
    must((int) cublasLtMatrixLayoutCreate(&g->w, types->operand, k, n, (int64_t) k), "cuBLASLt");
    must((int) cublasLtMatrixLayoutCreate(&g->x, types->operand, k, m, (int64_t) k), "cuBLASLt");
    must((int) cublasLtMatrixLayoutCreate(&g->y, types->result, n, m, (int64_t) n), "cuBLASLt");
}

/* Heuristics for a GEMM; returns their number, 0 where cuBLASLt does not support it. */
static int propose(cublasLtMatmulHeuristicResult_t out[HEURISTICS], const lt_gemm *g,
                   cublasLtHandle_t lt)
{
    cublasLtMatmulPreference_t preference;
    size_t workspace = WORKSPACE;
    int found = 0;
    must((int) cublasLtMatmulPreferenceCreate(&preference), "cuBLASLt");
    (void) cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    (void) cublasLtMatmulAlgoGetHeuristic(lt, g->product, g->w, g->x, g->y, g->y, preference,
                                          HEURISTICS, out, &found);
    (void) cublasLtMatmulPreferenceDestroy(preference);
    return found;
}

bool lt_find_fastest(lt_gemm *g, timed *t, cublasLtHandle_t lt, cudaStream_t stream, int launches,
                     launch_one launch, void *data)
{
    cublasLtMatmulHeuristicResult_t heuristic[HEURISTICS];
    int found = propose(heuristic, g, lt), best = -1;
    for (int i = 0; i < found; i++) {
        timed one = { 0 };
        g->algorithm = heuristic[i].algo;
        if (!timed_capture(&one, stream, launches, launch, data))
            continue;
        timed_measure(&one, sizeof one, 1, stream, TRIALS);
        timed slower = best < 0 || one.median < t->median ? *t : one;
        if (best >= 0)
            cudaGraphExecDestroy(slower.graph);
        if (best < 0 || one.median < t->median) {
            *t = one;
            best = i;
        }
    }
    if (best >= 0)
        g->algorithm = heuristic[best].algo;
    return best >= 0;
}
