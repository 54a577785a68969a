/*
 * ops-linear.c - linear on the device: int8 and fake-quantized against the CPU bit by bit, floats
 * against the formula in double; and fused linears.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/ops/ops.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/oracle.h"
#include "tests/tap/tap.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Floats ------------------------------------------------------------------------------- */

/* y = act(x [m, k] . w [n, k]^T + b) */
typedef struct shape {
    size_t m, n, k;
    ft_activation activation;
    bool bias;
} shape;

static const shape shapes[] = {
    { 1, 1, 1, FT_ACT_NONE, false },          { 3, 5, 7, FT_ACT_RELU, true },
    { 17, 70, 33, FT_ACT_TANH, true },        { 130, 768, 768, FT_ACT_GELU, true },
    { 64, 2, 768, FT_ACT_NONE, true },        { 40, 320, 640, FT_ACT_SILU, false },
    { 9, 384, 1536, FT_ACT_GELU_TANH, true },
};

/* The dtypes that a float linear supports; the last two convert their weights. */
static const struct {
    ft_dtype x, w, y;
} mixes[] = {
    { FT_F32, FT_F32, FT_F32 },    { FT_F16, FT_F16, FT_F16 },   { FT_F16, FT_F16, FT_F32 },
    { FT_BF16, FT_BF16, FT_BF16 }, { FT_BF16, FT_BF16, FT_F32 }, { FT_F32, FT_F16, FT_F32 },
    { FT_F32, FT_BF16, FT_F32 },
};

static double rounding(ft_dtype dtype)
{
    return dtype == FT_F16 ? 0x1p-11 : dtype == FT_BF16 ? 0x1p-8 : 0x1p-24;
}

/* The same values in double. */
static double *doubles(const float *x, size_t n)
{
    double *out = host_memory(n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        out[i] = (double) x[i];
    return out;
}

static double *weight_doubles(const ft_weight *w)
{
    double *out = host_memory(w->rows * w->cols * sizeof *out);
    for (size_t i = 0; i < w->rows * w->cols; i++)
        out[i] = w->dtype == FT_F16    ? oracle_f16(((const uint16_t *) w->data)[i])
                 : w->dtype == FT_BF16 ? oracle_bf16(((const uint16_t *) w->data)[i])
                                       : (double) ((const float *) w->data)[i];
    return out;
}

/* The number of results that exceed the error bound. */
static size_t check_float(const both *b)
{
    size_t m = b->in[0].host.rows, n = b->weight[0].rows, k = b->weight[0].cols, wrong = 0;
    const char *name = ft_activation_name(b->op.attr.activation);
    double *y = host_memory(m * n * sizeof *y), *size = host_memory(m * n * sizeof *size);
    double *bias = b->weight[1].data == NULL ? NULL : weight_doubles(&b->weight[1]);
    ft_dtype dtype = b->out.device.dtype;
    void *found = host_memory(m * n * ft_dtype_size(dtype));
    oracle_linear(y, size, doubles(b->in[0].host.data, m * k), weight_doubles(&b->weight[0]), bias,
                  m, n, k);
    from_device(found, b->out.device.data, m * n * ft_dtype_size(dtype));
    for (size_t i = 0; i < m * n; i++) {
        double real = dtype == FT_F16    ? oracle_f16(((uint16_t *) found)[i])
                      : dtype == FT_BF16 ? oracle_bf16(((uint16_t *) found)[i])
                                         : (double) ((float *) found)[i];
        /* Float sums in any order, which tensor cores truncate instead of rounding; the sum is
         * rounded to the dtype, and the result again; no activation is steeper than 1.13. */
        double sum = bias == NULL ? y[i] : y[i] - bias[i % n];
        double exact = oracle_activation(name, y[i]);
        double bound =
            1.13 * (2.0 * (double) (k + 2) * 0x1p-24 * size[i] + rounding(dtype) * fabs(sum)) +
            rounding(dtype) * fabs(exact) + 2e-6 + 0x1p-24;
        wrong += isnan(real) || fabs(real - exact) > bound;
    }
    return wrong;
}

static size_t float_case(const shape *s, ft_rows per, ft_dtype x, ft_dtype w, ft_dtype y)
{
    both b;
    begin_case();
    begin(&b, FT_OP_LINEAR, ft_cpu_linear, ft_cuda_linear);
    b.op.attr.activation = s->activation;
    b.in[0] = random_matrix(s->m, s->k, x, 0.0f);
    b.device.per = per;
    add_weight(&b, 0, s->n, s->k, w);
    if (s->bias)
        add_weight(&b, 1, 1, s->n, FT_F32);
    b.out = result_of(s->m, s->n, y, 0.0f);
    if (run_device(&b) != 0 || cudaDeviceSynchronize() != cudaSuccess)
        bail_out("linear fails: %s", cudaGetErrorString(cudaGetLastError()));
    size_t wrong = check_float(&b);
    if (wrong > 0)
        diag("%zu x %zu x %zu: %zu elements are wrong", s->m, s->n, s->k, wrong);
    return wrong;
}

static void test_float(void)
{
    const shape tall = { 3, 5000, 1100, FT_ACT_NONE, true }; /* converted in two blocks */
    for (size_t i = 0; i < FT_COUNT(mixes); i++) {
        size_t wrong = float_case(&tall, FT_TOKENS, mixes[i].x, mixes[i].w, mixes[i].y);
        for (size_t s = 0; s < FT_COUNT(shapes); s++)
            wrong += float_case(&shapes[s], FT_TOKENS, mixes[i].x, mixes[i].w, mixes[i].y);
        is_int((long long) wrong, 0,
               "linear: %s times %s to %s is within the error bound in %zu shapes",
               ft_dtype_name(mixes[i].x), ft_dtype_name(mixes[i].w), ft_dtype_name(mixes[i].y),
               FT_COUNT(shapes) + 1);
    }
}

/* ---- Floats of sequences -------------------------------------------------------------------- */

static void test_few(void)
{
    static const ft_dtype dtypes[] = { FT_F32, FT_F16, FT_BF16 };
    for (size_t x = 0; x < FT_COUNT(dtypes); x++)
        for (size_t w = 0; w < FT_COUNT(dtypes); w++) {
            size_t wrong = 0;
            for (size_t s = 0; s < FT_COUNT(shapes); s++)
                wrong += float_case(&shapes[s], FT_SEQUENCES, dtypes[x], dtypes[w], FT_F32) +
                         float_case(&shapes[s], FT_SEQUENCES, dtypes[x], dtypes[w], dtypes[x]);
            is_int((long long) wrong, 0,
                   "linear: one row for each sequence, %s times %s, is within the error bound in "
                   "%zu shapes",
                   ft_dtype_name(dtypes[x]), ft_dtype_name(dtypes[w]), FT_COUNT(shapes));
        }
}

/* Rows computed alone have the bits of the batch, and nothing past them is written. */
static void test_alone(size_t m, size_t n, size_t k, ft_dtype dtype)
{
    both b;
    size_t wrong = 0, size = ft_dtype_size(dtype);
    begin_case();
    begin(&b, FT_OP_LINEAR, ft_cpu_linear, ft_cuda_linear);
    b.op.attr.activation = FT_ACT_TANH;
    b.in[0] = random_matrix(m, k, FT_F32, 0.0f);
    b.device.per = FT_SEQUENCES;
    add_weight(&b, 0, n, k, FT_F16);
    add_weight(&b, 1, 1, n, FT_F32);
    b.out = result_of(m, n, dtype, 0.0f);
    is_int(run_device(&b), 0, "linear: a batch of %zu sequences launches", m);
    char *all = host_memory(m * n * size), *alone = host_memory(m * n * size);
    from_device(all, b.out.device.data, m * n * size);
    char *x = b.in[0].device.data;
    for (size_t row = 0; row < m; row++) {
        both one = b;
        one.in[0].device.rows = one.out.device.rows = 1;
        one.in[0].device.data = x + row * k * sizeof(float);
        one.out.device.data = device_memory(2 * n * size);
        wrong += run_device(&one) != 0;
        from_device(alone, one.out.device.data, 2 * n * size);
        wrong += memcmp(alone, all + row * n * size, n * size) != 0;
        for (size_t i = n * size; i < 2 * n * size; i++)
            wrong += alone[i] != alone[2 * n * size - 1];
    }
    is_int((long long) wrong, 0,
           "linear: a sequence alone has the bytes that it has in a batch of %zu", m);
}

/* ---- Fused float linears -------------------------------------------------------------------- */

enum { COUNT = 3 };

/* Three linears whose weights and results are parts of one matrix; `gap`: rows between results. */
static ft_cuda_group open_group(both *b, ft_dtype dtype, size_t m, size_t n, size_t k, size_t gap,
                                bool batch_invariant)
{
    both all;
    size_t size = ft_dtype_size(dtype);
    ft_cuda_group group = { .kind = FT_FUSION_LINEAR,
                            .linears = COUNT,
                            .contiguous = true,
                            .result_stride = (m + gap) * n * size };
    begin_case();
    begin(&all, FT_OP_LINEAR, ft_cpu_linear, ft_cuda_linear);
    all.device_batch.batch_invariant = batch_invariant;
    all.in[0] = random_matrix(m, k, dtype, 0.0f);
    add_weight(&all, 0, COUNT * n, k, dtype);
    all.out = result_of(COUNT * (m + gap), n, dtype, 0.0f);
    for (size_t i = 0; i < COUNT; i++) {
        b[i] = all;
        b[i].op.attr.activation = FT_ACT_GELU;
        b[i].weight[0].rows = b[i].device_weight[0].rows = n;
        b[i].weight[0].data = (const char *) all.weight[0].data + i * n * k * size;
        b[i].device_weight[0].data = (const char *) all.device_weight[0].data + i * n * k * size;
        add_weight(&b[i], 1, 1, n, FT_F32);
        b[i].out.device.data = (char *) all.out.device.data + i * (m + gap) * n * size;
        b[i].out.device.rows = m;
        group.linear[i] = device_args(&b[i]);
    }
    return group;
}

/* The number of wrong elements in fused linears that have run. */
static size_t check_group(const both *b)
{
    size_t wrong = 0;
    if (cudaDeviceSynchronize() != cudaSuccess)
        bail_out("fused linears fail: %s", cudaGetErrorString(cudaGetLastError()));
    for (size_t i = 0; i < COUNT; i++)
        wrong += check_float(&b[i]);
    return wrong;
}

static void test_float_group(ft_dtype dtype, size_t m, size_t n, size_t k, size_t gap)
{
    both b[COUNT];
    ft_cuda_group group = open_group(b, dtype, m, n, k, gap, false), part;
    is_int(ft_cuda_group_cublas(&group), 0, "linear: three linears in %s are fused into one GEMM",
           ft_dtype_name(dtype));
    is_int((long long) check_group(b), 0, "linear: the three linears are within the error bound");
    const ft_cuda_fused_kernel *kernel = ft_cuda_fused_kernel_for(&group, &part);
    bool wgmma = props.has_wgmma && dtype != FT_F32 && k % 8 == 0;
    ok(kernel != NULL && kernel->launch == (wgmma ? ft_cuda_group_f16 : ft_cuda_group_cublas),
       "linear: the table of fused kernels selects the %s GEMM for %s and a k of %zu",
       wgmma ? "wgmma" : "cuBLAS", ft_dtype_name(dtype), k);
    if (wgmma) {
        group = open_group(b, dtype, m, n, k, gap, false);
        is_int(ft_cuda_group_f16(&group), 0, "linear: three linears in %s run as one wgmma GEMM",
               ft_dtype_name(dtype));
        is_int((long long) check_group(b), 0, "linear: its results are within the error bound");
    }
    group.result_stride = 0;
    ok((ft_cuda_fused_kernel_for(&group, &part) != NULL) == wgmma,
       "linear: %s fused kernel supports results that are not equally spaced",
       wgmma ? "one" : "no");
    is_int(ft_cuda_group_cublas(&group), cudaErrorNotSupported,
           "linear: the cuBLAS GEMM refuses results that are not equally spaced");
}

/* Of batch-invariant plans: only where one kernel supports all. */
static void test_batch_invariant_group(ft_dtype dtype, size_t m, size_t n, size_t k)
{
    both b[COUNT];
    bool together = props.has_wgmma && dtype != FT_F32 && k % 8 == 0;
    ft_cuda_group group = open_group(b, dtype, m, n, k, 1, true), part;
    ok((ft_cuda_fused_kernel_for(&group, &part) != NULL) == together,
       "the table has %s kernel for batch-invariant linears in %s of depth %zu",
       together ? "a" : "no", ft_dtype_name(dtype), k);
    int status = ft_cuda_group_f16(&group);
    is_int(status, together ? 0 : cudaErrorNotSupported,
           "linear: three batch-invariant linears in %s with a k of %zu%s", ft_dtype_name(dtype), k,
           together ? " are fused into one GEMM" : " are not fused");
    for (size_t i = 0; i < COUNT && !together; i++)
        status = run_device(&b[i]);
    is_int((long long) check_group(b), 0, "linear: the three linears are within the error bound");
}

/* ---- Quantized ---------------------------------------------------------------------------- */

static const float x_scale = 0.02f;

/* Quantized weights with scales on host and device: int8 in COL4_4R2_8C, or fake-quantized. */
static void add_int8_weight(both *b, size_t n, size_t k, bool faked)
{
    size_t bytes = faked ? n * k * sizeof(float) : ft_layout_bytes(FT_COL4_4R2_8C, n, k);
    char *data = host_memory(bytes);
    float *scale = host_memory(n * sizeof *scale);
    for (size_t i = 0; i < bytes; i++)
        data[i] = 0;
    for (size_t row = 0; row < n; row++) {
        scale[row] = (float) rng_uniform(&numbers, 1e-4, 2e-3);
        for (size_t col = 0; col < k; col++) {
            int code = (int) rng_below(&numbers, 255) - 127;
            if (faked)
                ((float *) (void *) data)[row * k + col] = (float) code;
            else
                data[ft_offset(FT_COL4_4R2_8C, row, col, n, k)] = (char) code;
        }
    }
    b->weight[0] = (ft_weight){
        .rows = n,
        .cols = k,
        .dtype = faked ? FT_F32 : FT_I8,
        .layout = faked ? FT_ROW : FT_COL4_4R2_8C,
        .scale = scale,
        .data = data,
    };
    b->device_weight[0] = b->weight[0];
    b->device_weight[0].data = to_device(data, bytes);
    b->device_weight[0].scale = to_device(scale, n * sizeof *scale);
}

static size_t int8_case(const shape *s, bool faked, bool to_quantized)
{
    both b;
    ft_dtype dtype = faked ? FT_F32 : FT_I8;
    begin_case();
    begin(&b, FT_OP_LINEAR, ft_cpu_linear, ft_cuda_linear);
    b.op.attr.activation = s->activation == FT_ACT_GELU ? FT_ACT_GELU_APPROX : s->activation;
    b.in[0] = random_matrix(s->m, s->k, dtype, x_scale);
    add_int8_weight(&b, s->n, s->k, faked);
    if (s->bias)
        add_weight(&b, 1, 1, s->n, FT_F32);
    *(to_quantized ? &b.quantized : &b.out) =
        result_of(s->m, s->n, to_quantized ? dtype : FT_F32, to_quantized ? 0.03f : 0.0f);
    return run_both(&b);
}

static void test_quantized(void)
{
    for (int kind = 0; kind < 4; kind++) {
        size_t wrong = 0;
        for (size_t s = 0; s < FT_COUNT(shapes); s++)
            wrong += int8_case(&shapes[s], kind & 1, kind & 2);
        is_int((long long) wrong, 0,
               "linear: quantized values in %s to %s have the CPU's bits in %zu shapes",
               kind & 1 ? "float" : "int8", kind & 2 ? "quantized values" : "float values",
               FT_COUNT(shapes));
    }
}

/* Three int8 linears, whose parameters are contiguous as a model's are after its upload. */
static void test_int8_group(size_t m, size_t n, size_t k)
{
    both b[COUNT];
    ft_cuda_group group = { .kind = FT_FUSION_LINEAR, .linears = COUNT, .contiguous = true };
    size_t part = ft_cuda_prepacked_bytes(n, k), wrong = 0;
    begin_case();
    char *tiles = device_memory(COUNT * part);
    float *scales = device_memory(COUNT * n * sizeof *scales);
    matrix x = random_matrix(m, k, FT_I8, x_scale);
    for (size_t i = 0; i < COUNT; i++) {
        begin(&b[i], FT_OP_LINEAR, ft_cpu_linear, ft_cuda_linear);
        b[i].in[0] = x;
        b[i].quantized = result_of(m, n, FT_I8, 0.02f + 0.01f * (float) i);
        add_int8_weight(&b[i], n, k, false);
        ft_weight *weight = &b[i].device_weight[0];
        cudaMemcpy(scales + i * n, weight->scale, n * sizeof *scales, cudaMemcpyDeviceToDevice);
        wrong += ft_cuda_prepack(NULL, (int8_t *) tiles + i * part, weight->data, n, k) != 0;
        weight->scale = scales + i * n;
        weight->prepacked = tiles + i * part;
        group.linear[i] = device_args(&b[i]);
    }
    int status = ft_cuda_group_int8(&group);
    is_int(status, props.has_wgmma ? 0 : cudaErrorNotSupported,
           "linear: fusing three int8 linears into one GEMM%s",
           props.has_wgmma ? " succeeds" : " is refused on this device");
    if (cudaDeviceSynchronize() != cudaSuccess)
        bail_out("fused linears fail: %s", cudaGetErrorString(cudaGetLastError()));
    for (size_t i = 0; i < COUNT && status == 0; i++) {
        run_host(&b[i]);
        wrong += count_differences(&b[i].quantized);
    }
    is_int((long long) wrong, 0,
           "linear: three int8 linears of %zu x %zu x %zu have the CPU's bits", m, n, k);
    group.contiguous = false;
    is_int(ft_cuda_group_int8(&group), cudaErrorNotSupported,
           "linear: linears whose weights are not contiguous are not fused");
}

void test_linear(void)
{
    test_float();
    test_few();
    test_alone(41, 770, 768, FT_F32);
    test_alone(7, 3, 1029, FT_BF16);
    test_float_group(FT_F32, 37, 96, 64, 0);
    test_float_group(FT_F16, 130, 768, 768, 5);
    test_float_group(FT_F16, 384, 256, 2048, 0);
    test_float_group(FT_BF16, 5, 16, 24, 1);
    test_batch_invariant_group(FT_F16, 70, 96, 512);
    test_batch_invariant_group(FT_BF16, 3, 40, 24);
    test_batch_invariant_group(FT_F16, 5, 16, 12);
    test_batch_invariant_group(FT_F32, 9, 33, 64);
    test_quantized();
    test_int8_group(70, 64, 64);
    test_int8_group(1111, 768, 768);
}

#else

typedef int ft_nothing_without_cuda;

#endif
