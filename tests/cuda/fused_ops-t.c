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
#include "tests/cuda/guarded.h"
#include "tests/cuda/norm_group.h"
#include "tests/lib/ops/groupwise.h"
#include "tests/lib/ops/device.h"
#include "tests/lib/ops/oneop.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { MAX_ROWS = 3 };

typedef struct shape {
    int32_t group;
    bool asymmetric;
    norm_group_shape of;
} shape;

static const shape shapes[] = {
    { 128, false, { FT_F16, { 4096, 4096, 4096 }, 4096, true, false, FT_ACT_NONE } },
    { 128, false, { FT_F16, { 11008, 11008 }, 4096, true, false, FT_ACT_SILU } },
    { 256, false, { FT_BF16, { 2048, 512, 512 }, 2048, true, true, FT_ACT_NONE } },
    { 128, false, { FT_BF16, { 5632, 5632 }, 2048, true, true, FT_ACT_GELU } },
    { 0, false, { FT_F16, { 100 }, 2304, false, false, FT_ACT_NONE } },
    { 128, false, { FT_F16, { 33, 33 }, 2560, false, true, FT_ACT_SILU } },
    { 32, false, { FT_F16, { 11008, 11008 }, 4096, true, false, FT_ACT_SILU } },
    { 64, true, { FT_F16, { 4096, 1024, 1024 }, 4096, true, true, FT_ACT_NONE } },
    { 32, true, { FT_F16, { 4096, 4096 }, 4096, false, false, FT_ACT_SILU } },
    { 32, true, { FT_BF16, { 2048, 512, 512 }, 2048, true, true, FT_ACT_NONE } },
    { 64, false, { FT_BF16, { 5632, 5632 }, 2048, true, false, FT_ACT_GELU } },
    { 128, true, { FT_F16, { 33, 33 }, 2560, false, true, FT_ACT_SILU } },
    { 0, true, { FT_F16, { 100 }, 2304, false, false, FT_ACT_NONE } },
};

static ft_cuda_device_props props;

/* ---- A group -------------------------------------------------------------------------------- */

/* Weights as the device has them. */
static void open_weight(norm_group *g, int i, const shape *s, uint64_t seed)
{
    size_t n = s->of.rows[i], k = s->of.k;
    const blocked_how how = { FT_U4, s->group, s->asymmetric, false };
    double *value;
    ft_weight w = random_blocked(seed, n, k, &how, &value);
    size_t scales = ft_groupwise_scale_count(&w.groupwise, n, k);
    g->weight[i] = w;
    g->weight[i].data = on_device(w.data, ft_weight_bytes(&w));
    g->weight[i].groupwise.scale = on_device(w.groupwise.scale, scales * sizeof(uint16_t));
    if (s->asymmetric)
        g->weight[i].groupwise.zero = on_device(w.groupwise.zero, scales);
    g->bias[i] =
        (ft_weight){ .rows = 1, .cols = n, .dtype = FT_F32, .data = random_vector(seed + 1, n) };
    free_blocked(&w);
    free(value);
}

/* Scratch memory and counters for all groups. */
static ft_cuda_args common_args(void)
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
        .props = &props, .scratch = scratch, .scratch_bytes = bytes, .counters = counters
    };
}

static void open_case(norm_group *g, const shape *s, size_t tokens, uint64_t seed)
{
    const ft_cuda_args common = common_args();
    norm_group_open(g, &s->of, &common, tokens, seed);
    for (int i = 0; i < g->linears; i++)
        open_weight(g, i, s, seed + 10 + 2 * (uint64_t) i);
}

/* ---- Expected results ----------------------------------------------------------------------- */

/* The norm, the linears, and the gate by kernels of their own. */
static void run_each(norm_group *g)
{
    norm_group_clear(g);
    must(ft_cuda_norm(&g->norm), "norm");
    ft_cuda_group linears = norm_group_of(g, false, false);
    must(g->linears > 1 ? ft_cuda_group_groupwise(&linears) : ft_cuda_linear(&g->linear[0]),
         "linears");
    if (norm_group_gates(g))
        must(ft_cuda_gate(&g->gate), "gate");
    must((int) cudaDeviceSynchronize(), "separate kernels");
}

/* All as one, or all but the norm; false: the table has no kernel for it. */
static bool run_fused(norm_group *g, bool norm)
{
    norm_group_clear(g);
    if (!norm)
        must(ft_cuda_norm(&g->norm), "norm");
    const ft_cuda_group group = norm_group_of(g, norm, norm_group_gates(g));
    if (norm_group_run_fused(&group))
        return true;
    if (ft_cuda_group_decode(&group) != (int) cudaErrorNotSupported)
        bail_out("a kernel that the table does not choose launches");
    return false;
}

static void test_group(norm_group *g, const norm_group *expected, const shape *s, bool norm)
{
    const size_t *rows = s->of.rows;
    bool gates = norm_group_gates(g);
    if (!norm && !gates)
        return;
    bool ran = run_fused(g, norm);
    bool is_taken = norm ? g->tokens == 1 : g->tokens <= 2;
    is_int(ran, is_taken, "linears of %zu tokens by %zu+%zu+%zu x %zu in groups of %d%s%s%s %s",
           g->tokens, rows[0], rows[1], rows[2], s->of.k, (int) s->group,
           s->asymmetric ? " with zero points" : "", norm ? " after a norm" : "",
           gates ? " with a gate" : "",
           is_taken ? "are fused into one kernel" : "have no fused kernel");
    if (ran)
        norm_group_compare(g, expected, norm);
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
            norm_group c, expected;
            open_case(&c, &shapes[i], tokens, 100 * i + tokens);
            run_each(&c);
            expected = c;
            test_group(&c, &expected, &shapes[i], true);
            test_group(&c, &expected, &shapes[i], false);
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
