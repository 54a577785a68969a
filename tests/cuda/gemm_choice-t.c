/*
 * gemm_choice-t.c - which way computes an int8 product, and what is said of it; needs no device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/fused_kernels.h"

#include <stdlib.h>
#include <string.h>

/* FT_CUDA_GEMM asks; what cannot be had is said. */
static void test_choice(void)
{
    static int8_t codes[64] __attribute__((aligned(64)));
    ft_cuda_device_props props = { .capability = 86, .sm_count = 84, .smem_bytes = 101376 };
    ft_cuda_gemm_args p = {
        .m = 64, .n = 64, .k = 64, .x = codes, .w = codes, .n_outputs = 1, .width = { 64 }
    };
    char text[128];
    unsetenv("FT_CUDA_GEMM");
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "mma", "sm_86 multiplies by mma.sync");
    p.k = 50;
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "plain", "but not rows of 50 codes");
    setenv("FT_CUDA_GEMM", "mma", 1);
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "plain: FT_CUDA_GEMM=mma does not support it", "even if asked to, and says so");
    setenv("FT_CUDA_GEMM", "plain", 1);
    p.k = 64;
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "plain: requested by FT_CUDA_GEMM", "FT_CUDA_GEMM=plain is heard");
    setenv("FT_CUDA_GEMM", "abacus", 1);
    ft_cuda_gemm_explain(&props, &p, text, sizeof text);
    is_str(text, "mma: FT_CUDA_GEMM=abacus is not a kernel", "another word is said to be none");
    setenv("FT_CUDA_GEMM", "lt", 1);
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_MMA, "no cuBLASLt without scratch");
    ok(ft_cuda_gemm_scratch(&props, 64, 64, 64) > 0, "which is asked for where lt is");
    unsetenv("FT_CUDA_GEMM");
    is_int((long long) ft_cuda_gemm_scratch(&props, 64, 64, 64), 0, "and nowhere else");
    props.capability = 60;
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_SIMT, "old devices have the plain way");
    for (int how = 0; how < FT_CUDA_GEMM_KERNELS; how++) {
        setenv("FT_CUDA_GEMM", ft_cuda_gemm_name((ft_cuda_gemm_kernel) how), 1);
        ft_cuda_gemm_explain(&props, &p, text, sizeof text);
        ok(strstr(text, "is not a kernel") == NULL, "FT_CUDA_GEMM knows %s",
           ft_cuda_gemm_name((ft_cuda_gemm_kernel) how));
    }
    unsetenv("FT_CUDA_GEMM");
}

/* Few rows of a decoder: from tiles alone, or beside the other order. */
static void test_few(void)
{
    static int8_t codes[64] __attribute__((aligned(64)));
    const ft_cuda_device_props props = {
        .capability = 90, .has_pdl = true, .sm_count = 132, .has_wgmma = true, .smem_bytes = 232448
    };
    ft_cuda_gemm_args p = { .m = 8, .n = 4096, .k = 4096, .x = codes, .prepacked = codes };
    p.y_dtype = FT_F16;
    p.n_outputs = 1;
    p.width[0] = 4096;
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_GEMV, "8 rows of tiles are streamed");
    ft_cuda_device_props translated = props; /* the driver has translated older code */
    translated.has_pdl = false;
    ok(!ft_cuda_gemm_gemv_supports(&translated, &p), "but not by code for older devices");
    p.m = 9;
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_WGMMA, "9 rows are not");
    p.m = 8;
    p.k = 65536;
    is_int(ft_cuda_gemm_select(&props, &p), FT_CUDA_GEMM_WGMMA, "nor rows that have no room");
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
                                  .codes = { y[i], ROWS, N, FT_I8, 0.1f },
                                  .weight = { &weight[i], &vector[i] } };
        group.linear[i] = &args[i];
    }
    is_int((long long) ft_cuda_prepacked_bytes(N, K), N * K,
           "three matrices of tiles fit side by side");
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 3, "three linears are one product");
    is_str(text, "wgmma", "by wgmma");
    setenv("FT_CUDA_GEMM", "mma", 1);
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 1, "but not where mma is asked for");
    is_str(text, "mma: requested by FT_CUDA_GEMM", "which takes each of them");
    unsetenv("FT_CUDA_GEMM");
    group.contiguous = false;
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 1,
           "nor where the plan does not lay their weights one behind the other");
    group.contiguous = true;
    weight[0].rows = N - 32;
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 1, "nor where upload leaves a gap");
    weight[0].rows = N;
    args[1].weight[1] = NULL;
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 1, "nor where one has no bias");
    weight[0].dtype = FT_F16;
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 0, "floats are no int8 product");
    is_str(text, "", "of which nothing is said");
}

/* Linears whose weights are in blocks: which kernel, and when several are one product. */
static void test_blocks(void)
{
    enum { N = 12288, K = 4096, MOST = 2048 };
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
                                 .blocks = { .group = 128, .scale = scale },
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
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 2, "two with blocks are one");
    is_str(text, "w4 few", "streamed for 8 rows");
    args[1].in[0].rows = args[0].in[0].rows = MOST;
    ft_cuda_linear_explain(&group, text, sizeof text);
    is_str(text, "w4 wgmma", "by warpgroups for many");
    props.has_wgmma = false;
    ft_cuda_linear_explain(&group, text, sizeof text);
    is_str(text, "w4 tiles", "by warps where there are none");
    props.capability = 75;
    ft_cuda_linear_explain(&group, text, sizeof text);
    is_str(text, "w4 plain", "by the plain way on older devices");
    weight[1].blocks.group = 64;
    is_int(ft_cuda_linear_explain(&group, text, sizeof text), 1, "groups of two sizes are two");
    weight[0].blocks.int8_activations = true;
    group.linears = 1;
    ft_cuda_linear_explain(&group, text, sizeof text);
    is_str(text, "w4 codes", "inputs may become codes");
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
                         .blocks = { .group = 128, .scale = scale },
                         .data = memory };
    const ft_weight gamma = { .rows = 1, .cols = K, .dtype = FT_F32, .data = memory };
    for (size_t rows = 1; rows <= 3; rows++) {
        ft_cuda_view x = { .data = memory, .rows = rows, .cols = K, .dtype = FT_F16 }, y = x;
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
    test_few();
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
