/*
 * operand_sets.c - random operands of a GEMM.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/tune/operand_sets.h"
#include "kernels/cuda/tune/random_operand.h"
#include "runtime/mem.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { ALIGN = 256, ROTATION_BYTES = 160 << 20 };

/* Whether each set has its own copy. */
static bool belongs_to_weights(int operand)
{
    return operand == FT_CUDA_GEMM_W || operand == FT_CUDA_GEMM_PREPACKED ||
           operand == FT_CUDA_GEMM_SCALE || operand == FT_CUDA_GEMM_ZERO ||
           operand == FT_CUDA_GEMM_BIAS;
}

/* Lays the operands out that each set has, or those that all share; returns the bytes. */
static size_t layout(ft_cuda_gemm_operands *set, char *memory, bool weights)
{
    size_t at = 0;
    for (int i = 0; i < FT_CUDA_GEMM_OPERANDS; i++) {
        if (belongs_to_weights(i) != weights || set->bytes[i] == 0)
            continue;
        if (memory != NULL)
            set->data[i] = memory + at;
        at += ft_round_up(set->bytes[i], ALIGN);
    }
    return at;
}

/* ---- Values ------------------------------------------------------------------------------- */

/* Small positive numbers, such that results have a realistic magnitude. */
static int fill_f32(void *to, size_t bytes, float divisor)
{
    size_t count = bytes / sizeof(float);
    float *values = ft_calloc(count, sizeof *values);
    if (values == NULL)
        return (int) cudaErrorMemoryAllocation;
    for (size_t i = 0; i < count; i++)
        values[i] = (float) (ft_mix64(i + 1) % 1000 + 1) / divisor;
    int code = (int) cudaMemcpy(to, values, count * sizeof *values, cudaMemcpyHostToDevice);
    free(values);
    return code;
}

/* F16 scales of 2^-8 to 2^-6. */
static int fill_f16_scales(void *to, size_t bytes)
{
    size_t count = bytes / sizeof(uint16_t);
    uint16_t *values = ft_calloc(count, sizeof *values);
    if (values == NULL)
        return (int) cudaErrorMemoryAllocation;
    for (size_t i = 0; i < count; i++)
        values[i] = (uint16_t) (0x1c00 + ft_mix64(i + 1) % 0x800);
    int code = (int) cudaMemcpy(to, values, count * sizeof *values, cudaMemcpyHostToDevice);
    free(values);
    return code;
}

/* Zero points of 4 bits are 0 .. 15: here 8. */
static int fill_zero_points(void *to, size_t bytes, ft_dtype weight)
{
    return weight == FT_U4 ? (int) cudaMemset(to, 8, bytes) : ft_cuda_fill_random(to, bytes, FT_U8);
}

static int fill_operand(const ft_cuda_gemm_operands *set, int operand)
{
    void *to = set->data[operand];
    size_t bytes = set->bytes[operand];
    const ft_gemm_problem *p = set->problem;
    if (to == NULL)
        return 0;
    switch ((ft_cuda_gemm_operand) operand) {
    case FT_CUDA_GEMM_X:
        return ft_cuda_fill_random(to, bytes, p->x);
    case FT_CUDA_GEMM_W:
        return ft_cuda_fill_random(to, bytes, p->w);
    case FT_CUDA_GEMM_SCALE:
        return p->w == FT_I8 ? fill_f32(to, bytes, 2e6f) : fill_f16_scales(to, bytes);
    case FT_CUDA_GEMM_ZERO:
        return fill_zero_points(to, bytes, p->w);
    case FT_CUDA_GEMM_BIAS:
        return fill_f32(to, bytes, 1e3f);
    default:
        return (int) cudaMemset(to, 0, bytes);
    }
}

static int fill(const ft_cuda_operand_sets *sets, const ft_cuda_gemm_family *family, void *stream)
{
    int code = 0;
    for (int i = 0; i < sets->count; i++)
        for (int j = 0; j < FT_CUDA_GEMM_OPERANDS && code == 0; j++)
            if (i == 0 || belongs_to_weights(j))
                code = fill_operand(&sets->set[i], j);
    for (int i = 0; i < sets->count && code == 0 && family->prepare != NULL; i++)
        code = family->prepare(stream, &sets->set[i]);
    return code != 0 ? code : (int) cudaDeviceSynchronize();
}

/* ------------------------------------------------------------------------------------------ */

int ft_cuda_operand_sets_init(ft_cuda_operand_sets *out, const ft_cuda_gemm_family *family,
                              const ft_cuda_device_props *props, const ft_gemm_problem *problem,
                              void *stream)
{
    ft_cuda_gemm_operands one = { .problem = problem };
    *out = (ft_cuda_operand_sets){ .memory = NULL };
    family->measure(props, &one);
    size_t shared = layout(&one, NULL, false), own = layout(&one, NULL, true);
    out->count =
        (int) ft_min_size(FT_CUDA_MAX_OPERAND_SETS, ROTATION_BYTES / one.bytes[FT_CUDA_GEMM_W] + 2);
    int code = (int) cudaMalloc((void **) &out->memory, shared + (size_t) out->count * own);
    if (code == 0 && cublasCreate(&out->blas) != CUBLAS_STATUS_SUCCESS)
        code = (int) cudaErrorInitializationError;
    if (code == 0 && cublasSetStream(out->blas, stream) != CUBLAS_STATUS_SUCCESS)
        code = (int) cudaErrorInitializationError;
    if (code != 0)
        return code;
    one.blas = out->blas;
    layout(&one, out->memory, false);
    for (int i = 0; i < out->count; i++) {
        out->set[i] = one;
        layout(&out->set[i], out->memory + shared + (size_t) i * own, true);
    }
    return fill(out, family, stream);
}

void ft_cuda_operand_sets_fini(ft_cuda_operand_sets *sets)
{
    if (sets->blas != NULL)
        (void) cublasDestroy(sets->blas);
    (void) cudaFree(sets->memory);
    *sets = (ft_cuda_operand_sets){ .memory = NULL };
}
