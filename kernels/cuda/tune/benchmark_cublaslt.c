/*
 * benchmark_cublaslt.c - cuBLASLt baselines of the GEMM benchmark.
 *
 * They do less work than our kernels: one scale for the whole matrix, or bare int32 accumulators,
 * no bias and no activation. Each baseline uses the fastest of the algorithms that the heuristic
 * returns first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/tune/benchmark_gemm.h"
#include "runtime/mem.h"

enum { PROPOSALS = 8, TRIALS = 3 };

static const ft_cuda_rival rivals[] = {
    { "cuBLASLt i8->i8", CUBLAS_COMPUTE_32I, CUDA_R_32F, CUDA_R_8I, CUDA_R_8I },
    { "cuBLASLt i8->i32", CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I },
    { "cuBLASLt f16->f16", CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F },
};

int ft_cuda_rivals(void)
{
    return (int) FT_COUNT(rivals);
}

/* y^T [n, m] = w^T . x in the library's column-major view of row-major matrices. */
static bool describe(const ft_cuda_contest *c, ft_cuda_player *p)
{
    const ft_cuda_rival *r = p->rival;
    size_t m = c->match->m, n = c->match->n, k = c->match->k;
    cublasOperation_t transposed = CUBLAS_OP_T;
    return cublasLtMatmulDescCreate(&p->product, r->compute, r->scale) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                          sizeof transposed) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutCreate(&p->w, r->operand, k, n, (int64_t) k) ==
               CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutCreate(&p->x, r->operand, k, m, (int64_t) k) ==
               CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutCreate(&p->y, r->result, n, m, (int64_t) n) == CUBLAS_STATUS_SUCCESS;
}

static int propose(const ft_cuda_contest *c, const ft_cuda_player *p,
                   cublasLtMatmulHeuristicResult_t out[PROPOSALS])
{
    cublasLtMatmulPreference_t preference = NULL;
    size_t workspace = FT_CUDA_WORKSPACE;
    int found = 0;
    if (cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS)
        return 0;
    if (cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace,
                                             sizeof workspace) != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatmulAlgoGetHeuristic(c->lt, p->product, p->w, p->x, p->y, p->y, preference,
                                       PROPOSALS, out, &found) != CUBLAS_STATUS_SUCCESS)
        found = 0;
    (void) cublasLtMatmulPreferenceDestroy(preference);
    return found;
}

int ft_cuda_rival_launch(const ft_cuda_contest *c, const ft_cuda_player *p,
                         const ft_cuda_operands *set)
{
    static const float scale = 1.0f / 4096.0f, zero = 0.0f;
    static const int32_t one = 1, none = 0;
    bool sums = p->rival->scale == CUDA_R_32I, halves = p->rival->operand == CUDA_R_16F;
    return (int) cublasLtMatmul(c->lt, p->product, sums ? (const void *) &one : &scale,
                                halves ? set->w_half : set->w, p->w, halves ? set->x_half : set->x,
                                p->x, sums ? (const void *) &none : &zero, set->y, p->y, set->y,
                                p->y, &p->algorithm, c->workspace, FT_CUDA_WORKSPACE, c->stream);
}

/* Keep the graph of the fastest algorithm. */
static void choose(ft_cuda_contest *c, ft_cuda_player *p)
{
    cublasLtMatmulHeuristicResult_t proposal[PROPOSALS];
    int found = propose(c, p, proposal);
    ft_cuda_player best = *p;
    for (int i = 0; i < found; i++) {
        p->graph = NULL;
        p->algorithm = proposal[i].algo;
        if (!ft_cuda_player_record(c, p))
            continue;
        bool better = ft_cuda_contest_play(c, p, 1, TRIALS) == 0 &&
                      (best.graph == NULL || p->median < best.median);
        cudaGraphExec_t slower = better ? best.graph : p->graph;
        if (slower != NULL)
            (void) cudaGraphExecDestroy(slower);
        if (better)
            best = *p;
    }
    *p = best;
}

bool ft_cuda_rival_init(ft_cuda_contest *c, ft_cuda_player *out, int index)
{
    *out = (ft_cuda_player){ .name = rivals[index].name, .rival = &rivals[index] };
    if (describe(c, out))
        choose(c, out);
    if (out->graph != NULL)
        return true;
    ft_cuda_player_fini(out);
    return false;
}

void ft_cuda_player_fini(ft_cuda_player *p)
{
    if (p->graph != NULL)
        (void) cudaGraphExecDestroy(p->graph);
    if (p->product != NULL)
        (void) cublasLtMatmulDescDestroy(p->product);
    if (p->w != NULL)
        (void) cublasLtMatrixLayoutDestroy(p->w);
    if (p->x != NULL)
        (void) cublasLtMatrixLayoutDestroy(p->x);
    if (p->y != NULL)
        (void) cublasLtMatrixLayoutDestroy(p->y);
    *p = (ft_cuda_player){ 0 };
}
