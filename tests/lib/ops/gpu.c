/*
 * gpu.c - see gpu.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/ops/gpu.h"

#ifdef HAVE_CUDA

#include "tests/tap/tap.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

ft_cuda_device_props need_gpu(void)
{
    ft_cuda_device_props props;
    char text[GPU_TEXT];
    if (!find_gpu(&props, text))
        skip_all("%s", text);
    return props;
}

void must(int status, const char *what)
{
    if (status != 0)
        bail_out("%s: %s", what, cudaGetErrorString((cudaError_t) status));
}

void *must_have(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL)
        bail_out("cannot allocate %zu bytes", bytes);
    return memory;
}

void *device_memory(size_t bytes)
{
    void *memory;
    must(cudaMalloc(&memory, bytes), "cudaMalloc");
    return memory;
}

void to_device(void *to, const void *from, size_t bytes)
{
    must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "upload");
}

void from_device(void *to, const void *from, size_t bytes)
{
    must(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "download");
}

#endif
