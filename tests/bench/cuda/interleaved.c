/*
 * interleaved.c - see interleaved.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/cuda/interleaved.h"

enum { HEURISTICS = 8, TRIALS = 3, MAX_REPLAYS = 128 };

/* ---- Times ---------------------------------------------------------------------------------- */

double us_of(const ft_cuda_replay *replay)
{
    return 1000.0 * (double) replay->median;
}

void replay_alternating(ft_cuda_replay *first, size_t stride, int count, const ft_cuda_clock *clock,
                        int rounds)
{
    ft_cuda_replay *replays[MAX_REPLAYS];
    must(count > MAX_REPLAYS ? (int) cudaErrorInvalidValue : 0, "too many graphs");
    for (int i = 0; i < count; i++)
        replays[i] = (ft_cuda_replay *) (void *) ((char *) first + (size_t) i * stride);
    must(ft_cuda_replay_run(clock, replays, count, rounds), "graphs");
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

bool lt_find_fastest(lt_gemm *g, ft_cuda_replay *out, cublasLtHandle_t lt,
                     const ft_cuda_clock *clock, const ft_cuda_launches *launches)
{
    cublasLtMatmulHeuristicResult_t heuristic[HEURISTICS];
    int found = propose(heuristic, g, lt), best = -1;
    for (int i = 0; i < found; i++) {
        ft_cuda_replay one;
        g->algorithm = heuristic[i].algo;
        if (!ft_cuda_replay_capture(&one, clock, launches))
            continue;
        replay_alternating(&one, sizeof one, 1, clock, TRIALS);
        bool is_faster = best < 0 || one.median < out->median;
        if (best >= 0)
            ft_cuda_replay_fini(is_faster ? out : &one);
        if (is_faster) {
            *out = one;
            best = i;
        }
    }
    if (best >= 0)
        g->algorithm = heuristic[best].algo;
    return best >= 0;
}
