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

enum { MAX_ALGORITHMS = 8, TRIALS = 3 };

static const ft_cuda_cublaslt_config cublaslt_configs[] = {
    { "cuBLASLt i8->i8", CUBLAS_COMPUTE_32I, CUDA_R_32F, CUDA_R_8I, CUDA_R_8I },
    { "cuBLASLt i8->i32", CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I },
    { "cuBLASLt f16->f16", CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F },
};

int ft_cuda_cublaslt_count(void)
{
    return (int) FT_COUNT(cublaslt_configs);
}

/* y^T [n, m] = w^T . x in the library's column-major view of row-major matrices. */
static bool describe(const ft_cuda_gemm_benchmark *c, ft_cuda_candidate *p)
{
    const ft_cuda_cublaslt_config *r = p->cublaslt;
    size_t m = c->problem->m, n = c->problem->n, k = c->problem->k;
    cublasOperation_t transposed = CUBLAS_OP_T;
    return cublasLtMatmulDescCreate(&p->gemm, r->compute, r->scale) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatmulDescSetAttribute(p->gemm, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                          sizeof transposed) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutCreate(&p->w, r->operand, k, n, (int64_t) k) ==
               CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutCreate(&p->x, r->operand, k, m, (int64_t) k) ==
               CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutCreate(&p->y, r->result, n, m, (int64_t) n) == CUBLAS_STATUS_SUCCESS;
}

static int get_algorithms(const ft_cuda_gemm_benchmark *c, const ft_cuda_candidate *p,
                          cublasLtMatmulHeuristicResult_t out[MAX_ALGORITHMS])
{
    cublasLtMatmulPreference_t preference = NULL;
    size_t workspace = FT_CUDA_CUBLASLT_WORKSPACE;
    int found = 0;
    if (cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS)
        return 0;
    if (cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace,
                                             sizeof workspace) != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatmulAlgoGetHeuristic(c->lt, p->gemm, p->w, p->x, p->y, p->y, preference,
                                       MAX_ALGORITHMS, out, &found) != CUBLAS_STATUS_SUCCESS)
        found = 0;
    (void) cublasLtMatmulPreferenceDestroy(preference);
    return found;
}

/* Keep the graph of the fastest algorithm. */
static void select_fastest(ft_cuda_gemm_benchmark *c, ft_cuda_candidate *p)
{
    cublasLtMatmulHeuristicResult_t algorithms[MAX_ALGORITHMS];
    int found = get_algorithms(c, p, algorithms);
    ft_cuda_candidate best = *p;
    for (int i = 0; i < found; i++) {
        p->replay.graph = NULL;
        p->algorithm = algorithms[i].algo;
        if (!ft_cuda_candidate_capture(c, p))
            continue;
        bool better = ft_cuda_gemm_benchmark_run(c, p, 1, TRIALS) == 0 &&
                      (best.replay.graph == NULL || p->replay.median < best.replay.median);
        cudaGraphExec_t slower = better ? best.replay.graph : p->replay.graph;
        if (slower != NULL)
            (void) cudaGraphExecDestroy(slower);
        if (better)
            best = *p;
    }
    *p = best;
}

bool ft_cuda_cublaslt_init(ft_cuda_gemm_benchmark *c, ft_cuda_candidate *out, int index)
{
    *out = (ft_cuda_candidate){ .name = cublaslt_configs[index].name,
                                .cublaslt = &cublaslt_configs[index] };
    if (describe(c, out))
        select_fastest(c, out);
    if (out->replay.graph != NULL)
        return true;
    ft_cuda_candidate_fini(out);
    return false;
}
