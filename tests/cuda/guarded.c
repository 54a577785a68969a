/*
 * guarded.c - operands and results in device memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/cuda/guarded.h"

#ifdef HAVE_CUDA

#include "kernels/half.h"
#include "tests/lib/ops/oneop.h"
#include "tests/tap/tap.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, POISON = 0x5c, MAX_MEMORY = 60 };

static void *memory[MAX_MEMORY];
static int count;

void must(int status, const char *what)
{
    if (status != 0)
        bail_out("%s: %s", what, cudaGetErrorString((cudaError_t) status));
}

void *on_device(const void *data, size_t bytes)
{
    void *pointer;
    must((int) cudaMalloc(&pointer, bytes), "device memory");
    must(data != NULL ? (int) cudaMemcpy(pointer, data, bytes, cudaMemcpyHostToDevice)
                      : (int) cudaMemset(pointer, POISON, bytes),
         "device memory");
    return memory[count++] = pointer;
}

void *random_f16(uint64_t seed, ft_dtype dtype, size_t n)
{
    float *values = random_floats(seed, n, 1.0);
    uint16_t *halves = must_have(n, sizeof *halves);
    for (size_t i = 0; i < n; i++)
        halves[i] = dtype == FT_F16 ? ft_f16_from_float(values[i]) : ft_bf16_from_float(values[i]);
    void *uploaded = on_device(halves, n * sizeof *halves);
    free(halves);
    free(values);
    return uploaded;
}

float *random_vector(uint64_t seed, size_t n)
{
    float *values = random_floats(seed, n, 1.0), *uploaded = on_device(values, n * sizeof *values);
    free(values);
    return uploaded;
}

ft_view result_of(size_t rows, size_t cols, ft_dtype dtype)
{
    size_t bytes = rows * cols * ft_dtype_size(dtype);
    return (ft_view){ .data = (char *) on_device(NULL, bytes + 2 * GUARD) + GUARD,
                      .rows = rows,
                      .cols = cols,
                      .dtype = dtype };
}

void free_all(void)
{
    while (count > 0)
        cudaFree(memory[--count]);
}

/* A host copy of a result with its guards; the caller frees it. */
static char *copy_of(const ft_view *view)
{
    size_t bytes = view->rows * view->cols * ft_dtype_size(view->dtype) + 2 * GUARD;
    char *copy = must_have(bytes, 1);
    must((int) cudaMemcpy(copy, (char *) view->data - GUARD, bytes, cudaMemcpyDeviceToHost),
         "copying a result");
    return copy;
}

bool same(const ft_view *a, const ft_view *b)
{
    size_t bytes = a->rows * a->cols * ft_dtype_size(a->dtype) + 2 * GUARD;
    char *x = copy_of(a), *y = copy_of(b);
    bool equal = memcmp(x, y, bytes) == 0;
    free(x);
    free(y);
    return equal;
}

bool untouched(const ft_view *view)
{
    size_t bytes = view->rows * view->cols * ft_dtype_size(view->dtype) + 2 * GUARD;
    char *copy = copy_of(view);
    bool poison = true;
    for (size_t i = 0; i < bytes; i++)
        poison = poison && copy[i] == POISON;
    free(copy);
    return poison;
}

#endif
