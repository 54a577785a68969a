/*
 * norm_group.c - a fusion group of a norm, linears and a gate.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/cuda/norm_group.h"

#ifdef HAVE_CUDA

#include "tests/cuda/guarded.h"
#include "tests/tap/tap.h"

#include <cuda_runtime_api.h>

static ft_cuda_args args_of(const ft_op *op, const ft_cuda_args *common)
{
    ft_cuda_args args = *common;
    args.op = op;
    return args;
}

static ft_view row_of(const norm_group *g, uint64_t seed)
{
    return (ft_view){ .rows = g->tokens,
                      .cols = g->s->k,
                      .dtype = g->s->dtype,
                      .data = random_f16(seed, g->s->dtype, g->tokens * g->s->k) };
}

void norm_group_open(norm_group *g, const norm_group_shape *s, const ft_cuda_args *common,
                     size_t tokens, uint64_t seed)
{
    *g = (norm_group){ .s = s, .tokens = tokens };
    g->norm_op = (ft_op){ .kind = FT_OP_NORM, .attr = { .norm = FT_NORM_RMS, .eps = 1e-5f } };
    g->linear_op = (ft_op){ .kind = FT_OP_LINEAR };
    g->gate_op = (ft_op){ .kind = FT_OP_GATE, .attr = { .activation = s->gate } };
    g->gamma = (ft_weight){ .rows = 1, .cols = s->k, .dtype = FT_F32 };
    g->gamma.data = random_vector(seed, s->k);
    g->norm = args_of(&g->norm_op, common);
    g->norm.in[0] = row_of(g, seed + 1);
    g->norm.weight[0] = &g->gamma;
    if (s->residual)
        g->norm.in[1] = row_of(g, seed + 2);
    for (; g->linears < FT_CUDA_MAX_FUSED && s->rows[g->linears] > 0; g->linears++) {
        ft_cuda_args *linear = &g->linear[g->linears];
        *linear = args_of(&g->linear_op, common);
        linear->weight[0] = &g->weight[g->linears];
        linear->weight[1] = s->bias ? &g->bias[g->linears] : NULL;
    }
    g->gate = args_of(&g->gate_op, common);
}

bool norm_group_gates(const norm_group *g)
{
    return g->s->gate != FT_ACT_NONE;
}

void norm_group_clear(norm_group *g)
{
    const norm_group_shape *s = g->s;
    g->norm.out = result_of(g->tokens, s->k, s->dtype);
    if (s->residual)
        g->norm.second = result_of(g->tokens, s->k, s->dtype);
    for (int i = 0; i < g->linears; i++) {
        g->linear[i].in[0] = g->norm.out;
        g->linear[i].out = result_of(g->tokens, s->rows[i], s->dtype);
    }
    g->gate.in[0] = g->linear[0].out;
    g->gate.in[1] = g->linear[1].out;
    if (norm_group_gates(g))
        g->gate.out = result_of(g->tokens, s->rows[0], s->dtype);
}

ft_cuda_group norm_group_of(const norm_group *g, bool norm, bool gate)
{
    ft_cuda_group group = { .kind = FT_FUSION_LINEAR,
                            .norm = norm ? &g->norm : NULL,
                            .linears = g->linears,
                            .gate = gate ? &g->gate : NULL };
    for (int i = 0; i < g->linears; i++)
        group.linear[i] = &g->linear[i];
    return group;
}

bool norm_group_run_fused(const ft_cuda_group *group)
{
    ft_cuda_group part;
    const ft_cuda_fused_kernel *kernel = ft_cuda_fused_kernel_for(group, &part);
    if (kernel == NULL || part.norm != group->norm || part.gate != group->gate)
        return false;
    must(kernel->launch(&part), "fused kernel");
    must((int) cudaDeviceSynchronize(), "fused kernel");
    return true;
}

void norm_group_compare(const norm_group *g, const norm_group *expected, bool norm)
{
    bool gates = norm_group_gates(g), right = true, apart = true;
    if (norm && g->s->residual)
        right = same(&g->norm.second, &expected->norm.second);
    if (norm)
        apart = untouched(&g->norm.out);
    for (int i = 0; i < g->linears; i++)
        if (gates)
            apart = apart && untouched(&g->linear[i].out);
        else
            right = right && same(&g->linear[i].out, &expected->linear[i].out);
    if (gates)
        right = right && same(&g->gate.out, &expected->gate.out);
    ok(right, "the fused kernel gives the bits of separate kernels");
    ok(apart, "the fused kernel leaves unread intermediates unwritten");
}

#endif
