/*
 * batch_invariant-t.c - batch-invariant float GEMMs: a row's result does not depend on the batch.
 *
 * All rows are computed at once, then subsets of them alone: every bit must be the same.  The
 * values are compared with sums in double.  Operands are random; guard bytes surround the results.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/cuda.h"
#include "kernels/half.h"
#include "tests/cuda/gemm_int8.h"
#include "tests/lib/ops/gpu.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 300, GUARD = 256, POISON = 0x5c };

typedef struct form {
    ft_dtype x, w, y;
    bool bias;
    ft_activation activation;
} form;

static const form forms[] = {
    { FT_F16, FT_F16, FT_F32, false, FT_ACT_NONE },
    { FT_F16, FT_F16, FT_F16, true, FT_ACT_NONE },
    { FT_F16, FT_F16, FT_F16, false, FT_ACT_SILU },
    { FT_BF16, FT_BF16, FT_F32, true, FT_ACT_NONE },
    { FT_BF16, FT_BF16, FT_BF16, true, FT_ACT_RELU },
    { FT_F32, FT_F32, FT_F32, true, FT_ACT_NONE },
    { FT_F32, FT_F16, FT_F32, false, FT_ACT_NONE },
    { FT_F16, FT_BF16, FT_F32, true, FT_ACT_NONE },
};

/* ---- Operands ------------------------------------------------------------------------------- */

static uint64_t state = 1442695040888963407u;

static float draw(void)
{
    state = 6364136223846793005u * state + 1u;
    return (float) (int32_t) (state >> 32) * 0x1p-31f;
}

static float value_at(const void *data, ft_dtype dtype, size_t i)
{
    return dtype == FT_F16    ? ft_float_from_f16(((const uint16_t *) data)[i])
           : dtype == FT_BF16 ? ft_float_from_bf16(((const uint16_t *) data)[i])
                              : ((const float *) data)[i];
}

static void *draw_matrix(ft_dtype dtype, size_t n)
{
    void *data = malloc(n * ft_dtype_size(dtype));
    for (size_t i = 0; i < n; i++) {
        float value = draw();
        if (dtype == FT_F16)
            ((uint16_t *) data)[i] = ft_f16_from_float(value);
        else if (dtype == FT_BF16)
            ((uint16_t *) data)[i] = ft_bf16_from_float(value);
        else
            ((float *) data)[i] = value;
    }
    return data;
}

typedef struct problem_of_floats {
    const form *form;
    size_t n, k;
    void *x, *w, *y; /* y: of all rows */
    float *bias;
    void *dev_x, *dev_w, *dev_bias;
} floats;

static floats open_floats(const form *f, size_t n, size_t k)
{
    floats q = { .form = f, .n = n, .k = k };
    q.x = draw_matrix(f->x, ROWS * k);
    q.w = draw_matrix(f->w, n * k);
    q.bias = draw_matrix(FT_F32, n);
    q.y = malloc(ROWS * n * ft_dtype_size(f->y));
    q.dev_x = upload(q.x, ROWS * k * ft_dtype_size(f->x));
    q.dev_w = upload(q.w, n * k * ft_dtype_size(f->w));
    q.dev_bias = upload(q.bias, n * sizeof(float));
    return q;
}

static void close_floats(floats *q)
{
    void *host[] = { q->x, q->w, q->y, q->bias }, *device[] = { q->dev_x, q->dev_w, q->dev_bias };
    for (size_t i = 0; i < sizeof host / sizeof host[0]; i++)
        free(host[i]);
    for (size_t i = 0; i < sizeof device / sizeof device[0]; i++)
        cudaFree(device[i]);
}

/* ---- The GEMM ------------------------------------------------------------------------------- */

/* Rows first .. first + m - 1 of y; false if the kernel failed or wrote out of bounds. */
static bool multiply(const ft_cuda_device_props *props, const floats *q, size_t first, size_t m,
                     void *y)
{
    const form *f = q->form;
    size_t bytes = m * q->n * ft_dtype_size(f->y);
    unsigned char *memory, *all = malloc(bytes + 2 * GUARD);
    if (cudaMalloc((void **) &memory, bytes + 2 * GUARD) != cudaSuccess ||
        cudaMemset(memory, POISON, bytes + 2 * GUARD) != cudaSuccess)
        bail_out("no device memory for y");
    ft_cuda_float_gemm_args p = {
        .m = m,
        .n = q->n,
        .k = q->k,
        .x = (const char *) q->dev_x + first * q->k * ft_dtype_size(f->x),
        .w = q->dev_w,
        .x_dtype = f->x,
        .w_dtype = f->w,
        .y_dtype = f->y,
        .bias = f->bias ? q->dev_bias : NULL,
        .activation = f->activation,
        .y = memory + GUARD,
    };
    int status = ft_cuda_float_gemm_batch_invariant(props, NULL, &p);
    if (status == 0)
        status = (int) cudaDeviceSynchronize();
    if (status != 0)
        diag("%zu rows: %s", m, cudaGetErrorString((cudaError_t) status));
    download(all, memory, bytes + 2 * GUARD);
    bool fine = status == 0;
    for (size_t i = 0; i < GUARD; i++)
        fine = fine && all[i] == POISON && all[GUARD + bytes + i] == POISON;
    memcpy(y, all + GUARD, bytes);
    free(all);
    cudaFree(memory);
    return fine;
}

/*
 * The error bound of float sums against the sum in double.  Each of k additions rounds (tensor
 * cores truncate) at 2^-23 of a partial sum, which is at most the sum of magnitudes: k * 2^-23 of
 * that sum; 4 more for bias and activation, whose slope is below 1.1; and the rounding of y.
 */
static double bound_of(const form *f, size_t k, double magnitude, double value)
{
    double rounding = f->y == FT_F16 ? 0x1p-11 : f->y == FT_BF16 ? 0x1p-8 : 0x1p-24;
    return 1.1 * ((double) k + 4) * 0x1p-23 * magnitude + rounding * fabs(value) + 0x1p-24;
}

/* Compares a sample of the elements with sums in double. */
static bool is_near(const floats *q)
{
    const form *f = q->form;
    for (size_t i = 0; i < ROWS * q->n; i += 1 + (size_t) (fabsf(draw()) * 37.0f)) {
        size_t row = i / q->n, col = i % q->n;
        double sum = f->bias ? (double) q->bias[col] : 0.0, magnitude = fabs(sum);
        for (size_t j = 0; j < q->k; j++) {
            double term = (double) value_at(q->x, f->x, row * q->k + j) *
                          (double) value_at(q->w, f->w, col * q->k + j);
            sum += term;
            magnitude += fabs(term);
        }
        double value = (double) ft_activate(f->activation, (float) sum);
        double found = (double) value_at(q->y, f->y, i);
        if (!(fabs(found - value) <= bound_of(f, q->k, magnitude, value))) {
            diag("row %zu, column %zu: %.9g instead of %.9g", row, col, found, value);
            return false;
        }
    }
    return true;
}

static bool is_batch_invariant(const ft_cuda_device_props *props, const floats *q)
{
    static const size_t few[] = { 1, 2, 3, 5, 8, 9, 16, 17, 32, 33, 64, 65, 128, 130, 256, 299 };
    size_t stride = q->n * ft_dtype_size(q->form->y);
    char *y = malloc(ROWS * stride);
    bool same = true;
    for (size_t i = 0; i < sizeof few / sizeof few[0] && same; i++) {
        size_t m = few[i], first = (size_t) (fabsf(draw()) * (float) (ROWS - m));
        same = multiply(props, q, first, m, y) &&
               memcmp(y, (const char *) q->y + first * stride, m * stride) == 0;
        if (!same)
            diag("%zu rows from row %zu on differ from the same rows in a batch of %d", m, first,
                 (int) ROWS);
    }
    free(y);
    return same;
}

static void test_form(const ft_cuda_device_props *props, const form *f, size_t n, size_t k)
{
    floats q = open_floats(f, n, k);
    bool fine = multiply(props, &q, 0, ROWS, q.y);
    ok(fine && is_near(&q),
       "batch-invariant GEMM %zu x %zu, %s x %s to %s, is within the error bound of float sums", n,
       k, ft_dtype_name(f->x), ft_dtype_name(f->w), ft_dtype_name(f->y));
    ok(fine && is_batch_invariant(props, &q),
       "batch-invariant GEMM gives a row the same bits in a batch of any size");
    close_floats(&q);
}

int main(void)
{
    static const size_t shape[][2] = { { 1, 8 },       { 16, 32 },    { 100, 40 },    { 33, 100 },
                                       { 520, 264 },   { 130, 7 },    { 1000, 1056 }, { 129, 4096 },
                                       { 17000, 64 },  { 384, 1000 }, { 64, 512 },    { 512, 512 },
                                       { 1024, 1024 }, { 4100, 136 }, { 2050, 264 } };
    ft_cuda_device_props props = need_gpu();
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
        for (size_t j = 0; j < sizeof forms / sizeof forms[0]; j++)
            test_form(&props, &forms[j], shape[i][0], shape[i][1]);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
