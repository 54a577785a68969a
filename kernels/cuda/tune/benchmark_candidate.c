/*
 * benchmark_candidate.c - candidates of the GEMM benchmark: launch, graph capture and timing.
 *
 * Every candidate is a CUDA graph of GEMMs that rotate over copies of the operands, so that
 * operands come from DRAM and not from L2. The graphs run round-robin with pauses, because a GPU at
 * its power limit throttles whatever runs last. The result is the median over all rounds, divided
 * by the number of GEMMs of a graph.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/tune/benchmark_gemm.h"

#include <stdlib.h>
#include <time.h>

enum { PAUSE_NS = 500000 };

/* ---- Graphs ------------------------------------------------------------------------------ */

ft_cuda_gemm_args ft_cuda_gemm_benchmark_args(const ft_cuda_gemm_benchmark *c,
                                              const ft_cuda_gemm_operands *set)
{
    const ft_gemm_problem *problem = c->problem;
    return (ft_cuda_gemm_args){
        .m = problem->m,
        .n = problem->n,
        .k = problem->k,
        .x = set->x,
        .w = problem->merged ? NULL : set->w,
        .prepacked = set->prepacked,
        .x_scale = 1.0f / 32.0f,
        .w_scale = c->scale,
        .bias = c->bias,
        .activation = problem->activation,
        .y_dtype = problem->y,
        .n_outputs = 1,
        .width = { problem->n },
        .y = { set->y },
        .y_inv_scale = { problem->y == FT_I8 ? 32.0f : 0.0f },
    };
}

static int launch_cublaslt(const ft_cuda_gemm_benchmark *c, const ft_cuda_candidate *p,
                           const ft_cuda_gemm_operands *set)
{
    static const float scale = 1.0f / 4096.0f, beta = 0.0f;
    static const int32_t alpha_i32 = 1, beta_i32 = 0;
    bool is_int32 = p->cublaslt->scale == CUDA_R_32I, is_f16 = p->cublaslt->operand == CUDA_R_16F;
    return (int) cublasLtMatmul(c->lt, p->gemm, is_int32 ? (const void *) &alpha_i32 : &scale,
                                is_f16 ? set->w_f16 : set->w, p->w, is_f16 ? set->x_f16 : set->x,
                                p->x, is_int32 ? (const void *) &beta_i32 : &beta, set->y, p->y,
                                set->y, p->y, &p->algorithm, c->workspace,
                                FT_CUDA_CUBLASLT_WORKSPACE, c->stream);
}

static int launch(const ft_cuda_gemm_benchmark *c, const ft_cuda_candidate *p,
                  const ft_cuda_gemm_operands *set)
{
    if (p->cublaslt != NULL)
        return launch_cublaslt(c, p, set);
    ft_cuda_gemm_args gemm = ft_cuda_gemm_benchmark_args(c, set);
    return p->variant.tile < 0
               ? ft_cuda_gemm_launch(p->variant.kernel, c->props, c->stream, &gemm)
               : ft_cuda_gemm_variant_launch(&p->variant, c->props, c->stream, &gemm);
}

bool ft_cuda_candidate_capture(ft_cuda_gemm_benchmark *c, ft_cuda_candidate *p)
{
    cudaGraph_t graph = NULL;
    if (launch(c, p, &c->set[0]) != 0 || cudaStreamSynchronize(c->stream) != cudaSuccess ||
        cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
        (void) cudaGetLastError();
        return false;
    }
    int code = 0;
    for (int i = 0; i < FT_CUDA_BENCH_GRAPH_NODES && code == 0; i++)
        code = launch(c, p, &c->set[i % c->sets]);
    int ended = (int) cudaStreamEndCapture(c->stream, &graph);
    if (code == 0 && ended == 0)
        code = (int) cudaGraphInstantiate(&p->graph, graph, 0);
    if (graph != NULL)
        (void) cudaGraphDestroy(graph);
    if (code == 0 && ended == 0)
        return true;
    (void) cudaGetLastError();
    p->graph = NULL;
    return false;
}

void ft_cuda_candidate_fini(ft_cuda_candidate *p)
{
    if (p->graph != NULL)
        (void) cudaGraphExecDestroy(p->graph);
    if (p->gemm != NULL)
        (void) cublasLtMatmulDescDestroy(p->gemm);
    if (p->w != NULL)
        (void) cublasLtMatrixLayoutDestroy(p->w);
    if (p->x != NULL)
        (void) cublasLtMatrixLayoutDestroy(p->x);
    if (p->y != NULL)
        (void) cublasLtMatrixLayoutDestroy(p->y);
    *p = (ft_cuda_candidate){ 0 };
}

/* ---- Timing ------------------------------------------------------------------------------ */

/* One round: an untimed graph first, to warm up caches and clocks. */
static int time_once(const ft_cuda_gemm_benchmark *c, const ft_cuda_candidate *p, float *ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    int code = (int) cudaGraphLaunch(p->graph, c->stream);
    if (code == 0)
        code = (int) cudaEventRecord(c->begin, c->stream);
    if (code == 0)
        code = (int) cudaGraphLaunch(p->graph, c->stream);
    if (code == 0)
        code = (int) cudaEventRecord(c->end, c->stream);
    if (code == 0)
        code = (int) cudaStreamSynchronize(c->stream);
    return code != 0 ? code : (int) cudaEventElapsedTime(ms, c->begin, c->end);
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *) a, y = *(const float *) b;
    return (x > y) - (x < y);
}

int ft_cuda_gemm_benchmark_run(ft_cuda_gemm_benchmark *c, ft_cuda_candidate *candidate, int count,
                               int rounds)
{
    int code = 0;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count && code == 0; i++)
            code = time_once(c, &candidate[i], &candidate[i].ms[round]);
    for (int i = 0; i < count && code == 0; i++) {
        qsort(candidate[i].ms, (size_t) rounds, sizeof candidate[i].ms[0], compare_floats);
        candidate[i].median = candidate[i].ms[rounds / 2] / FT_CUDA_BENCH_GRAPH_NODES;
    }
    return code;
}
