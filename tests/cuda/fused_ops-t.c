/*
 * fused_ops-t.c - norm, linears and gate fused into one kernel on the GPU, against one kernel for
 * each operation: the results have the same bits, and no intermediate that is not needed is
 * written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/gemm/groupwise/groupwise.h"
#include "kernels/cuda/fused_kernels.h"
#include "tests/cuda/guarded.h"
#include "tests/lib/ops/groupwise.h"
#include "tests/lib/ops/device.h"
#include "tests/lib/ops/oneop.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { MAX_ROWS = 3 };

/* The output features of the linears, 0 after the last one, and the operations around them. */
typedef struct shape {
    ft_dtype dtype;
    int32_t group;
    bool asymmetric;
    size_t rows[FT_CUDA_MAX_FUSED], k;
    bool residual, bias;
    ft_activation gate; /* FT_ACT_NONE: there is none */
} shape;

static const shape shapes[] = {
    { FT_F16, 128, false, { 4096, 4096, 4096 }, 4096, true, false, FT_ACT_NONE },
    { FT_F16, 128, false, { 11008, 11008 }, 4096, true, false, FT_ACT_SILU },
    { FT_BF16, 256, false, { 2048, 512, 512 }, 2048, true, true, FT_ACT_NONE },
    { FT_BF16, 128, false, { 5632, 5632 }, 2048, true, true, FT_ACT_GELU },
    { FT_F16, 0, false, { 100 }, 2304, false, false, FT_ACT_NONE },
    { FT_F16, 128, false, { 33, 33 }, 2560, false, true, FT_ACT_SILU },
    { FT_F16, 32, false, { 11008, 11008 }, 4096, true, false, FT_ACT_SILU },
    { FT_F16, 64, true, { 4096, 1024, 1024 }, 4096, true, true, FT_ACT_NONE },
    { FT_F16, 32, true, { 4096, 4096 }, 4096, false, false, FT_ACT_SILU },
    { FT_BF16, 32, true, { 2048, 512, 512 }, 2048, true, true, FT_ACT_NONE },
    { FT_BF16, 64, false, { 5632, 5632 }, 2048, true, false, FT_ACT_GELU },
    { FT_F16, 128, true, { 33, 33 }, 2560, false, true, FT_ACT_SILU },
    { FT_F16, 0, true, { 100 }, 2304, false, false, FT_ACT_NONE },
};

static ft_cuda_device_props props;
/* ---- A group -------------------------------------------------------------------------------- */

typedef struct fused {
    const shape *s;
    int linears;
    size_t tokens;
    ft_op norm_op, linear_op, gate_op;
    ft_weight gamma, weight[FT_CUDA_MAX_FUSED], bias[FT_CUDA_MAX_FUSED];
    ft_cuda_args norm, linear[FT_CUDA_MAX_FUSED], gate;
} fused;

/* Weights as the device has them. */
static void open_weight(fused *c, int i, uint64_t seed)
{
    const shape *s = c->s;
    const blocked_how how = { FT_U4, s->group, s->asymmetric, false };
    double *value;
    ft_weight w = random_blocked(seed, s->rows[i], s->k, &how, &value);
    size_t scales = ft_groupwise_scale_count(&w.groupwise, s->rows[i], s->k);
    c->weight[i] = w;
    c->weight[i].data = on_device(w.data, ft_weight_bytes(&w));
    c->weight[i].groupwise.scale = on_device(w.groupwise.scale, scales * sizeof(uint16_t));
    if (s->asymmetric)
        c->weight[i].groupwise.zero = on_device(w.groupwise.zero, scales);
    c->bias[i] = (ft_weight){
        .rows = 1, .cols = s->rows[i], .dtype = FT_F32, .data = random_vector(seed + 1, s->rows[i])
    };
    free_blocked(&w);
    free(value);
}

static ft_cuda_args args_of(const ft_op *op)
{
    static const size_t bytes = 64 << 20;
    static void *scratch;
    static uint32_t *counters;
    if (scratch == NULL) {
        must((int) cudaMalloc(&scratch, bytes), "scratch");
        must((int) cudaMalloc((void **) &counters, FT_CUDA_GROUPWISE_COUNTERS * sizeof *counters),
             "counters");
        must((int) cudaMemset(counters, 0, FT_CUDA_GROUPWISE_COUNTERS * sizeof *counters),
             "counters");
    }
    return (ft_cuda_args){
        .props = &props, .op = op, .scratch = scratch, .scratch_bytes = bytes, .counters = counters
    };
}

static void open_case(fused *c, const shape *s, size_t tokens, uint64_t seed)
{
    *c = (fused){ .s = s, .tokens = tokens };
    c->norm_op = (ft_op){ .kind = FT_OP_NORM, .attr = { .norm = FT_NORM_RMS, .eps = 1e-5f } };
    c->linear_op = (ft_op){ .kind = FT_OP_LINEAR };
    c->gate_op = (ft_op){ .kind = FT_OP_GATE, .attr = { .activation = s->gate } };
    c->gamma = (ft_weight){ .rows = 1, .cols = s->k, .dtype = FT_F32 };
    c->gamma.data = random_vector(seed, s->k);
    ft_view x = { .rows = tokens, .cols = s->k, .dtype = s->dtype }, more = x;
    x.data = random_f16(seed + 1, s->dtype, tokens * s->k);
    more.data = random_f16(seed + 2, s->dtype, tokens * s->k);
    c->norm = args_of(&c->norm_op);
    c->norm.in[0] = x;
    c->norm.weight[0] = &c->gamma;
    if (s->residual)
        c->norm.in[1] = more;
    for (; c->linears < FT_CUDA_MAX_FUSED && s->rows[c->linears] > 0; c->linears++) {
        int i = c->linears;
        open_weight(c, i, seed + 10 + 2 * (uint64_t) i);
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

/* ---- Expected results ----------------------------------------------------------------------- */

/* The linears, with the norm and the gate. */
static ft_cuda_group group_of(const fused *c, bool norm, bool gate)
{
    ft_cuda_group group = { .kind = FT_FUSION_LINEAR,
                            .norm = norm ? &c->norm : NULL,
                            .linears = c->linears,
                            .gate = gate ? &c->gate : NULL };
    for (int i = 0; i < c->linears; i++)
        group.linear[i] = &c->linear[i];
    return group;
}

/* The norm, the linears, and the gate by kernels of their own. */
static void run_each(fused *c)
{
    clear_results(c);
    must(ft_cuda_norm(&c->norm), "norm");
    ft_cuda_group linears = group_of(c, false, false);
    must(c->linears > 1 ? ft_cuda_group_groupwise(&linears) : ft_cuda_linear(&c->linear[0]),
         "linears");
    if (c->s->gate != FT_ACT_NONE)
        must(ft_cuda_gate(&c->gate), "gate");
    must((int) cudaDeviceSynchronize(), "separate kernels");
}

/* All as one, or all but the norm; false: the table has no kernel for it. */
static bool run_fused(fused *c, bool norm)
{
    clear_results(c);
    if (!norm)
        must(ft_cuda_norm(&c->norm), "norm");
    ft_cuda_group group = group_of(c, norm, c->s->gate != FT_ACT_NONE), part;
    const ft_cuda_fused_kernel *kernel = ft_cuda_fused_kernel_for(&group, &part);
    if (kernel == NULL || part.norm != group.norm || part.gate != group.gate) {
        if (ft_cuda_group_decode(&group) != (int) cudaErrorNotSupported)
            bail_out("a kernel that the table does not choose launches");
        return false;
    }
    must(kernel->launch(&part), "fused kernel");
    must((int) cudaDeviceSynchronize(), "fused kernel");
    return true;
}

static void test_group(fused *c, const fused *expected, bool norm)
{
    const shape *s = c->s;
    bool gates = s->gate != FT_ACT_NONE, right = true, apart = true;
    if (!norm && !gates)
        return;
    bool ran = run_fused(c, norm);
    bool is_taken = norm ? c->tokens == 1 : c->tokens <= 2;
    is_int(ran, is_taken, "linears of %zu tokens by %zu+%zu+%zu x %zu in groups of %d%s%s%s %s",
           c->tokens, s->rows[0], s->rows[1], s->rows[2], s->k, (int) s->group,
           s->asymmetric ? " with zero points" : "", norm ? " after a norm" : "",
           gates ? " with a gate" : "",
           is_taken ? "are fused into one kernel" : "have no fused kernel");
    if (!ran)
        return;
    if (norm && s->residual)
        right = same(&c->norm.second, &expected->norm.second);
    if (norm)
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
    if (props.capability < 80)
        skip_all("%s: fusion groups of linears need sm_80", text);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t tokens = 1; tokens <= MAX_ROWS; tokens++) {
            fused c, expected;
            open_case(&c, &shapes[i], tokens, 100 * i + tokens);
            run_each(&c);
            expected = c;
            test_group(&c, &expected, true);
            test_group(&c, &expected, false);
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
