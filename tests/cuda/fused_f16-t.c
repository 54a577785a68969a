/*
 * fused_f16-t.c - f16 and bf16 linears of one row fused with the norm before and the gate after
 * them, against one kernel for each operation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "tests/cuda/guarded.h"
#include "tests/cuda/norm_group.h"
#include "tests/lib/ops/device.h"

#include <cuda_runtime_api.h>

enum { MAX_ROWS = 2 };

static const norm_group_shape shapes[] = {
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

static void open_case(norm_group *g, const norm_group_shape *s, size_t tokens, uint64_t seed)
{
    const ft_cuda_args common = { .props = &props, .batch = &batch, .per = FT_TOKENS };
    norm_group_open(g, s, &common, tokens, seed);
    for (int i = 0; i < g->linears; i++) {
        size_t n = s->rows[i];
        g->weight[i] = (ft_weight){ .rows = n, .cols = s->k, .dtype = s->dtype };
        g->weight[i].data = random_f16(seed + 3 + (uint64_t) i, s->dtype, n * s->k);
        g->bias[i] = (ft_weight){ .rows = 1, .cols = n, .dtype = FT_F32 };
        g->bias[i].data = random_vector(seed + 7, n);
    }
}

static void run_each(norm_group *g)
{
    norm_group_clear(g);
    must(ft_cuda_norm(&g->norm), "norm");
    for (int i = 0; i < g->linears; i++)
        must(ft_cuda_linear(&g->linear[i]), "linear");
    if (norm_group_gates(g))
        must(ft_cuda_gate(&g->gate), "gate");
    must((int) cudaDeviceSynchronize(), "separate kernels");
}

static void test_group(norm_group *g, const norm_group *expected)
{
    const norm_group_shape *s = g->s;
    bool gates = norm_group_gates(g), is_taken = g->tokens == 1;
    norm_group_clear(g);
    const ft_cuda_group all = norm_group_of(g, true, gates);
    bool ran = norm_group_run_fused(&all);
    is_int(ran, is_taken, "%s linears of %zu tokens by %zu+%zu+%zu x %zu after a norm%s %s",
           s->dtype == FT_F16 ? "f16" : "bf16", g->tokens, s->rows[0], s->rows[1], s->rows[2], s->k,
           gates ? " with a gate" : "", is_taken ? "are fused" : "have no fused kernel");
    if (ran)
        norm_group_compare(g, expected, true);
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
            norm_group c, expected;
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
