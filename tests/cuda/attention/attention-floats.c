/*
 * attention-floats.c - f32, f16 and bf16 attention against double precision; calibration counters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/attention/attention.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Between -1 and 1. */
static float draw_float(void)
{
    return (float) (int32_t) draw() * 0x1p-31f;
}

/* ---- Floats ---------------------------------------------------------------------------------- */

static float half_to_float(uint16_t bits, ft_dtype dtype)
{
    return dtype == FT_F16 ? ft_float_from_f16(bits) : ft_float_from_bf16(bits);
}

/* Random values, rounded to the dtype; the stored form goes to *device. */
static double *make_floats(size_t n, ft_dtype dtype, float size, void **device)
{
    double *exact = must_have(n * sizeof *exact);
    float *values = must_have(n * sizeof *values);
    uint16_t *halves = must_have(n * sizeof *halves);
    for (size_t i = 0; i < n; i++) {
        values[i] = draw_float() * size;
        halves[i] = dtype == FT_F16 ? ft_f16_from_float(values[i]) : ft_bf16_from_float(values[i]);
        exact[i] = dtype == FT_F32 ? (double) values[i] : (double) half_to_float(halves[i], dtype);
    }
    *device =
        dtype == FT_F32 ? upload(values, n * sizeof *values) : upload(halves, n * sizeof *halves);
    free(values);
    free(halves);
    return exact;
}

typedef struct row {
    size_t first, length, query, column; /* `query` and `first` count rows of the batch */
} row;

/*
 * The context of one query in `y`, its probabilities in `p`.  Returns the largest sum of p |v|,
 * because the context of one column may itself be close to zero.
 */
static double exact_row(double *y, double *p, const batch *b, const row *r, double *const x[3],
                        double scale)
{
    size_t dim = (size_t) b->head_size;
    const double *q = x[0] + r->query * b->cols + r->column;
    double most = -(double) INFINITY, sum = 0.0;
    for (size_t key = 0; key < r->length; key++) {
        const double *k = x[1] + (r->first + key) * b->cols + r->column;
        p[key] = 0.0;
        for (size_t i = 0; i < dim; i++)
            p[key] += q[i] * k[i];
        p[key] *= scale;
        most = fmax(most, p[key]);
    }
    for (size_t key = 0; key < r->length; key++)
        sum += p[key] = exp(p[key] - most);
    double largest = 0.0;
    for (size_t key = 0; key < r->length; key++)
        p[key] /= sum;
    for (size_t i = 0; i < dim; i++) {
        double size = 0.0;
        y[i] = 0.0;
        for (size_t key = 0; key < r->length; key++) {
            double part = p[key] * x[2][(r->first + key) * b->cols + r->column + i];
            y[i] += part;
            size += fabs(part);
        }
        largest = fmax(largest, size);
    }
    return largest;
}

static double found_at(const void *y, ft_dtype dtype, size_t i)
{
    return dtype == FT_F32 ? (double) ((const float *) y)[i]
                           : (double) half_to_float(((const uint16_t *) y)[i], dtype);
}

/* The worst error of a context, relative to its row's largest sum of magnitudes. */
static double worst_error(const batch *b, double *const x[3], double scale, const void *found,
                          ft_dtype dtype)
{
    double *y = must_have((size_t) b->head_size * sizeof *y), worst = 0.0;
    double *p = must_have(b->longest * sizeof *p);
    for (size_t sequence = 0; sequence < b->sequences; sequence++)
        for (int32_t query = b->start[sequence]; query < b->start[sequence + 1]; query++)
            for (size_t column = 0; column < b->cols; column += (size_t) b->head_size) {
                row r = { (size_t) b->start[sequence],
                          (size_t) (b->start[sequence + 1] - b->start[sequence]), (size_t) query,
                          column };
                double error = 0.0, largest = exact_row(y, p, b, &r, x, scale);
                for (size_t i = 0; i < (size_t) b->head_size; i++) {
                    double z = found_at(found, dtype, (size_t) query * b->cols + column + i);
                    error = z == z ? fmax(error, fabs(z - y[i])) : (double) INFINITY;
                }
                worst = fmax(worst, error / largest);
            }
    free(y);
    free(p);
    return worst;
}

static ft_cuda_attention_args described(const batch *b, ft_dtype dtype, void *const x[3], void *y,
                                        float scale)
{
    return (ft_cuda_attention_args){ .blocks = b->device_blocks,
                                     .n_query_tiles = b->n_query_tiles,
                                     .heads = b->heads,
                                     .head_size = b->head_size,
                                     .dtype = dtype,
                                     .tokens = b->tokens,
                                     .sequences = b->sequences,
                                     .q = x[0],
                                     .k = x[1],
                                     .v = x[2],
                                     .y = y,
                                     .score_scale = scale };
}

/*
 * f16 and bf16 round probabilities and contexts to 11 and 8 bits, an error of at most 2 * 2^-11 and
 * 2 * 2^-8 of the sum of magnitudes; twice that allows for the exponentials.
 */
static void test_floats(const shape *s, ft_dtype dtype)
{
    static const double tolerance[] = { [FT_F32] = 1e-5, [FT_F16] = 2e-3, [FT_BF16] = 2e-2 };
    batch b;
    double *x[3];
    void *device[3];
    batch_init(&b, s);
    size_t n = b.tokens * b.cols, bytes = n * (dtype == FT_F32 ? 4 : 2);
    float scale = 6.0f / sqrtf((float) b.head_size);
    for (int i = 0; i < 3; i++)
        x[i] = make_floats(n, dtype, 1.0f, &device[i]);
    void *y = upload(NULL, bytes);
    ft_cuda_attention_args a = described(&b, dtype, device, y, scale);
    int status = ft_cuda_attention_launch(&props, NULL, &a);
    must(cudaDeviceSynchronize(), "attention");
    uint8_t *found = download(y, bytes + GUARD);
    bool kept = true;
    for (size_t i = 0; i < GUARD; i++)
        kept &= found[bytes + i] == POISON;
    double worst = worst_error(&b, x, scale, found, dtype);
    const char *name = dtype == FT_F32 ? "f32" : dtype == FT_F16 ? "f16" : "bf16";
    ok(status == 0 && kept && worst <= tolerance[dtype],
       "%s attention with %s has an error of %.1e, within the tolerance of its dtype", name,
       name_of(s), worst);
    free(found);
    cudaFree(y);
    for (int i = 0; i < 3; i++) {
        free(x[i]);
        cudaFree(device[i]);
    }
    batch_fini(&b);
}

/* ---- Counters -------------------------------------------------------------------------------- */

static uint64_t total_of(const uint64_t *keys)
{
    uint64_t total = 0;
    for (size_t i = 0; i < FT_COUNT_KEYS; i++)
        total += keys[i];
    return total;
}

/* Exact probabilities per binade; those that the kernel counts may differ a little. */
static void exact_binades(double binade[FT_COUNT_BINADES], double *largest, const batch *b,
                          double *const x[3], double scale)
{
    double *y = must_have((size_t) b->head_size * sizeof *y);
    double *p = must_have(b->longest * sizeof *p);
    memset(binade, 0, FT_COUNT_BINADES * sizeof *binade);
    *largest = 0.0;
    for (size_t sequence = 0; sequence < b->sequences; sequence++)
        for (int32_t query = b->start[sequence]; query < b->start[sequence + 1]; query++)
            for (size_t column = 0; column < b->cols; column += (size_t) b->head_size) {
                row r = { (size_t) b->start[sequence],
                          (size_t) (b->start[sequence + 1] - b->start[sequence]), (size_t) query,
                          column };
                exact_row(y, p, b, &r, x, scale);
                for (size_t key = 0; key < r.length; key++) {
                    uint32_t bits = ft_bits_from_float((float) p[key]);
                    uint32_t at = ft_count_key(bits);
                    binade[at == 0 ? 0 : (at - 1) >> FT_COUNT_MANTISSA] += 1.0;
                    *largest = fmax(*largest, p[key]);
                }
            }
    free(y);
    free(p);
}

static void test_counts(const shape *s)
{
    batch b;
    double *x[3], binade[FT_COUNT_BINADES], largest;
    void *device[3];
    batch_init(&b, s);
    size_t n = b.tokens * b.cols, key_bytes = FT_COUNT_KEYS * sizeof(uint64_t);
    float scale = 12.0f / sqrtf((float) b.head_size), seen_largest;
    uint64_t probabilities = 0;
    for (size_t i = 0; i < b.sequences; i++)
        probabilities += (uint64_t) (b.start[i + 1] - b.start[i]) *
                         (uint64_t) (b.start[i + 1] - b.start[i]) * (uint64_t) b.heads;
    for (int i = 0; i < 3; i++)
        x[i] = make_floats(n, FT_F32, 1.0f, &device[i]);
    void *y = upload(NULL, n * sizeof(float));
    ft_cuda_counts counts = { upload(NULL, key_bytes), upload(NULL, 3 * sizeof(uint64_t)),
                              upload(NULL, sizeof(uint32_t)) };
    ft_cuda_attention_args a = described(&b, FT_F32, device, y, scale);
    a.counts = &counts;
    uint64_t *once = NULL, *again = NULL;
    for (int run = 0; run < 2; run++) {
        must(cudaMemset(counts.key, 0, key_bytes), "cudaMemset");
        must(cudaMemset(counts.special, 0, 3 * sizeof(uint64_t)), "cudaMemset");
        must(cudaMemset(counts.largest, 0, sizeof(uint32_t)), "cudaMemset");
        is_int(ft_cuda_attention_launch(&props, NULL, &a), 0,
               "attention that counts probabilities launches");
        must(cudaDeviceSynchronize(), "attention");
        *(run == 0 ? &once : &again) = download(counts.key, key_bytes);
    }
    is_int((long long) total_of(once), (long long) probabilities,
           "%s: attention counts every probability once", name_of(s));
    ok(memcmp(once, again, key_bytes) == 0,
       "attention counts the same probabilities in a second run");
    exact_binades(binade, &largest, &b, x, scale);
    double moved = 0.0;
    for (size_t i = 0; i < FT_COUNT_BINADES; i++) {
        double here = i == 0 ? (double) once[0] : 0.0;
        for (size_t j = 0; j < 1u << FT_COUNT_MANTISSA; j++)
            here += (double) once[1 + (i << FT_COUNT_MANTISSA) + j];
        moved += fabs(here - binade[i]);
    }
    /* A relative error of 1e-6 takes a value over the edge of its binade once in 700,000. */
    ok(moved <= 4.0 + (double) probabilities * 1e-5,
       "attention counts probabilities in the binades of the exact ones");
    uint32_t *bits = download(counts.largest, sizeof *bits);
    memcpy(&seen_largest, bits, sizeof seen_largest);
    near((double) seen_largest / largest, 1.0, 1e-5,
         "attention records the exact largest probability within 1e-5");
    free(bits);
    free(once);
    free(again);
    cudaFree(counts.key);
    cudaFree(counts.special);
    cudaFree(counts.largest);
    cudaFree(y);
    for (int i = 0; i < 3; i++) {
        free(x[i]);
        cudaFree(device[i]);
    }
    batch_fini(&b);
}

void test_floats_and_counts(void)
{
    for (size_t i = 0; i < width_count; i++) {
        test_floats(&widths[i], FT_F32);
        test_floats(&widths[i], FT_F16);
        if (props.capability >= 80)
            test_floats(&widths[i], FT_BF16);
    }
    test_floats(&(shape) SHAPE(1, 64, 1500), FT_F32);
    test_floats(&(shape) SHAPE(1, 64, 1500), FT_F16);
    test_floats(&(shape) SHAPE(3, 64, 1, 7, 63, 127, 128, 129, 384, 1000), FT_F16);
    test_floats(&(shape) SHAPE(2, 72, 1, 7, 63, 127, 128, 129, 384), FT_F16);
    test_floats(&(shape) SHAPE(2, 128, 1, 7, 63, 127, 128, 129, 384), FT_F16);
    test_counts(&(shape) SHAPE(3, 16, 1, 66, 100));
    test_counts(&(shape) SHAPE(2, 40, 300, 17));
}

#endif
