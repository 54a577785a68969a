/*
 * benchmark_candidate.c - candidates of the GEMM benchmark: our kernels and cuBLASLt.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/tune/benchmark_gemm.h"

/* ---- Graphs ------------------------------------------------------------------------------ */

ft_cuda_gemm_args ft_cuda_gemm_benchmark_args(const ft_cuda_gemm_benchmark *c,
                                              const ft_cuda_benchmark_operands *set)
{
    const ft_gemm_problem *problem = c->problem;
    return (ft_cuda_gemm_args){
        .m = problem->m,
        .n = problem->n,
        .k = problem->k,
        .x = set->x,
        .w = problem->linears > 1 ? NULL : set->w,
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
                           const ft_cuda_benchmark_operands *set)
{
    static const float scale = 1.0f / 4096.0f, beta = 0.0f;
    static const int32_t alpha_i32 = 1, beta_i32 = 0;
    bool is_int32 = p->cublaslt->scale == CUDA_R_32I, is_f16 = p->cublaslt->operand == CUDA_R_16F;
    return (int) cublasLtMatmul(c->lt, p->gemm, is_int32 ? (const void *) &alpha_i32 : &scale,
                                is_f16 ? set->w_f16 : set->w, p->w, is_f16 ? set->x_f16 : set->x,
                                p->x, is_int32 ? (const void *) &beta_i32 : &beta, set->y, p->y,
                                set->y, p->y, &p->algorithm, c->workspace,
                                FT_CUDA_CUBLASLT_WORKSPACE, c->clock.stream);
}

/* A candidate and its operands. */
typedef struct candidate_context {
    const ft_cuda_gemm_benchmark *c;
    const ft_cuda_candidate *p;
} candidate_context;

static int launch(const void *context, int set)
{
    const ft_cuda_gemm_benchmark *c = ((const candidate_context *) context)->c;
    const ft_cuda_candidate *p = ((const candidate_context *) context)->p;
    if (p->cublaslt != NULL)
        return launch_cublaslt(c, p, &c->set[set]);
    ft_cuda_gemm_args gemm = ft_cuda_gemm_benchmark_args(c, &c->set[set]);
    return ft_cuda_gemm_launch(p->kernel, c->props, c->clock.stream, &gemm);
}

bool ft_cuda_candidate_capture(ft_cuda_gemm_benchmark *c, ft_cuda_candidate *p)
{
    const candidate_context context = { c, p };
    const ft_cuda_launches launches = { launch, &context, c->sets, FT_CUDA_REPLAY_MAX_LAUNCHES };
    return ft_cuda_replay_capture(&p->replay, &c->clock, &launches);
}

void ft_cuda_candidate_fini(ft_cuda_candidate *p)
{
    ft_cuda_replay_fini(&p->replay);
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

int ft_cuda_gemm_benchmark_run(ft_cuda_gemm_benchmark *c, ft_cuda_candidate *candidate, int count,
                               int rounds)
{
    ft_cuda_replay *replays[FT_MAX_GEMM_CANDIDATES];
    for (int i = 0; i < count; i++)
        replays[i] = &candidate[i].replay;
    return ft_cuda_replay_run(&c->clock, replays, count, rounds);
}
