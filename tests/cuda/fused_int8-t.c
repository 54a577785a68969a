/*
 * fused_int8-t.c - int8 linears of one row fused with the norm or QUANTIZE before them, and with
 * the gate and its linear after them, against one kernel for each operation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/fused_kernels.h"
#include "tests/cuda/guarded.h"
#include "tests/lib/ops/device.h"
#include "tests/lib/ops/oneop.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_ROWS = 2, SCRATCH = 1 << 20, SMEM = 192 << 10 };

/* The widths of the linears, 0 after the last one, and the operations around them. */
typedef struct shape {
    size_t rows[FT_CUDA_MAX_FUSED], k;
    ft_op_kind input; /* NORM or QUANTIZE */
    bool residual, bias;
    ft_activation gate; /* FT_ACT_NONE: there is none */
    size_t down;        /* width of the linear of the gate */
    float outlier;      /* replaces an element of the row; 0: none */
} shape;

static const shape shapes[] = {
    { { 4096, 4096, 4096 }, 4096, FT_OP_NORM, true, false, FT_ACT_NONE, 0, 0.0f },
    { { 2048, 512, 512 }, 2048, FT_OP_NORM, false, true, FT_ACT_NONE, 0, 0.0f },
    { { 320 }, 5120, FT_OP_NORM, true, false, FT_ACT_NONE, 0, 1e4f },
    { { 4096 }, 4096, FT_OP_QUANTIZE, false, false, FT_ACT_NONE, 0, 0.0f },
    { { 2048 }, 6144, FT_OP_QUANTIZE, false, true, FT_ACT_NONE, 0, 900.0f },
    { { 11008, 11008 }, 4096, FT_OP_NORM, true, false, FT_ACT_SILU, 4096, 0.0f },
    { { 14336, 14336 }, 4096, FT_OP_NORM, true, true, FT_ACT_SILU, 4096, 0.0f },
    { { 256, 256 }, 256, FT_OP_NORM, false, false, FT_ACT_GELU, 128, 0.0f },
    { { 8192, 8192 }, 2048, FT_OP_NORM, true, false, FT_ACT_SILU, 2048, NAN },
};

static ft_cuda_device_props props;

/* ---- A group -------------------------------------------------------------------------------- */

typedef struct fused {
    const shape *s;
    int linears;
    size_t tokens;
    ft_op input_op, linear_op, gate_op;
    ft_weight gamma, weight[FT_CUDA_MAX_FUSED + 1], bias[FT_CUDA_MAX_FUSED + 1];
    ft_cuda_args input, linear[FT_CUDA_MAX_FUSED], gate, down;
} fused;

static ft_cuda_args args_of(const ft_op *op, void *scratch)
{
    return (
        ft_cuda_args){ .props = &props, .op = op, .scratch = scratch, .scratch_bytes = SCRATCH };
}

/* Any bytes are prepacked weights of these shapes. */
static void *random_bytes(uint64_t seed, size_t n)
{
    uint64_t state = seed;
    uint32_t *words = must_have(n / 4, sizeof *words);
    for (size_t i = 0; i < n / 4; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        words[i] = (uint32_t) (state >> 32);
    }
    void *uploaded = on_device(words, n);
    free(words);
    return uploaded;
}

/* Weight `i` of several linears, contiguous with the others. */
static void open_weight(fused *c, int i, size_t rows, size_t k, const int8_t *w, const float *scale,
                        const float *bias)
{
    c->weight[i] =
        (ft_weight){ .rows = rows, .cols = k, .dtype = FT_I8, .scale = scale, .prepacked = w };
    c->bias[i] = (ft_weight){ .rows = 1, .cols = rows, .dtype = FT_F32, .data = bias };
}

static void open_weights(fused *c, uint64_t seed)
{
    const shape *s = c->s;
    size_t rows = 0, at = 0;
    for (c->linears = 0; c->linears < FT_CUDA_MAX_FUSED && s->rows[c->linears] > 0; c->linears++)
        rows += s->rows[c->linears];
    const int8_t *w = random_bytes(seed, rows * s->k);
    const float *scale = random_vector(seed + 1, rows), *bias = random_vector(seed + 2, rows);
    for (int i = 0; i < c->linears; at += s->rows[i++])
        open_weight(c, i, s->rows[i], s->k, w + at * s->k, scale + at, bias + at);
    if (s->down > 0)
        open_weight(c, c->linears, s->down, s->rows[0],
                    random_bytes(seed + 3, s->down * s->rows[0]), random_vector(seed + 4, s->down),
                    random_vector(seed + 5, s->down));
}

/* The row before the linears: F32 for a norm, else F16. */
static ft_view row_of(const fused *c, uint64_t seed)
{
    const shape *s = c->s;
    bool norm = s->input == FT_OP_NORM;
    ft_view view = { .rows = c->tokens, .cols = s->k, .dtype = norm ? FT_F32 : FT_F16 };
    view.data = norm ? (void *) random_vector(seed, c->tokens * s->k)
                     : random_f16(seed, FT_F16, c->tokens * s->k);
    if (norm && s->outlier != 0.0f)
        must((int) cudaMemcpy((float *) view.data + s->k / 3, &s->outlier, sizeof s->outlier,
                              cudaMemcpyHostToDevice),
             "outlier");
    return view;
}

static void open_case(fused *c, const shape *s, size_t tokens, uint64_t seed)
{
    *c = (fused){ .s = s, .tokens = tokens };
    void *scratch = on_device(NULL, SCRATCH);
    c->input_op = (ft_op){ .kind = s->input, .attr = { .norm = FT_NORM_RMS, .eps = 1e-5f } };
    c->linear_op = (ft_op){ .kind = FT_OP_LINEAR };
    c->gate_op = (ft_op){ .kind = FT_OP_GATE, .attr = { .activation = s->gate } };
    c->gamma = (ft_weight){ .rows = 1, .cols = s->k, .dtype = FT_F32 };
    c->gamma.data = random_vector(seed, s->k);
    c->input = args_of(&c->input_op, scratch);
    c->input.in[0] = row_of(c, seed + 1);
    if (s->input == FT_OP_NORM)
        c->input.weight[0] = &c->gamma;
    if (s->residual)
        c->input.in[1] = row_of(c, seed + 2);
    open_weights(c, seed + 3);
    for (int i = 0; i < c->linears; i++) {
        c->linear[i] = args_of(&c->linear_op, scratch);
        c->linear[i].weight[0] = &c->weight[i];
        c->linear[i].weight[1] = s->bias ? &c->bias[i] : NULL;
    }
    c->gate = args_of(&c->gate_op, scratch);
    c->down = args_of(&c->linear_op, scratch);
    c->down.weight[0] = &c->weight[c->linears];
    c->down.weight[1] = s->bias ? &c->bias[c->linears] : NULL;
}

static ft_view quantized_result(size_t rows, size_t cols)
{
    ft_view view = result_of(rows, cols, FT_I8);
    view.scales = result_of(rows, 1, FT_F32).data;
    return view;
}

/* New results, all poison. */
static void clear_results(fused *c)
{
    const shape *s = c->s;
    c->input.quantized = quantized_result(c->tokens, s->k);
    c->input.second = s->residual ? result_of(c->tokens, s->k, FT_F32) : (ft_view){ 0 };
    for (int i = 0; i < c->linears; i++) {
        c->linear[i].in[0] = c->input.quantized;
        c->linear[i].out = result_of(c->tokens, s->rows[i], FT_F16);
    }
    if (s->gate == FT_ACT_NONE)
        return;
    c->gate.in[0] = c->linear[0].out;
    c->gate.in[1] = c->linear[1].out;
    c->gate.quantized = quantized_result(c->tokens, s->rows[0]);
    c->down.in[0] = c->gate.quantized;
    c->down.out = result_of(c->tokens, s->down, FT_F32);
}

static ft_cuda_group group_of(const fused *c, bool all)
{
    bool gates = all && c->s->gate != FT_ACT_NONE;
    ft_cuda_group group = { .kind = FT_FUSION_LINEAR,
                            .norm = all && c->s->input == FT_OP_NORM ? &c->input : NULL,
                            .quantize = all && c->s->input == FT_OP_QUANTIZE ? &c->input : NULL,
                            .linears = c->linears,
                            .gate = gates ? &c->gate : NULL,
                            .down = gates ? &c->down : NULL,
                            .contiguous = c->linears > 1 };
    for (int i = 0; i < c->linears; i++)
        group.linear[i] = &c->linear[i];
    return group;
}

static void run_each(fused *c)
{
    clear_results(c);
    must(c->s->input == FT_OP_NORM ? ft_cuda_norm(&c->input) : ft_cuda_quantize(&c->input),
         "input");
    for (int i = 0; i < c->linears; i++)
        must(ft_cuda_linear(&c->linear[i]), "linear");
    if (c->s->gate != FT_ACT_NONE) {
        must(ft_cuda_gate(&c->gate), "gate");
        must(ft_cuda_linear(&c->down), "linear of the gate");
    }
    must((int) cudaDeviceSynchronize(), "separate kernels");
}

/* Whether the table has a kernel for the whole group; runs it. */
static bool run_fused(fused *c)
{
    clear_results(c);
    ft_cuda_group group = group_of(c, true), part;
    const ft_cuda_fused_kernel *kernel = ft_cuda_fused_kernel_for(&group, &part);
    if (kernel == NULL || part.norm != group.norm || part.quantize != group.quantize ||
        part.gate != group.gate || part.down != group.down)
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
    is_int(ran, is_taken, "int8 linears of %zu tokens by %zu+%zu+%zu x %zu after a %s%s %s",
           c->tokens, s->rows[0], s->rows[1], s->rows[2], s->k,
           s->input == FT_OP_NORM ? "norm" : "QUANTIZE", gates ? " with a gate and its linear" : "",
           is_taken ? "are fused" : "have no fused kernel");
    if (!ran)
        return;
    if (s->residual)
        right = same(&c->input.second, &expected->input.second);
    apart = untouched(&c->input.quantized);
    for (int i = 0; i < c->linears; i++)
        if (gates)
            apart = apart && untouched(&c->linear[i].out);
        else
            right = right && same(&c->linear[i].out, &expected->linear[i].out);
    if (gates) {
        apart = apart && untouched(&c->gate.quantized);
        right = right && same(&c->down.out, &expected->down.out);
    }
    ok(right, "the fused kernels give the bits of separate kernels");
    ok(apart, "the fused kernels leave unread intermediates unwritten");
}

int main(void)
{
    char text[GPU_TEXT];
    if (!find_gpu(&props, text))
        skip_all("%s", text);
    if (props.capability < 90 || props.smem_bytes < SMEM)
        skip_all("%s: int8 decode groups need sm_90 and %d KB of shared memory", text, SMEM >> 10);
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
