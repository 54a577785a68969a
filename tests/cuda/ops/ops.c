/*
 * ops.c - one operation on the CPU and on the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/ops/ops.h"

#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/device.h"
#include "tests/tap/tap.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, PATTERN = 0x5a, ROOM = 512 << 20, SCRATCH = 64 << 20 };

rng numbers = { 20 };
ft_cuda_device_props props;

/* Memory is allocated from the start of an arena, on host and device. */
static char *host_block, *device_block, *host_scratch, *device_scratch;
static size_t host_used, device_used;
static cublasHandle_t blas;
static bool has_f16; /* on the host too */

void open_device(void)
{
    char text[GPU_TEXT];
    if (!find_gpu(&props, text))
        skip_all("%s", text);
    host_block = malloc(ROOM);
    host_scratch = aligned_alloc(64, SCRATCH);
    if (cudaMalloc((void **) &device_block, ROOM) != cudaSuccess ||
        cudaMalloc((void **) &device_scratch, SCRATCH) != cudaSuccess || host_block == NULL ||
        host_scratch == NULL || cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS)
        bail_out("cannot allocate memory or create a cuBLAS handle");
}

void keep_f16(bool keep)
{
    has_f16 = keep;
}

/* ---- Memory ------------------------------------------------------------------------------- */

void begin_case(void)
{
    host_used = device_used = 0;
}

void *host_memory(size_t bytes)
{
    char *memory = host_block + host_used;
    host_used += ft_round_up(bytes, 64);
    if (host_used > ROOM)
        bail_out("a case takes more than %d bytes of host memory", ROOM);
    return memory;
}

void *device_memory(size_t bytes)
{
    char *memory = device_block + device_used;
    size_t all = ft_round_up(bytes, GUARD) + 2 * GUARD;
    device_used += all;
    if (device_used > ROOM)
        bail_out("a case takes more than %d bytes of device memory", ROOM);
    if (cudaMemset(memory, PATTERN, all) != cudaSuccess)
        bail_out("cannot write to the device: %s", cudaGetErrorString(cudaGetLastError()));
    return memory + GUARD;
}

void *to_device(const void *data, size_t bytes)
{
    void *memory = device_memory(bytes);
    if (cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice) != cudaSuccess)
        bail_out("cannot copy to the device: %s", cudaGetErrorString(cudaGetLastError()));
    return memory;
}

void from_device(void *data, const void *memory, size_t bytes)
{
    if (cudaMemcpy(data, memory, bytes, cudaMemcpyDeviceToHost) != cudaSuccess)
        bail_out("cannot copy from the device: %s", cudaGetErrorString(cudaGetLastError()));
}

/* ---- Values ------------------------------------------------------------------------------- */

static bool is_half(ft_dtype dtype)
{
    return dtype == FT_F16 || dtype == FT_BF16;
}

static uint16_t half_of(float x, ft_dtype dtype)
{
    return dtype == FT_F16 ? ft_f16_from_float(x) : ft_bf16_from_float(x);
}

static float float_of(uint16_t half, ft_dtype dtype)
{
    return dtype == FT_F16 ? ft_float_from_f16(half) : ft_float_from_bf16(half);
}

static matrix empty_matrix(size_t rows, size_t cols, ft_dtype dtype, float scale)
{
    ft_dtype host_dtype = is_half(dtype) && !has_f16 ? FT_F32 : dtype;
    return (matrix){
        .host = { .data = host_memory(rows * cols * ft_dtype_size(host_dtype)),
                  .rows = rows,
                  .cols = cols,
                  .dtype = host_dtype,
                  .scale = scale },
        .device = { .rows = rows, .cols = cols, .dtype = dtype, .scale = scale },
    };
}

matrix matrix_of(const float *x, size_t rows, size_t cols, ft_dtype dtype, float scale)
{
    size_t n = rows * cols;
    matrix v = empty_matrix(rows, cols, dtype, scale);
    void *bytes = host_memory(n * ft_dtype_size(dtype));
    for (size_t i = 0; i < n; i++)
        if (is_half(dtype)) {
            ((uint16_t *) bytes)[i] = half_of(x[i], dtype);
            if (is_half(v.host.dtype))
                ((uint16_t *) v.host.data)[i] = ((uint16_t *) bytes)[i];
            else
                ((float *) v.host.data)[i] = float_of(((uint16_t *) bytes)[i], dtype);
        } else if (dtype == FT_I8) {
            ((int8_t *) bytes)[i] = ((int8_t *) v.host.data)[i] = (int8_t) x[i];
        } else {
            ((float *) bytes)[i] = ((float *) v.host.data)[i] = x[i];
        }
    v.device.data = to_device(bytes, n * ft_dtype_size(dtype));
    return v;
}

matrix random_matrix(size_t rows, size_t cols, ft_dtype dtype, float scale)
{
    float *x = host_memory(rows * cols * sizeof *x);
    rng_floats(&numbers, x, rows * cols, 2.0);
    for (size_t i = 0; scale > 0.0f && i < rows * cols; i++)
        x[i] = (float) rng_below(&numbers, 255) - 127.0f;
    return matrix_of(x, rows, cols, dtype, scale);
}

matrix result_of(size_t rows, size_t cols, ft_dtype dtype, float scale)
{
    matrix v = empty_matrix(rows, cols, dtype, scale);
    v.device.data = device_memory(rows * cols * ft_dtype_size(dtype));
    return v;
}

matrix random_numbers(size_t rows, size_t cols, int32_t first, uint32_t count)
{
    matrix v = empty_matrix(rows, cols, FT_I32, 0.0f);
    int32_t *number = v.host.data;
    for (size_t i = 0; i < rows * cols; i++)
        number[i] = first + (int32_t) rng_below(&numbers, count);
    v.device.data = to_device(number, rows * cols * sizeof *number);
    return v;
}

static void add_scales(matrix *v)
{
    size_t bytes = v->host.rows * sizeof *v->host.scales;
    v->host.scales = host_memory(bytes);
    v->device.scales = device_memory(bytes);
    v->host.scale = v->device.scale = 0.0f;
}

matrix random_dynamic(size_t rows, size_t cols, ft_dtype dtype)
{
    matrix v = random_matrix(rows, cols, dtype, 1.0f);
    add_scales(&v);
    for (size_t i = 0; i < rows; i++)
        v.host.scales[i] = fabsf((float) rng_normal(&numbers));
    v.device.scales = to_device(v.host.scales, rows * sizeof *v.host.scales);
    return v;
}

matrix dynamic_result(size_t rows, size_t cols, ft_dtype dtype)
{
    matrix v = result_of(rows, cols, dtype, 0.0f);
    add_scales(&v);
    return v;
}

/* The same bits, or both NaN. */
static bool is_same(const char *found, const matrix *v, size_t i)
{
    if (v->host.dtype == FT_I8)
        return ((const int8_t *) found)[i] == ((const int8_t *) v->host.data)[i];
    if (is_half(v->host.dtype)) {
        uint16_t half = ((const uint16_t *) (const void *) found)[i];
        uint16_t expected = ((const uint16_t *) v->host.data)[i];
        return isnan(float_of(expected, v->host.dtype)) ? isnan(float_of(half, v->host.dtype))
                                                        : half == expected;
    }
    float expected = ((const float *) v->host.data)[i];
    if (is_half(v->device.dtype)) {
        uint16_t half = ((const uint16_t *) (const void *) found)[i];
        return isnan(expected) ? isnan(float_of(half, v->device.dtype))
                               : half == half_of(expected, v->device.dtype);
    }
    float real = ((const float *) (const void *) found)[i];
    return isnan(expected) ? isnan(real) : memcmp(&real, &expected, sizeof real) == 0;
}

/* Downloads `memory` with its guards, and counts the guard bytes that were written. */
static const char *fetch_guarded(const void *memory, size_t bytes, size_t *wrong)
{
    size_t all = ft_round_up(bytes, GUARD) + 2 * GUARD;
    char *found = host_memory(all);
    from_device(found, (const char *) memory - GUARD, all);
    for (size_t i = 0; i < all; i++)
        *wrong += (i < GUARD || i >= GUARD + bytes) && found[i] != PATTERN;
    return found + GUARD;
}

static size_t count_wrong_scales(const matrix *result)
{
    size_t wrong = 0, rows = result->device.rows;
    const float *expected = result->host.scales;
    const char *bytes = fetch_guarded(result->device.scales, rows * sizeof *expected, &wrong);
    const float *found = (const float *) (const void *) bytes;
    for (size_t i = 0; i < rows; i++) {
        bool same = memcmp(&found[i], &expected[i], sizeof *found) == 0;
        wrong += !same && !(isnan(expected[i]) && isnan(found[i]));
    }
    return wrong;
}

size_t count_differences(const matrix *result)
{
    const ft_view *device = &result->device;
    size_t wrong = 0, n = device->rows * device->cols, before = host_used;
    if (device->data == NULL)
        return 0;
    const char *found = fetch_guarded(device->data, n * ft_dtype_size(device->dtype), &wrong);
    for (size_t i = 0; i < n; i++)
        wrong += !is_same(found, result, i);
    if (device->scales != NULL)
        wrong += count_wrong_scales(result);
    host_used = before;
    return wrong;
}

/* ---- Operations --------------------------------------------------------------------------- */

void begin(both *b, ft_op_kind kind, host_kernel *host_run, device_kernel *device_run)
{
    ft_isa isa;
    if (ft_cpu_isa(&isa, NULL) != FT_OK)
        bail_out("this machine has no instruction set for the CPU kernels");
    memset(b, 0, sizeof *b);
    b->op.kind = kind;
    b->host_run = host_run;
    b->device_run = device_run;
    b->host.isa = isa;
    b->host.rows = ft_row_kernels_for(isa);
}

void add_weight(both *b, int slot, size_t rows, size_t cols, ft_dtype dtype)
{
    size_t n = rows * cols;
    void *data = host_memory(n * ft_dtype_size(dtype));
    for (size_t i = 0; i < n; i++) {
        float x = (float) rng_normal(&numbers);
        if (is_half(dtype))
            ((uint16_t *) data)[i] = half_of(x, dtype);
        else
            ((float *) data)[i] = x;
    }
    b->weight[slot] = (ft_weight){ .rows = rows, .cols = cols, .dtype = dtype, .data = data };
    b->device_weight[slot] = b->weight[slot];
    b->device_weight[slot].data = to_device(data, n * ft_dtype_size(dtype));
}

void run_host(both *b)
{
    ft_args *args = &b->host;
    args->op = &b->op;
    args->batch = &b->batch;
    args->threads = 1;
    args->scratch = host_scratch;
    args->scratch_bytes = SCRATCH;
    args->out = b->out.host;
    args->quantized = b->quantized.host;
    args->second = b->second.host;
    for (int i = 0; i < FT_MAX_IN; i++)
        args->in[i] = b->in[i].host;
    for (int i = 0; i < FT_MAX_STATES; i++)
        args->state[i] = b->state[i].host;
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        args->weight[i] = b->weight[i].data == NULL ? NULL : &b->weight[i];
    b->host_run(args);
    if (!is_half(b->out.device.dtype) || has_f16)
        return;
    /* What was written is what others read: a later operation, or a quantize. */
    float *out = b->out.host.data, inverse = ft_inverse_scale(b->quantized.host.scale);
    for (size_t i = 0; i < b->out.host.rows * b->out.host.cols; i++) {
        out[i] = float_of(half_of(out[i], b->out.device.dtype), b->out.device.dtype);
        if (b->quantized.host.data != NULL && b->quantized.host.dtype == FT_I8)
            ((int8_t *) b->quantized.host.data)[i] = ft_quantize(out[i], inverse);
        else if (b->quantized.host.data != NULL)
            ((float *) b->quantized.host.data)[i] = ft_quantize_to_float(out[i], inverse);
    }
}

const ft_cuda_args *device_args(both *b)
{
    ft_cuda_args *args = &b->device;
    args->props = &props;
    args->blas = blas;
    args->op = &b->op;
    args->batch = &b->device_batch;
    args->scratch = device_scratch;
    args->scratch_bytes = SCRATCH;
    args->out = b->out.device;
    args->quantized = b->quantized.device;
    args->second = b->second.device;
    for (int i = 0; i < FT_MAX_IN; i++)
        args->in[i] = b->in[i].device;
    for (int i = 0; i < FT_MAX_STATES; i++)
        args->state[i] = b->state[i].device;
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        args->weight[i] = b->device_weight[i].data == NULL ? NULL : &b->device_weight[i];
    return args;
}

int run_device(both *b)
{
    return b->device_run(device_args(b));
}

size_t run_both(both *b)
{
    run_host(b);
    if (run_device(b) != 0 || cudaDeviceSynchronize() != cudaSuccess)
        bail_out("%s fails: %s", ft_op_name(b->op.kind), cudaGetErrorString(cudaGetLastError()));
    return count_differences(&b->out) + count_differences(&b->quantized) +
           count_differences(&b->second);
}

#else

typedef int ft_nothing_without_cuda;

#endif
