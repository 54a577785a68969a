/*
 * gemm_int8.c - int8 GEMM problems for tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/half.h"
#include "kernels/layout.h"
#include "tests/cuda/gemm_int8.h"
#include "tests/lib/ops/gpu.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint32_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t) (state >> 32);
}

static float draw_float(float low, float high)
{
    return low + (high - low) * (float) (draw() >> 8) * 0x1p-24f;
}

void *upload(const void *data, size_t bytes)
{
    void *memory;
    if (cudaMalloc(&memory, bytes) != cudaSuccess ||
        cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice) != cudaSuccess)
        bail_out("cannot copy %zu bytes to the device: %s", bytes,
                 cudaGetErrorString(cudaGetLastError()));
    return memory;
}

void download(void *data, const void *memory, size_t bytes)
{
    if (cudaMemcpy(data, memory, bytes, cudaMemcpyDeviceToHost) != cudaSuccess)
        bail_out("cannot copy %zu bytes from the device: %s", bytes,
                 cudaGetErrorString(cudaGetLastError()));
}

static int8_t draw_code(problem_quantized quantized)
{
    uint32_t bits = draw();
    if (quantized == EXTREME_CODES)
        return bits % 16 == 0 ? -127 : 127;
    return (int8_t) ((int) (bits % 255) - 127);
}

static int8_t *draw_int8(size_t n, problem_quantized quantized)
{
    int8_t *out = malloc(n);
    for (size_t i = 0; i < n; i++)
        out[i] = draw_code(quantized);
    return out;
}

int8_t *problem_random_int8(size_t n)
{
    return draw_int8(n, ANY_CODES);
}

float *problem_floats(const int8_t *quantized, size_t n)
{
    float *out = malloc(n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        out[i] = quantized[i];
    return out;
}

static float *draw_floats(size_t n, float low, float high)
{
    float *out = malloc(n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        out[i] = draw_float(low, high);
    return out;
}

float inverse_of_part(int part)
{
    return 127.0f / (3.0f + (float) part);
}

/* w_row in COL4_4R2_8C, 64-byte aligned as the CPU's kernel requires. */
static int8_t *lay_out(const int8_t *w_row, size_t n, size_t k)
{
    size_t bytes = ft_layout_bytes(FT_COL4_4R2_8C, n, k), rows = ft_layout_rows(FT_COL4_4R2_8C, n);
    int8_t *w = aligned_alloc(64, (bytes + 63) / 64 * 64);
    for (size_t i = 0; i < bytes; i++)
        w[i] = (int8_t) draw();
    for (size_t row = 0; row < n; row++)
        for (size_t col = 0; col < k; col++)
            w[ft_offset_col4(row, col, rows)] = w_row[row * k + col];
    return w;
}

static void upload_all(problem *q)
{
    size_t size = q->m * q->n;
    q->dev_x = upload(q->x, q->m * q->k);
    q->dev_w = upload(q->w, ft_layout_bytes(FT_COL4_4R2_8C, q->n, q->k));
    q->dev_x_scales = upload(q->x_scales, q->m * sizeof(float));
    q->dev_w_scale = upload(q->w_scale, q->n * sizeof(float));
    q->dev_bias = upload(q->bias, q->n * sizeof(float));
    q->dev_residual = upload(q->residual, size * sizeof(float));
    q->dev_residual_half = upload(q->residual_half, size * sizeof(uint16_t));
}

/* The prepacked weights of wgmma_gemm.cu, on devices that run it. */
static void tile_weights(problem *q)
{
    if (cudaMalloc((void **) &q->dev_tiles, ft_cuda_prepacked_bytes(q->n, q->k)) != cudaSuccess ||
        ft_cuda_prepack(NULL, q->dev_tiles, q->dev_w, q->n, q->k) != 0 ||
        cudaDeviceSynchronize() != cudaSuccess)
        bail_out("cannot prepack the weights");
}

problem open_problem(const ft_cuda_device_props *props, void *blas, size_t m, size_t n, size_t k,
                     problem_quantized quantized)
{
    problem q = { .m = m, .n = n, .k = k, .x_scale = 0.031f, .blas = blas };
    float spread = 2.0f / (q.x_scale * 5376.0f * sqrtf((float) k));
    if (quantized == EXTREME_CODES)
        spread = 3.0f / (q.x_scale * 16129.0f * 0.75f * (float) k);
    q.x = draw_int8(m * k, quantized);
    q.w_row = draw_int8(n * k, quantized);
    q.w = lay_out(q.w_row, n, k);
    q.x_scales = draw_floats(m, 0.02f, 0.04f);
    q.w_scale = draw_floats(n, 0.5f * spread, 1.5f * spread);
    q.bias = draw_floats(n, -1.0f, 1.0f);
    q.residual = draw_floats(m * n, -2.0f, 2.0f);
    q.residual_half = malloc(m * n * sizeof *q.residual_half);
    for (size_t i = 0; i < m * n; i++)
        q.residual_half[i] = ft_f16_from_float(q.residual[i]);
    upload_all(&q);
    if (props->has_wgmma)
        tile_weights(&q);
    q.scratch_bytes = ft_cuda_gemm_cublaslt_scratch(props, m, n, k);
    if (cudaMalloc(&q.dev_scratch, q.scratch_bytes) != cudaSuccess)
        bail_out("no device memory for scratch");
    return q;
}

void close_problem(problem *q)
{
    void *host[] = { q->x,        q->w_row,         q->w,   q->x_scales, q->w_scale, q->bias,
                     q->residual, q->residual_half, q->sums };
    void *device[] = { q->dev_x,       q->dev_w,    q->dev_tiles,    q->dev_x_scales,
                       q->dev_w_scale, q->dev_bias, q->dev_residual, q->dev_residual_half,
                       q->dev_scratch };
    for (size_t i = 0; i < sizeof host / sizeof host[0]; i++)
        free(host[i]);
    for (size_t i = 0; i < sizeof device / sizeof device[0]; i++)
        cudaFree(device[i]);
}

void problem_sum(problem *q)
{
    q->sums = malloc(q->m * q->n * sizeof *q->sums);
    for (size_t i = 0; i < q->m * q->n; i++) {
        const int8_t *x = q->x + i / q->n * q->k, *w = q->w_row + i % q->n * q->k;
        int32_t sum = 0;
        for (size_t j = 0; j < q->k; j++)
            sum += x[j] * w[j];
        q->sums[i] = sum;
    }
}

ft_cuda_device_props open_gpu(void **blas)
{
    ft_cuda_device_props props = need_gpu();
    cublasHandle_t handle;
    if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS)
        bail_out("cannot create a cuBLAS handle");
    props.has_imma = ft_cuda_gemm_cublaslt_probe(handle);
    *blas = handle;
    return props;
}

#endif
