/*
 * device-t.c - CUDA kernels that quantize, relayout and copy inputs, against kernels/quant.h and
 * kernels/layout.h on the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/cuda.h"
#include "kernels/quant.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/gpu.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state = 1;

static uint32_t draw(void)
{
    state = 1664525u * state + 1013904223u;
    return state >> 8;
}

/* Copies host bytes to new device memory. */
static void *upload(const void *data, size_t bytes)
{
    void *memory;
    if (cudaMalloc(&memory, bytes) != cudaSuccess ||
        cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice) != cudaSuccess)
        bail_out("cannot copy %zu bytes to the device", bytes);
    return memory;
}

static void download(void *data, const void *memory, size_t bytes)
{
    if (cudaMemcpy(data, memory, bytes, cudaMemcpyDeviceToHost) != cudaSuccess)
        bail_out("cannot copy %zu bytes from the device: %s", bytes,
                 cudaGetErrorString(cudaGetLastError()));
}

static void test_quantize(size_t n)
{
    float *x = malloc(n * sizeof *x), *back = malloc(n * sizeof *back);
    int8_t *quantized = malloc(n);
    int wrong = 0, wrong_back = 0;
    for (size_t i = 0; i < n; i++)
        x[i] = ((float) draw() / 8388608.0f - 1.0f) * 3.0f;
    float *dev_x = upload(x, n * sizeof *x);
    int8_t *dev_quantized = upload(x, n);
    is_int(ft_cuda_quantize_array(NULL, dev_quantized, dev_x, 127.0f / 2.5f, n), 0,
           "ft_cuda_quantize_array() launches");
    is_int(ft_cuda_dequantize_array(NULL, dev_x, dev_quantized, 2.5f / 127.0f, n), 0,
           "ft_cuda_dequantize_array() launches");
    download(quantized, dev_quantized, n);
    download(back, dev_x, n * sizeof *back);
    for (size_t i = 0; i < n; i++) {
        wrong += quantized[i] != ft_quantize(x[i], 127.0f / 2.5f);
        wrong_back += back[i] != (float) quantized[i] * (2.5f / 127.0f);
    }
    is_int(wrong, 0, "the device quantizes %zu values as the host does", n);
    is_int(wrong_back, 0, "the device dequantizes %zu values as the host does", n);
    cudaFree(dev_x);
    cudaFree(dev_quantized);
    free(x);
    free(back);
    free(quantized);
}

static void test_relayout(ft_layout to, size_t rows, size_t cols)
{
    size_t bytes = ft_layout_bytes(to, rows, cols);
    int8_t *row = malloc(rows * cols), *expected = calloc(1, bytes), *found = malloc(bytes);
    for (size_t i = 0; i < rows * cols; i++)
        row[i] = (int8_t) (draw() % 255) - 127;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            expected[ft_offset(to, r, c, rows, cols)] = row[r * cols + c];
    memset(found, 0x55, bytes);
    int8_t *dev_row = upload(row, rows * cols), *dev_out = upload(found, bytes);
    int status = ft_cuda_relayout(NULL, dev_out, to, dev_row, FT_ROW, rows, cols);
    download(found, dev_out, bytes);
    ok(status == 0 && memcmp(found, expected, bytes) == 0,
       "ft_cuda_relayout() converts row-major to %s, %zu x %zu, padding included",
       ft_layout_name(to), rows, cols);
    status = ft_cuda_relayout(NULL, dev_row, FT_ROW, dev_out, to, rows, cols);
    download(found, dev_row, rows * cols);
    ok(status == 0 && memcmp(found, row, rows * cols) == 0,
       "ft_cuda_relayout() converts the matrix back to row-major");
    cudaFree(dev_row);
    cudaFree(dev_out);
    free(row);
    free(expected);
    free(found);
}

/* Inputs of `bytes` that the host rewrites before each run; nothing past their end changes. */
static void test_inputs(size_t bytes)
{
    enum { RUNS = 5, GUARD = 64 };
    ft_cuda_device_props props = { .has_pdl = false };
    char *host, *found = malloc(bytes + GUARD);
    uint32_t counts[2] = { 0, 0 }, *taken;
    int wrong = 0;
    if (cudaHostAlloc((void **) &host, bytes + GUARD, cudaHostAllocDefault) != cudaSuccess ||
        cudaHostAlloc((void **) &taken, sizeof *taken, cudaHostAllocDefault) != cudaSuccess)
        bail_out("cannot allocate pinned memory");
    memset(found, 0x5a, bytes + GUARD);
    char *device = upload(found, bytes + GUARD);
    ft_cuda_inputs inputs = { device, host, bytes, upload(counts, sizeof counts), taken };
    *taken = 0;
    for (uint32_t run = 1; run <= RUNS; run++) {
        for (size_t i = 0; i < bytes + GUARD; i++)
            host[i] = (char) draw();
        wrong += ft_cuda_copy_inputs(&props, NULL, &inputs) != 0;
        download(found, device, bytes + GUARD);
        wrong += memcmp(found, host, bytes) != 0;
        for (size_t i = bytes; i < bytes + GUARD; i++)
            wrong += found[i] != 0x5a;
        wrong += *(volatile uint32_t *) taken != run;
    }
    is_int(wrong, 0, "ft_cuda_copy_inputs() copies %zu bytes of inputs and signals the host",
           bytes);
    cudaFree(device);
    cudaFree(inputs.count);
    cudaFreeHost(host);
    cudaFreeHost(taken);
    free(found);
}

int main(void)
{
    (void) need_gpu();
    test_quantize(1);
    test_quantize(100003);
    test_inputs(16);
    test_inputs(2032);
    test_inputs(1 << 20);
    for (ft_layout to = FT_COL32; to <= FT_COL32_2R_4R4; to++) {
        test_relayout(to, 1, 1);
        test_relayout(to, 37, 70);
        test_relayout(to, 768, 3072);
    }
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
