/*
 * tuned_kernels-t.c - whichever candidate a tuning file chooses for a GEMM, the result has the bits
 * of the kernel that the cost models select.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/tune/families.h"
#include "kernels/cuda/tune/operand_sets.h"
#include "runtime/mem.h"
#include "tests/lib/ops/device.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0x5c };

static const struct {
    const char *name;
    ft_gemm_problem problem;
} problems[] = {
    { "int8 to int8", { .x = FT_I8, .w = FT_I8, .y = FT_I8 } },
    { "int8 to f16 with GELU",
      { .x = FT_I8, .w = FT_I8, .y = FT_F16, .activation = FT_ACT_GELU_APPROX } },
    { "int8 to f32", { .x = FT_I8, .w = FT_I8, .y = FT_F32 } },
    { "int8, three matrices", { .x = FT_I8, .w = FT_I8, .y = FT_F16, .linears = 3 } },
    { "f16", { .x = FT_F16, .w = FT_F16, .y = FT_F16 } },
    { "bf16 with GELU", { .x = FT_BF16, .w = FT_BF16, .y = FT_BF16, .activation = FT_ACT_GELU } },
    { "f16, three matrices", { .x = FT_F16, .w = FT_F16, .y = FT_F16, .linears = 3 } },
    { "batch-invariant f16", { .x = FT_F16, .w = FT_F16, .y = FT_F16, .batch_invariant = true } },
    { "batch-invariant f16 to f32",
      { .x = FT_F16, .w = FT_F16, .y = FT_F32, .batch_invariant = true } },
    { "w4a16", { .x = FT_F16, .w = FT_U4, .y = FT_F16, .group = 128 } },
    { "w4a16 in groups of 32 with zero points",
      { .x = FT_BF16, .w = FT_U4, .y = FT_BF16, .group = 32, .zero_points = true } },
    { "w4 with float32", { .x = FT_F32, .w = FT_U4, .y = FT_F32, .group = 64 } },
    { "w8a16", { .x = FT_F16, .w = FT_U8, .y = FT_F16, .group = 64 } },
    { "w8a8-block",
      { .x = FT_F16, .w = FT_U8, .y = FT_F16, .group = 128, .int8_activations = true } },
    { "w8a8-block in groups of 32",
      { .x = FT_F16, .w = FT_U8, .y = FT_F32, .group = 32, .int8_activations = true } },
    { "w8a8-block in groups of 128 with zero points",
      { .x = FT_F16,
        .w = FT_U8,
        .y = FT_F16,
        .group = 128,
        .zero_points = true,
        .int8_activations = true } },
    { "w4a8 in groups of 64 with zero points",
      { .x = FT_BF16,
        .w = FT_U4,
        .y = FT_BF16,
        .group = 64,
        .zero_points = true,
        .int8_activations = true } },
};

static const struct {
    size_t m, n, k;
} shapes[] = { { 1, 768, 768 },    { 2, 1536, 256 },  { 8, 384, 2048 },   { 16, 4608, 1024 },
               { 33, 768, 3072 },  { 128, 768, 768 }, { 200, 2304, 768 }, { 512, 3072, 1024 },
               { 700, 384, 4096 }, { 64, 96, 128 } };

/* The result of a candidate, for free(); NULL if it failed. */
static char *result(const ft_cuda_gemm_family *family, int candidate,
                    const ft_cuda_device_props *props, const ft_cuda_gemm_operands *o)
{
    size_t bytes = o->bytes[FT_CUDA_GEMM_Y];
    char *y = malloc(bytes);
    if (y == NULL || cudaMemset(o->data[FT_CUDA_GEMM_Y], POISON, bytes) != cudaSuccess)
        bail_out("no memory for %zu bytes", bytes);
    int status = family->launch(candidate, props, NULL, o);
    if (status == 0)
        status = (int) cudaMemcpy(y, o->data[FT_CUDA_GEMM_Y], bytes, cudaMemcpyDeviceToHost);
    if (status == 0)
        return y;
    if (status != (int) cudaErrorNotSupported)
        diag("%s", cudaGetErrorString((cudaError_t) status));
    (void) cudaGetLastError();
    free(y);
    return NULL;
}

static void test_shape(const char *name, const ft_gemm_problem *p,
                       const ft_cuda_device_props *props)
{
    const ft_cuda_gemm_family *family = ft_cuda_gemm_family_of(p);
    ft_cuda_operand_sets sets;
    char kernel[FT_GEMM_KERNEL_NAME];
    int compared = 0, wrong = 0;
    if (ft_cuda_operand_sets_init(&sets, family, props, p, NULL) != 0)
        bail_out("no operands for %zu x %zu x %zu", p->m, p->n, p->k);
    const ft_cuda_gemm_operands *o = &sets.set[0];
    int selected = family->select(props, o);
    char *expected = selected < 0 ? NULL : result(family, selected, props, o);
    for (int i = 0; expected != NULL && family->describe(i, kernel); i++) {
        if (i == selected || !family->fits(i, props, o))
            continue;
        char *found = result(family, i, props, o);
        bool differs = found != NULL && memcmp(found, expected, o->bytes[FT_CUDA_GEMM_Y]) != 0;
        if (differs)
            diag("%s differs", kernel);
        compared += found != NULL;
        wrong += differs;
        free(found);
    }
    ok(expected != NULL && wrong == 0, "%s, %zu x %zu x %zu: %d candidates have the same bits",
       name, p->m, p->n, p->k, compared + 1);
    free(expected);
    ft_cuda_operand_sets_fini(&sets);
}

/* The tuner relies on it, since a file has names. */
static void test_names(const ft_gemm_problem *p, const char *name)
{
    const ft_cuda_gemm_family *family = ft_cuda_gemm_family_of(p);
    char kernel[FT_GEMM_KERNEL_NAME];
    int count = 0, wrong = 0;
    for (; family->describe(count, kernel); count++)
        wrong += ft_cuda_gemm_candidate_named(family, kernel) != count;
    ok(count > 1 && wrong == 0, "%s: each of %d candidates has a name of its own", name, count);
}

int main(void)
{
    ft_cuda_device_props props;
    char text[GPU_TEXT];
    if (!find_gpu(&props, text))
        skip_all("%s", text);
    for (size_t i = 0; i < FT_COUNT(problems); i++) {
        ft_gemm_problem p = problems[i].problem;
        p.linears = p.linears > 0 ? p.linears : 1;
        test_names(&p, problems[i].name);
        for (size_t j = 0; j < FT_COUNT(shapes); j++) {
            p.m = shapes[j].m;
            p.n = shapes[j].n;
            p.k = shapes[j].k;
            test_shape(problems[i].name, &p, &props);
        }
    }
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
