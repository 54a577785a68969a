/*
 * fused_f16-t.c - f16 and bf16 linears of one row fused with the norm before and the gate after
 * them, against one kernel for each operation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/fused_kernels.h"
#include "tests/cuda/guarded.h"
#include "tests/lib/ops/device.h"

#include <cuda_runtime_api.h>

enum { MAX_ROWS = 2 };

/* The widths of the linears, 0 after the last one, and the operations around them. */
typedef struct shape {
    ft_dtype dtype;
    size_t rows[FT_CUDA_MAX_FUSED], k;
    bool residual, bias;
    ft_activation gate; /* FT_ACT_NONE: there is none */
} shape;

static const shape shapes[] = {
    { FT_F16, { 2048, 512, 512 }, 2048, true, false, FT_ACT_NONE },
    { FT_F16, { 4096, 4096 }, 2048, true, false, FT_ACT_SILU },
    { FT_BF16, { 1024, 256, 256 }, 4096, true, true, FT_ACT_NONE },
    { FT_BF16, { 4600, 4600 }, 512, false, true, FT_ACT_SILU },
    { FT_F16, { 9000, 9000, 9000 }, 512, false, false, FT_ACT_NONE },
    { FT_F16, { 100, 33, 4200 }, 768, true, true, FT_ACT_NONE },
    { FT_F16, { 4200, 4200 }, 256, true, true, FT_ACT_GELU },
};

static ft_cuda_device_props props;
static const ft_cuda_batch batch = { .batch_invariant = true };

typedef struct fused {
    const shape *s;
    int linears;
    size_t tokens;
    ft_op norm_op, linear_op, gate_op;
    ft_weight gamma, weight[FT_CUDA_MAX_FUSED], bias[FT_CUDA_MAX_FUSED];
    ft_cuda_args norm, linear[FT_CUDA_MAX_FUSED], gate;
} fused;

static ft_cuda_args args_of(const ft_op *op)
{
    return (ft_cuda_args){ .props = &props, .op = op, .batch = &batch, .per = FT_TOKENS };
}

static ft_view row_of(const fused *c, uint64_t seed)
{
    return (ft_view){ .rows = c->tokens,
                      .cols = c->s->k,
                      .dtype = c->s->dtype,
                      .data = random_f16(seed, c->s->dtype, c->tokens * c->s->k) };
}

static void open_case(fused *c, const shape *s, size_t tokens, uint64_t seed)
{
    *c = (fused){ .s = s, .tokens = tokens };
    c->norm_op = (ft_op){ .kind = FT_OP_NORM, .attr = { .norm = FT_NORM_RMS, .eps = 1e-5f } };
    c->linear_op = (ft_op){ .kind = FT_OP_LINEAR };
    c->gate_op = (ft_op){ .kind = FT_OP_GATE, .attr = { .activation = s->gate } };
    c->gamma = (ft_weight){ .rows = 1, .cols = s->k, .dtype = FT_F32 };
    c->gamma.data = random_vector(seed, s->k);
    c->norm = args_of(&c->norm_op);
    c->norm.in[0] = row_of(c, seed + 1);
    c->norm.weight[0] = &c->gamma;
    if (s->residual)
        c->norm.in[1] = row_of(c, seed + 2);
    for (; c->linears < FT_CUDA_MAX_FUSED && s->rows[c->linears] > 0; c->linears++) {
        int i = c->linears;
        size_t n = s->rows[i];
        c->weight[i] = (ft_weight){ .rows = n, .cols = s->k, .dtype = s->dtype };
        c->weight[i].data = random_f16(seed + 3 + (uint64_t) i, s->dtype, n * s->k);
        c->bias[i] = (ft_weight){ .rows = 1, .cols = n, .dtype = FT_F32 };
        c->bias[i].data = random_vector(seed + 7, n);
        c->linear[i] = args_of(&c->linear_op);
        c->linear[i].weight[0] = &c->weight[i];
        c->linear[i].weight[1] = s->bias ? &c->bias[i] : NULL;
    }
    c->gate = args_of(&c->gate_op);
}

/* New results, all poison. */
static void clear_results(fused *c)
{
    const shape *s = c->s;
    c->norm.out = result_of(c->tokens, s->k, s->dtype);
    if (s->residual)
        c->norm.second = result_of(c->tokens, s->k, s->dtype);
    for (int i = 0; i < c->linears; i++) {
        c->linear[i].in[0] = c->norm.out;
        c->linear[i].out = result_of(c->tokens, s->rows[i], s->dtype);
    }
    c->gate.in[0] = c->linear[0].out;
    c->gate.in[1] = c->linear[1].out;
    if (s->gate != FT_ACT_NONE)
        c->gate.out = result_of(c->tokens, s->rows[0], s->dtype);
}

static void run_each(fused *c)
{
    clear_results(c);
    must(ft_cuda_norm(&c->norm), "norm");
    for (int i = 0; i < c->linears; i++)
        must(ft_cuda_linear(&c->linear[i]), "linear");
    if (c->s->gate != FT_ACT_NONE)
        must(ft_cuda_gate(&c->gate), "gate");
    must((int) cudaDeviceSynchronize(), "separate kernels");
}

/* Whether the table has a kernel for the whole group; runs it. */
static bool run_fused(fused *c)
{
    clear_results(c);
    ft_cuda_group group = { .kind = FT_FUSION_LINEAR, .norm = &c->norm, .linears = c->linears },
                  part;
    group.gate = c->s->gate != FT_ACT_NONE ? &c->gate : NULL;
    for (int i = 0; i < c->linears; i++)
        group.linear[i] = &c->linear[i];
    const ft_cuda_fused_kernel *kernel = ft_cuda_fused_kernel_for(&group, &part);
    if (kernel == NULL || part.norm != group.norm || part.gate != group.gate)
        return false;
    must(kernel->launch(&part), "fused kernel");
    must((int) cudaDeviceSynchronize(), "fused kernel");
    return true;
}

static void test_group(fused *c, const fused *expected)
{
    const shape *s = c->s;
    bool gates = s->gate != FT_ACT_NONE, right = true, apart;
    bool ran = run_fused(c), is_taken = c->tokens == 1;
    is_int(ran, is_taken, "%s linears of %zu tokens by %zu+%zu+%zu x %zu after a norm%s %s",
           s->dtype == FT_F16 ? "f16" : "bf16", c->tokens, s->rows[0], s->rows[1], s->rows[2], s->k,
           gates ? " with a gate" : "", is_taken ? "are fused" : "have no fused kernel");
    if (!ran)
        return;
    if (s->residual)
        right = same(&c->norm.second, &expected->norm.second);
    apart = untouched(&c->norm.out);
    for (int i = 0; i < c->linears; i++)
        if (gates)
            apart = apart && untouched(&c->linear[i].out);
        else
            right = right && same(&c->linear[i].out, &expected->linear[i].out);
    if (gates)
        right = right && same(&c->gate.out, &expected->gate.out);
    ok(right, "the fused kernel gives the bits of separate kernels");
    ok(apart, "the fused kernel leaves unread intermediates unwritten");
}

int main(void)
{
    char text[GPU_TEXT];
    if (!find_gpu(&props, text))
        skip_all("%s", text);
    if (!props.has_wgmma)
        skip_all("%s: f16 decode groups need wgmma", text);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t tokens = 1; tokens <= MAX_ROWS; tokens++) {
            fused c, expected;
            open_case(&c, &shapes[i], tokens, 100 * i + tokens);
            run_each(&c);
            expected = c;
            test_group(&c, &expected);
            free_all();
        }
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
