/*
 * gemm_choice-t.c - which kernel is selected for an int8 or group-wise GEMM, and how the choice is
 * explained; needs no device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/fused_kernels.h"
#include "kernels/cuda/tune/families.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* FT_CUDA_GEMM requests a kernel; a request that cannot be met is explained. */
static void test_choice(void)
{
    static int8_t quantized[64] __attribute__((aligned(64)));
    ft_cuda_device_props props = { .capability = 86, .sm_count = 84, .smem_bytes = 101376 };
    ft_cuda_gemm_args p = {
        .m = 64, .n = 64, .k = 64, .x = quantized, .w = quantized, .n_outputs = 1, .width = { 64 }
    };
    char text[128];
    unsetenv("FT_CUDA_GEMM");
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "mma", "sm_86 selects the mma.sync kernel");
    p.k = 50;
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "simt", "a k of 50 falls back to the SIMT kernel");
    setenv("FT_CUDA_GEMM", "mma", 1);
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "simt: FT_CUDA_GEMM=mma does not support it",
           "FT_CUDA_GEMM=mma falls back to simt for a k of 50 and says so");
    setenv("FT_CUDA_GEMM", "simt", 1);
    p.k = 64;
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "simt: requested by FT_CUDA_GEMM", "FT_CUDA_GEMM=simt selects the SIMT kernel");
    setenv("FT_CUDA_GEMM", "plain", 1);
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "simt: requested by FT_CUDA_GEMM", "FT_CUDA_GEMM accepts plain, the former simt");
    const char *const former[] = { "lt", "stream" };
    for (size_t i = 0; i < sizeof former / sizeof former[0]; i++) {
        setenv("FT_CUDA_GEMM", former[i], 1);
        ft_cuda_gemm_explain(&props, &p, text, sizeof text);
        ok(strstr(text, "is not a kernel") == NULL, "FT_CUDA_GEMM accepts the former name %s",
           former[i]);
    }
    setenv("FT_CUDA_GEMM", "abacus", 1);
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "mma: FT_CUDA_GEMM=abacus is not a kernel",
           "FT_CUDA_GEMM=abacus is reported as not a kernel");
    setenv("FT_CUDA_GEMM", "cublaslt", 1);
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_MMA,
           "FT_CUDA_GEMM=cublaslt falls back to mma without scratch");
    ok(ft_cuda_gemm_scratch(&props, 64, 64, 64) > 0, "FT_CUDA_GEMM=cublaslt requires scratch");
    unsetenv("FT_CUDA_GEMM");
    is_int((long long) ft_cuda_gemm_scratch(&props, 64, 64, 64), 0,
           "no scratch is required unless FT_CUDA_GEMM=cublaslt");
    props.capability = 60;
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_SIMT, "sm_60 selects the SIMT kernel");
    for (int how = 0; how < FT_CUDA_GEMM_KERNELS; how++) {
        setenv("FT_CUDA_GEMM", ft_cuda_gemm_name((ft_cuda_gemm_kernel) how), 1);
        ft_cuda_gemm_explain(&props, &p, text, sizeof text);
        ok(strstr(text, "is not a kernel") == NULL, "FT_CUDA_GEMM accepts the kernel %s",
           ft_cuda_gemm_name((ft_cuda_gemm_kernel) how));
    }
    unsetenv("FT_CUDA_GEMM");
}

/* Small m of a decoder: the GEMV kernel reads prepacked weights. */
static void test_small_m(void)
{
    static int8_t quantized[64] __attribute__((aligned(64)));
    const ft_cuda_device_props props = {
        .capability = 90, .has_pdl = true, .sm_count = 132, .has_wgmma = true, .smem_bytes = 232448
    };
    ft_cuda_gemm_args p = { .m = 4, .n = 4096, .k = 4096, .x = quantized, .prepacked = quantized };
    p.y_dtype = FT_F16;
    p.n_outputs = 1;
    p.width[0] = 4096;
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_GEMV,
           "4 rows with prepacked weights select the GEMV kernel");
    ft_cuda_device_props translated = props; /* JIT-compiled from PTX of an older architecture */
    translated.has_pdl = false;
    ok(!ft_cuda_gemm_gemv_supports(&translated, &p),
       "the GEMV kernel does not support code built for older devices");
    p.m = 5;
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_WGMMA, "5 rows select the WGMMA kernel");
    p.m = 4;
    p.k = 65536;
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_WGMMA,
           "4 rows whose k exceeds shared memory select the WGMMA kernel");
}

/* A tuning file chooses for the fewest rows that are not below those of a GEMM. */
static void test_tuned(void)
{
    static int8_t quantized[64] __attribute__((aligned(64)));
    const ft_gemm_problem problem = {
        .n = 4096, .k = 4096, .x = FT_I8, .w = FT_I8, .y = FT_F16, .linears = 1
    };
    static const struct {
        size_t rows;
        const char *kernel;
    } chosen[] = { { 64, "gemv" }, { 16, "wgmma small_m64" }, { 4, "mma 64x64" } };
    ft_cuda_tuned_gemm tuned[FT_COUNT(chosen)];
    ft_cuda_device_props props = {
        .capability = 90, .has_pdl = true, .sm_count = 132, .has_wgmma = true, .smem_bytes = 232448
    };
    ft_cuda_gemm_args p = { .m = 8, .n = 4096, .k = 4096, .x = quantized, .prepacked = quantized };
    char text[128];
    p.y_dtype = FT_F16;
    p.n_outputs = 1;
    p.width[0] = 4096;
    bool known = true;
    for (size_t i = 0; i < FT_COUNT(chosen); i++) {
        tuned[i] = (ft_cuda_tuned_gemm){ problem, ft_cuda_gemm_candidate_named(&ft_cuda_int8_family,
                                                                               chosen[i].kernel) };
        tuned[i].problem.m = chosen[i].rows;
        known = known && tuned[i].candidate >= 0;
    }
    ok(known, "kernels are found by their names");
    is_int(ft_cuda_gemm_candidate_named(&ft_cuda_int8_family, "mma 1x1"), -1,
           "no kernel has an unknown name");
    props.tuned = tuned;
    props.num_tuned = FT_COUNT(chosen);
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_WGMMA, "8 rows take the kernel of 16");
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "wgmma small_m64: tuned", "the choice names the tile");
    p.m = 16;
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_WGMMA, "16 rows take the kernel of 16");
    p.m = 3;
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_GEMV,
           "where the tuned kernel does not support the weights, the table decides");
    p.m = 17;
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_WGMMA,
           "where the tuned kernel does not support the rows, the table decides");
    p.m = 65;
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "wgmma", "the table decides for more rows than were tuned");
    p.m = 4;
    p.y_dtype = FT_F32;
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "gemv", "the table decides for another output type");
    p.y_dtype = FT_F16;
    setenv("FT_CUDA_GEMM", "gemv", 1);
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_GEMV,
           "FT_CUDA_GEMM has precedence over the tuning file");
    unsetenv("FT_CUDA_GEMM");
}

/* Queries, keys and values: one product where their weights lie side by side. */
static void test_group(void)
{
    enum { N = 64, K = 128, ROWS = 256 };
    static int8_t x[ROWS * K] __attribute__((aligned(64))),
        prepacked[3 * N * K] __attribute__((aligned(64)));
    static int8_t y[3][ROWS * N] __attribute__((aligned(64)));
    static float scale[3 * N], bias[3 * N];
    const ft_cuda_device_props props = { .capability = 90,
                                         .has_wgmma = true,
                                         .smem_bytes = 232448 };
    const ft_op op = { .kind = FT_OP_LINEAR };
    ft_weight weight[3], vector[3];
    ft_cuda_args args[3];
    ft_cuda_group group = { .kind = FT_FUSION_LINEAR, .linears = 3, .contiguous = true };
    char text[128];
    for (size_t i = 0; i < 3; i++) {
        weight[i] = (ft_weight){ .rows = N,
                                 .cols = K,
                                 .dtype = FT_I8,
                                 .scale = scale + i * N,
                                 .data = x,
                                 .prepacked = prepacked + i * ft_cuda_prepacked_bytes(N, K) };
        vector[i] = (ft_weight){ .rows = 1, .cols = N, .data = bias + i * N };
        args[i] = (ft_cuda_args){ .props = &props,
                                  .op = &op,
                                  .in = { { x, ROWS, K, FT_I8, 0.1f } },
                                  .quantized = { y[i], ROWS, N, FT_I8, 0.1f },
                                  .weight = { &weight[i], &vector[i] } };
        group.linear[i] = &args[i];
    }
    is_int((long long) ft_cuda_prepacked_bytes(N, K), N * K,
           "three prepacked matrices are contiguous without padding");
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 3,
           "three linears with contiguous weights are fused into one GEMM");
    is_str(text, "wgmma", "the fused GEMM runs on wgmma");
    setenv("FT_CUDA_GEMM", "mma", 1);
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 1,
           "FT_CUDA_GEMM=mma disables the fusion of linears");
    is_str(text, "mma: requested by FT_CUDA_GEMM", "FT_CUDA_GEMM=mma runs each linear on mma");
    unsetenv("FT_CUDA_GEMM");
    group.contiguous = false;
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 1,
           "linears whose weights the plan does not lay together are not fused");
    group.contiguous = true;
    weight[0].rows = N - 32;
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 1,
           "linears with a gap between their uploaded weights are not fused");
    weight[0].rows = N;
    args[1].weight[1] = NULL;
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 1,
           "linears of which one has no bias are not fused");
    weight[0].dtype = FT_F16;
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 0,
           "a linear with f16 weights is no int8 GEMM");
    is_str(text, "", "a linear that is no int8 GEMM has an empty explanation");
}

/* Linears with group-wise quantized weights: which kernel, and when several are fused. */
static void test_blocks(void)
{
    enum { N = 12288, K = 4096, MAX_SIZE = 2048 };
    static uint16_t scale[1];
    static uint32_t counters[1];
    static char memory[64] __attribute__((aligned(64)));
    ft_cuda_device_props props = {
        .capability = 90, .sm_count = 132, .has_wgmma = true, .smem_bytes = 232448
    };
    const ft_op op = { .kind = FT_OP_LINEAR };
    ft_weight weight[2];
    ft_cuda_args args[2];
    ft_cuda_group group = { .kind = FT_FUSION_LINEAR,
                            .linear = { &args[0], &args[1] },
                            .linears = 2 };
    char text[128];
    for (size_t i = 0; i < 2; i++) {
        weight[i] = (ft_weight){ .rows = N,
                                 .cols = K,
                                 .dtype = FT_U4,
                                 .layout = FT_PANEL32,
                                 .groupwise = { .group = 128, .scale = scale },
                                 .data = memory };
        args[i] = (ft_cuda_args){ .props = &props,
                                  .op = &op,
                                  .in = { { memory, 8, K, FT_F16, 0.0f } },
                                  .out = { memory, 8, N, FT_F16, 0.0f },
                                  .weight = { &weight[i] },
                                  .scratch = memory,
                                  .scratch_bytes = SIZE_MAX / 4,
                                  .counters = counters };
    }
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 2,
           "two group-wise linears are fused into one GEMM");
    is_str(text, "w4 gemv", "8 rows select the GEMV kernel");
    args[1].in[0].rows = args[0].in[0].rows = MAX_SIZE;
    ft_cuda_linear_explain(&group, text, sizeof text);
    is_str(text, "w4 wgmma", "2048 rows select the wgmma kernel");
    props.has_wgmma = false;
    ft_cuda_linear_explain(&group, text, sizeof text);
    is_str(text, "w4 mma", "2048 rows select the mma kernel on devices without wgmma");
    props.capability = 75;
    ft_cuda_linear_explain(&group, text, sizeof text);
    is_str(text, "w4 simt", "sm_75 selects the SIMT kernel");
    props.capability = 90;
    args[1].in[0].rows = args[0].in[0].rows = 8;
    ft_cuda_tuned_gemm tuned = { { .m = 16,
                                   .n = 2 * N,
                                   .k = K,
                                   .x = FT_F16,
                                   .w = FT_U4,
                                   .y = FT_F16,
                                   .group = 128,
                                   .linears = 2 },
                                 ft_cuda_gemm_candidate_named(&ft_cuda_groupwise_family,
                                                              "mma m16") };
    props.tuned = &tuned;
    props.num_tuned = 1;
    ft_cuda_linear_explain(&group, text, sizeof text);
    is_str(text, "w4 mma", "a tuning file chooses the kernel of two group-wise linears");
    tuned.problem.group = 64;
    ft_cuda_linear_explain(&group, text, sizeof text);
    is_str(text, "w4 gemv", "a choice for other groups has no effect");
    props.num_tuned = 0;
    weight[1].groupwise.group = 64;
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 1,
           "linears with different group sizes are not fused");
    weight[0].groupwise.int8_activations = true;
    group.linears = 1;
    ft_cuda_linear_explain(&group, text, sizeof text);
    is_str(text, "w4 int8", "int8 activations select the int8-activation kernel");
}

/* A norm, two linears with group-wise weights and their gate: how much of it is one kernel. */
static void test_parts(void)
{
    enum { N = 11008, K = 4096 };
    static uint16_t scale[1];
    static uint32_t counters[1];
    static char memory[64] __attribute__((aligned(64)));
    const ft_cuda_device_props props = {
        .capability = 90, .sm_count = 132, .has_wgmma = true, .smem_bytes = 232448
    };
    const ft_op norm_op = { .kind = FT_OP_NORM, .attr = { .norm = FT_NORM_RMS } };
    const ft_op linear_op = { .kind = FT_OP_LINEAR };
    const ft_op gate_op = { .kind = FT_OP_GATE, .attr = { .activation = FT_ACT_SILU } };
    ft_weight weight = { .rows = N,
                         .cols = K,
                         .dtype = FT_U4,
                         .layout = FT_PANEL32,
                         .groupwise = { .group = 128, .scale = scale },
                         .data = memory };
    const ft_weight gamma = { .rows = 1, .cols = K, .dtype = FT_F32, .data = memory };
    for (size_t rows = 1; rows <= 3; rows++) {
        ft_view x = { .data = memory, .rows = rows, .cols = K, .dtype = FT_F16 }, y = x;
        y.cols = N;
        ft_cuda_args norm = { .props = &props,
                              .op = &norm_op,
                              .in = { x, x },
                              .out = x,
                              .second = x,
                              .weight = { &gamma } };
        ft_cuda_args linear = { .props = &props,
                                .op = &linear_op,
                                .in = { x },
                                .out = y,
                                .weight = { &weight },
                                .scratch = memory,
                                .scratch_bytes = SIZE_MAX / 4,
                                .counters = counters };
        ft_cuda_args gate = { .props = &props, .op = &gate_op, .in = { y, y }, .out = y };
        ft_cuda_group part, group = { .kind = FT_FUSION_LINEAR,
                                      .norm = &norm,
                                      .linear = { &linear, &linear },
                                      .linears = 2,
                                      .gate = &gate };
        const ft_cuda_fused_kernel *kernel = ft_cuda_fused_kernel_for(&group, &part);
        is_str(kernel != NULL ? kernel->name : "none",
               rows == 1   ? "norm, groupwise gemv, gate"
               : rows == 2 ? "groupwise gemv, gate"
                           : "groupwise",
               "the kernel of a norm, two linears and a gate for %zu rows", rows);
        ok((part.norm != NULL) == (rows == 1) && (part.gate != NULL) == (rows <= 2),
           "and what it does not compute is not in its part");
        group.norm = NULL;
        kernel = ft_cuda_fused_kernel_for(&group, &part);
        ok(kernel != NULL && part.norm == NULL && (part.gate != NULL) == (rows <= 2),
           "without a norm, linears%s are one kernel for %zu rows", rows <= 2 ? " and gate" : "",
           rows);
        group.norm = &norm;
        group.gate = NULL;
        group.linears = 1;
        kernel = ft_cuda_fused_kernel_for(&group, &part);
        ok(rows == 1 ? kernel != NULL && part.norm != NULL : kernel == NULL,
           "a norm and one linear are %s for %zu rows", rows == 1 ? "one kernel" : "two kernels",
           rows);
    }
}

int main(void)
{
    test_choice();
    test_small_m();
    test_tuned();
    test_group();
    test_blocks();
    test_parts();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
