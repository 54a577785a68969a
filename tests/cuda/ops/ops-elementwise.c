/*
 * ops-elementwise.c - elementwise and row operations on the device: activate, add, quantize,
 * dequantize, l2_normalize, and quantization of arrays.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/ops/ops.h"

#include "kernels/quant.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <string.h>

static const ft_dtype reals[] = { FT_F32, FT_F16, FT_BF16 };

/* Rows and columns: less than a vector, vectors and a remainder, more than a thread block. */
static const size_t shapes[][2] = { { 1, 1 },   { 1, 3 },    { 3, 7 },     { 2, 70 },
                                    { 5, 205 }, { 37, 312 }, { 131, 768 }, { 0, 64 } };

/* Normal floats, mixed with special values. */
static matrix special_matrix(size_t rows, size_t cols, ft_dtype dtype)
{
    const float special[] = { 0.0f,  -0.0f,  INFINITY, -INFINITY, NAN,    0.5f,   1.5f,  -2.5f,
                              5.1f,  -5.1f,  4.2f,     -4.2f,     1e-30f, -80.0f, 80.0f, 60000.0f,
                              1e30f, 1e-42f, 126.5f,   -127.5f,   88.4f,  -90.0f };
    float *x = host_memory(rows * cols * sizeof *x);
    rng_floats(&numbers, x, rows * cols, 3.0);
    for (size_t i = 0; i < FT_COUNT(special) && 3 * i < rows * cols; i++)
        x[3 * i] = special[i];
    return matrix_of(x, rows, cols, dtype, 0.0f);
}

/* The number of wrong elements over all shapes. */
static size_t run_map(ft_op_kind kind, host_kernel *host, device_kernel *device,
                      ft_activation activation, ft_dtype in, float in_scale, ft_dtype out,
                      float out_scale)
{
    size_t wrong = 0;
    for (size_t i = 0; i < FT_COUNT(shapes); i++) {
        size_t rows = shapes[i][0], cols = shapes[i][1];
        both b;
        begin_case();
        begin(&b, kind, host, device);
        b.op.attr.activation = activation;
        b.in[0] = in_scale > 0.0f ? random_matrix(rows, cols, in, in_scale)
                                  : special_matrix(rows, cols, in);
        *(out_scale > 0.0f ? &b.quantized : &b.out) = result_of(rows, cols, out, out_scale);
        wrong += run_both(&b);
    }
    return wrong;
}

static void test_activate(void)
{
    for (size_t x = 0; x < FT_COUNT(reals); x++)
        for (size_t y = 0; y < FT_COUNT(reals); y++) {
            size_t wrong = 0;
            for (ft_activation a = FT_ACT_NONE; a <= FT_ACT_SILU; a++)
                wrong += run_map(FT_OP_ACTIVATE, ft_cpu_activate, ft_cuda_activate, a, reals[x],
                                 0.0f, reals[y], 0.0f);
            is_int((long long) wrong, 0,
                   "activate: every activation from %s to %s has the CPU's bits",
                   ft_dtype_name(reals[x]), ft_dtype_name(reals[y]));
        }
}

static void test_quantize(void)
{
    for (size_t x = 0; x < FT_COUNT(reals); x++)
        for (int held = 0; held < 2; held++)
            is_int((long long) run_map(FT_OP_QUANTIZE, ft_cpu_quantize, ft_cuda_quantize,
                                       FT_ACT_NONE, reals[x], 0.0f, held ? FT_F32 : FT_I8, 0.05f),
                   0, "quantize: %s to quantized values in %s has the CPU's bits",
                   ft_dtype_name(reals[x]), held ? "float" : "int8");
}

static void test_dequantize(void)
{
    for (int held = 0; held < 2; held++)
        for (size_t y = 0; y < FT_COUNT(reals); y++)
            is_int((long long) run_map(FT_OP_DEQUANTIZE, ft_cpu_dequantize, ft_cuda_dequantize,
                                       FT_ACT_NONE, held ? FT_F32 : FT_I8, 0.037f, reals[y], 0.0f),
                   0, "dequantize: quantized values in %s to %s has the CPU's bits",
                   held ? "float" : "int8", ft_dtype_name(reals[y]));
}

static void test_normalize(void)
{
    for (size_t x = 0; x < FT_COUNT(reals); x++)
        for (size_t y = 0; y < FT_COUNT(reals); y++) {
            size_t wrong = 0;
            for (size_t cols = 1; cols <= 1030; cols += cols < 70 ? 1 : 137) {
                both b;
                begin_case();
                begin(&b, FT_OP_L2_NORMALIZE, ft_cpu_l2_normalize, ft_cuda_l2_normalize);
                float *rows = host_memory(19 * cols * sizeof *rows);
                rng_floats(&numbers, rows, 19 * cols, 1.0);
                memset(rows + 7 * cols, 0, cols * sizeof *rows); /* a row of zeros stays one */
                b.in[0] = matrix_of(rows, 19, cols, reals[x], 0.0f);
                b.out = result_of(19, cols, reals[y], 0.0f);
                wrong += run_both(&b);
            }
            is_int((long long) wrong, 0, "l2_normalize: %s to %s has the CPU's bits",
                   ft_dtype_name(reals[x]), ft_dtype_name(reals[y]));
        }
}

/* A second operand of any float dtype, or quantized. */
static void test_add_of(ft_dtype x, ft_dtype other, float scale)
{
    size_t wrong = 0;
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        for (size_t y = 0; y < FT_COUNT(reals); y++) {
            size_t rows = shapes[i][0], cols = shapes[i][1];
            both b;
            begin_case();
            begin(&b, FT_OP_ADD, ft_cpu_add, ft_cuda_add);
            b.in[0] = special_matrix(rows, cols, x);
            b.in[1] = random_matrix(rows, cols, other, scale);
            b.out = result_of(rows, cols, reals[y], 0.0f);
            wrong += run_both(&b);
        }
    is_int((long long) wrong, 0, "add: %s and %s%s have the CPU's bits in all result dtypes",
           ft_dtype_name(x), scale > 0.0f ? "quantized " : "", ft_dtype_name(other));
}

static void test_add(void)
{
    for (size_t x = 0; x < FT_COUNT(reals); x++) {
        for (size_t other = 0; other < FT_COUNT(reals); other++)
            test_add_of(reals[x], reals[other], 0.0f);
        test_add_of(reals[x], FT_I8, 0.04f);
        test_add_of(reals[x], FT_F32, 0.04f);
    }
}

/* Unaligned arrays: `offset` elements after an aligned address. */
static void test_arrays(size_t offset)
{
    enum { N = 10007 };
    const float scale = 0.03f, inverse = ft_inverse_scale(scale);
    begin_case();
    float *x = host_memory((N + offset) * sizeof *x);
    rng_floats(&numbers, x, N + offset, 2.0);
    const float *device_x = to_device(x, (N + offset) * sizeof *x);
    matrix quantized = result_of(1, N + offset, FT_I8, scale);
    matrix back = result_of(1, N + offset, FT_F32, 0.0f);
    memset(quantized.host.data, 0x5a, offset); /* as the device's was poisoned */
    memset(back.host.data, 0x5a, offset * sizeof *x);
    for (size_t i = offset; i < N + offset; i++) {
        ((int8_t *) quantized.host.data)[i] = ft_quantize(x[i], inverse);
        ((float *) back.host.data)[i] = (float) ((int8_t *) quantized.host.data)[i] * scale;
    }
    int8_t *device_quantized = quantized.device.data;
    float *device_back = back.device.data;
    is_int(ft_cuda_quantize_array(NULL, device_quantized + offset, device_x + offset, inverse, N),
           0, "ft_cuda_quantize_array() accepts an array at an offset of %zu elements", offset);
    is_int(
        ft_cuda_dequantize_array(NULL, device_back + offset, device_quantized + offset, scale, N),
        0, "ft_cuda_dequantize_array() accepts an array at that offset");
    is_int((long long) (count_differences(&quantized) + count_differences(&back)), 0,
           "quantizing and dequantizing an array gives the host's values and writes nothing else");
}

void test_maps(void)
{
    test_activate();
    test_add();
    test_quantize();
    test_dequantize();
    test_normalize();
    for (size_t offset = 0; offset < 5; offset += 2)
        test_arrays(offset);
    test_arrays(3);
}

#else

typedef int ft_nothing_without_cuda;

#endif
