/*
 * fill_normal-t.c - normally distributed numbers from cuRAND, and weights made of them.
 *
 * The host generator needs no GPU.  With one, its numbers are the oracle of the device generator.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/host/device.h"
#include "runtime/mem.h"
#include "runtime/tools/synthetic/synthetic.h"

#include <curand.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 20 };
static const size_t block = 4 << 20; /* numbers of a call of cuRAND: fill_normal.c */

static void fill(ft_device *device, float *out, size_t count, float mean, float deviation,
                 uint64_t seed)
{
    ft_error err;
    if (ft_backend_cuda.fill_normal(device, out, count, mean, deviation, seed, &err) != FT_OK)
        bail_out("%s", err.text);
}

static float *numbers(size_t count)
{
    float *x = ft_calloc(count, sizeof *x);
    if (x == NULL)
        bail_out("no memory");
    return x;
}

/* ---- Distribution ------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    float x = *(const float *) a, y = *(const float *) b;
    return (x > y) - (x < y);
}

/* Kolmogorov-Smirnov statistic: the largest distance to the distribution function. */
static double max_distance(const float *sorted, size_t n, double mean, double deviation)
{
    double largest = 0.0, count = (double) n;
    for (size_t i = 0; i < n; i++) {
        double p = 0.5 * erfc((mean - (double) sorted[i]) / (deviation * sqrt(2.0)));
        largest = fmax(largest, fmax(p - (double) i / count, (double) (i + 1) / count - p));
    }
    return largest;
}

static void test_distribution(void)
{
    float *x = numbers(N);
    double sum = 0.0, squares = 0.0, product = 0.0;
    fill(NULL, x, N, 1.0f, 0.5f, 42);
    for (size_t i = 0; i < N; i++) {
        double z = ((double) x[i] - 1.0) / 0.5;
        sum += z;
        squares += z * z;
        product += i > 0 ? z * ((double) x[i - 1] - 1.0) / 0.5 : 0.0;
    }
    /* 5 times the standard errors of these means of N numbers: 1, sqrt(2) and 1 in 1024. */
    near(sum / N, 0.0, 0.0049, "a million numbers of cuRAND have the requested mean");
    near(squares / N, 1.0, 0.0069, "a million numbers of cuRAND have the requested variance");
    near(product / N, 0.0, 0.0049, "successive numbers of cuRAND are uncorrelated");
    qsort(x, N, sizeof *x, compare);
    /* A normal sample exceeds 1.95 / sqrt(N) once in a thousand times. */
    double distance = max_distance(x, N, 1.0, 0.5);
    ok(distance < 1.95 / sqrt(N),
       "a million numbers of cuRAND pass the Kolmogorov-Smirnov test of their distribution");
    diag("the statistic is %.6f, the bound %.6f", distance, 1.95 / sqrt(N));
    free(x);
}

/* ---- Seeds and counts --------------------------------------------------------------------- */

static void test_seeds(void)
{
    float *a = numbers(N), *b = numbers(N);
    size_t equal = 0;
    fill(NULL, a, N, 0.0f, 1.0f, 7);
    fill(NULL, b, N, 0.0f, 1.0f, 7);
    ok(memcmp(a, b, N * sizeof *a) == 0, "the same seed gives the same numbers again");
    fill(NULL, b, N, 0.0f, 1.0f, (uint64_t) 7 << 32);
    for (size_t i = 0; i < N; i++)
        equal += a[i] == b[i];
    ok(equal < N / 1000, "seeds that differ in their upper half give other numbers");
    free(a);
    free(b);
}

static void test_counts(void)
{
    const size_t counts[] = { 0, 1, 2, 1001, block - 1, block, block + 1 };
    enum { GUARD = 4 };
    float *all = numbers(block + 2), *x = numbers(block + 2 + GUARD);
    fill(NULL, all, block + 2, 0.0f, 1.0f, 9);
    for (size_t i = 0; i < FT_COUNT(counts); i++) {
        size_t n = counts[i];
        bool untouched = true;
        for (size_t j = n; j < n + GUARD; j++)
            x[j] = 123.0f;
        fill(NULL, x, n, 0.0f, 1.0f, 9);
        for (size_t j = n; j < n + GUARD; j++)
            untouched = untouched && x[j] == 123.0f;
        ok(memcmp(x, all, n * sizeof *x) == 0,
           "%zu numbers are the first of any larger count with the same seed", n);
        ok(untouched, "a request for %zu numbers writes no more than these", n);
    }
    free(all);
    free(x);
}

/* ---- Weights ------------------------------------------------------------------------------ */

static ft_weight make_weight(ft_dtype dtype, uint64_t key, int threads)
{
    /* Two blocks and a half of rows whose width divides no block. */
    ft_weight weight = { .name = "w", .rows = 2500, .cols = 4099, .dtype = dtype };
    ft_distribution how = { key, 1.0f, 0.5f, &ft_backend_cuda, NULL };
    ft_error err;
    weight.layout = dtype == FT_I8 ? FT_COL4_4R2_8C : FT_ROW;
    if (ft_synthetic_weight_fill(&weight, &how, threads, &err) != FT_OK)
        bail_out("%s", err.text);
    return weight;
}

static void test_weights(void)
{
    ft_weight a = make_weight(FT_F32, 7, 1), b = make_weight(FT_F32, 7, 3),
              quantized = make_weight(FT_I8, 7, 2);
    const float *x = a.data;
    const int8_t *code = quantized.data;
    size_t cells = a.rows * a.cols, far = 0;
    double sum = 0.0;
    ok(memcmp(a.data, b.data, cells * sizeof *x) == 0,
       "weights of cuRAND do not depend on the number of threads");
    for (size_t row = 0; row < a.rows; row++)
        for (size_t col = 0; col < a.cols; col++) {
            int c = code[ft_offset(FT_COL4_4R2_8C, row, col, a.rows, a.cols)];
            float value = x[row * a.cols + col];
            if (!(fabsf((float) c * quantized.scale[row] - value) <= 0.501f * quantized.scale[row]))
                far++;
            sum += (double) value;
        }
    is_int((long long) far, 0, "int8 weights of cuRAND approximate the float weights of their key");
    /* 5 times the standard error of this mean of 10 million values, 0.00016. */
    near(sum / (double) cells, 1.0, 0.0008, "weights of cuRAND have the requested mean");
    ft_synthetic_weight_free(&a);
    ft_synthetic_weight_free(&b);
    ft_synthetic_weight_free(&quantized);
}

/* ---- Errors ------------------------------------------------------------------------------- */

static void test_texts(void)
{
    static const int statuses[] = {
        CURAND_STATUS_VERSION_MISMATCH,
        CURAND_STATUS_NOT_INITIALIZED,
        CURAND_STATUS_ALLOCATION_FAILED,
        CURAND_STATUS_TYPE_ERROR,
        CURAND_STATUS_OUT_OF_RANGE,
        CURAND_STATUS_LENGTH_NOT_MULTIPLE,
        CURAND_STATUS_DOUBLE_PRECISION_REQUIRED,
        CURAND_STATUS_LAUNCH_FAILURE,
        CURAND_STATUS_PREEXISTING_FAILURE,
        CURAND_STATUS_INITIALIZATION_FAILED,
        CURAND_STATUS_ARCH_MISMATCH,
        CURAND_STATUS_INTERNAL_ERROR,
    };
    const ft_cuda_device_props props = { .index = 3 };
    const char *unknown = ft_cuda_explain_curand(12345);
    bool distinct = true;
    ft_error err;
    for (size_t i = 0; i < FT_COUNT(statuses); i++)
        for (size_t j = 0; j <= i; j++) {
            const char *text = ft_cuda_explain_curand(statuses[i]);
            const char *other = j < i ? ft_cuda_explain_curand(statuses[j]) : unknown;
            distinct = distinct && strcmp(text, other) != 0;
        }
    ok(distinct, "every status of cuRAND has a text of its own");
    is_int(ft_cuda_fail_curand(&err, &props, CURAND_STATUS_ALLOCATION_FAILED, "random numbers"),
           FT_ENOMEM, "a failed allocation of cuRAND returns FT_ENOMEM");
    is_str(err.text, "cuda:3: random numbers: cuRAND status 102: out of memory",
           "the message for an error of cuRAND names the device, the purpose and the status");
    is_int(ft_cuda_fail_curand(&err, NULL, 12345, "random numbers"), FT_EDEVICE,
           "an unknown status of cuRAND returns FT_EDEVICE");
    is_str(err.text, "cuda: random numbers: cuRAND status 12345: unknown error of the library",
           "the message for an unknown status of cuRAND has its number");
}

static void test_missing_device(void)
{
    ft_device device = { .props = { .index = 999 } };
    ft_distribution how = { 7, 0.0f, 1.0f, &ft_backend_cuda, &device };
    ft_weight weight = { .name = "w", .rows = 3, .cols = 5, .dtype = FT_F32, .layout = FT_ROW };
    ft_error err;
    is_int(ft_synthetic_weight_fill(&weight, &how, 2, &err), FT_EDEVICE,
           "weights from a device that does not exist are FT_EDEVICE");
    has(err.text, "cuda:999: random numbers: ", "the message names the device that does not exist");
    ok(weight.data == NULL, "a weight whose values could not be generated has no data");
}

/* ---- Device ------------------------------------------------------------------------------- */

static void test_device(void)
{
    ft_device *device;
    ft_error err;
    if (ft_backend_cuda.open(&device, 0, &err) != FT_OK) {
        skip(3, "%s", err.text);
        return;
    }
    size_t n = block + 1001;
    float *host = numbers(n), *first = numbers(n), *again = numbers(n);
    double error = 0.0;
    fill(NULL, host, n, 0.0f, 1.0f, 7);
    fill(device, first, n, 0.0f, 1.0f, 7);
    fill(device, again, 17, 0.0f, 1.0f, 8);
    ok(memcmp(again, first, 17 * sizeof *first) != 0, "another seed gives other numbers of a GPU");
    fill(device, again, n, 0.0f, 1.0f, 7);
    ok(memcmp(again, first, n * sizeof *first) == 0,
       "the same seed gives the same numbers of a GPU again");
    for (size_t i = 0; i < n; i++)
        error = fmax(error, fabs((double) first[i] - (double) host[i]));
    /* The libraries of host and device round log(), sin() and cos() differently. */
    near(error, 0.0, 1e-4, "a GPU gives the numbers of the host generator");
    ft_backend_cuda.close(device);
    free(host);
    free(first);
    free(again);
}

int main(void)
{
    test_distribution();
    test_seeds();
    test_counts();
    test_weights();
    test_texts();
    test_missing_device();
    test_device();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA, and so no cuRAND");
}

#endif
