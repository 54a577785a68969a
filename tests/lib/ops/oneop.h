/*
 * oneop.h - runs one operation on a device and reads its results.
 *
 * Every operation runs with one thread and with two, which must give the same bits; operands and
 * the memory between the values must be unchanged afterwards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_ONEOP_H
#define FT_TESTS_LIB_OPS_ONEOP_H

#include "kernels/backend.h"

/* A device under test, with the errors and the digest of its results. */
typedef struct bench {
    char name[48]; /* "cpu avx2" */
    const ft_backend *backend;
    ft_device *device;
    uint64_t digest; /* of all results of an operation: devices of one kind give the same one */
    int thread_differences, overwritten;
} bench;

/* The operation, its values and weights; the data is borrowed. */
typedef struct oneop {
    bench *on;
    ft_batch batch;
    ft_limits limits; /* of the cache, and additional slots; the batch determines the rest */
    ft_plan plan;
    ft_op op;
    ft_weight weight[FT_MAX_WEIGHTS];    /* as given */
    ft_weight on_device[FT_MAX_WEIGHTS]; /* as uploaded for this run */
    const void *data[FT_MAX_IN];
    const void *before[FT_MAX_STATES]; /* the states before each run; borrowed */
    void *after[FT_MAX_STATES];        /* the states after it, or NULL: not requested */
    void *second;                      /* the second result, or NULL: not requested */
    float *scales;                     /* dynamic row scales, or NULL: not requested */
    ft_counts *counts;                 /* calibration counters of one thread; or NULL */
} oneop;

void oneop_begin(oneop *t, bench *on, ft_op_kind kind, const ft_batch *batch);
void oneop_end(oneop *t);

/* Operand `slot`, whose `data` has the rows of the batch; scale 0 for values not quantized. */
void oneop_in(oneop *t, int slot, ft_rows rows, int32_t cols, ft_dtype dtype, float scale,
              const void *data);

/* The probabilities of attention. */
void oneop_inner(oneop *t);

void oneop_weight(oneop *t, int slot, ft_weight weight);

/* Results; without them the operation has none. */
void oneop_out(oneop *t, ft_rows rows, int32_t cols);
void oneop_out_as(oneop *t, ft_rows rows, int32_t cols, ft_dtype dtype);
void oneop_quantized(oneop *t, ft_rows rows, int32_t cols, ft_dtype dtype, float scale);

/* Quantized results with dynamic row scales; oneop_run() writes the scales to t->scales. */
void oneop_dynamic_quantized(oneop *t, ft_rows rows, int32_t cols, ft_dtype dtype);

/* A second float result, for t->second. */
void oneop_second(oneop *t, ft_rows rows, int32_t cols, ft_dtype dtype);

/* State `slot`, with all rows that t->limits gives it: `before` each run, then t->after[slot]. */
void oneop_state(oneop *t, int slot, ft_rows rows, int32_t cols, ft_dtype dtype,
                 const void *before);

/* Checks, lays out, runs, and reads the results into `out` and `quantized` (NULL: none). */
void oneop_run(oneop *t, void *out, void *quantized);

/* Element i of an array of F32, F16, BF16 or I8; and the relative rounding error of a dtype. */
double number_of(const void *x, ft_dtype dtype, size_t i);
double rounding_in(ft_dtype dtype);

/* Sets one element of F32, F16 or BF16; and n normal ones, for free(). */
void set_number(void *x, ft_dtype dtype, size_t i, float value);
void *random_numbers(uint64_t seed, size_t n, ft_dtype dtype);

/*
 * The bound on the rounding of x in products with group-wise weights, relative to the largest
 * element of x in a group: CPUs round to 16 bits.
 */
double groupwise_rounding(const bench *on);

/* Whether `found` is further from `expected` than `bound`, or NaN. */
bool is_far(double found, double expected, double bound);

/*
 * The largest error, in units of the bound relative * size[i] + absolute; size NULL is the
 * magnitude of the expected values.  NaN is an infinite error.
 */
double worst_error(const float *found, const double *expected, const double *size, double relative,
                   double absolute, size_t n);

/*
 * The number of quantized values that are not the nearest: further than 0.5 + slack from
 * value / scale.  `slack` is the error of the value in quantization steps.  `quantized` are int8,
 * or float where `dtype` is FT_F32.
 */
size_t wrong_quantized(const void *quantized, ft_dtype dtype, const double *value, double scale,
                       double slack, size_t n);

/* Zeroed memory; the test ends if there is none; free with free(). */
void *must_have(size_t count, size_t size);

/* New arrays: normal floats, uniform int8 values, and conversions of them. */
float *random_floats(uint64_t seed, size_t n, double sigma);
int8_t *random_int8(uint64_t seed, size_t n);
float *fake_quantized(const int8_t *quantized, size_t n);
double *doubles_of(const float *x, size_t n);

/*
 * A matrix of random floats of size 1 in F32, F16 or BF16; *value receives its values.  Free it
 * with free_weight(), *value with free().
 */
ft_weight random_weight(uint64_t seed, size_t rows, size_t cols, ft_dtype dtype, double **value);
void free_weight(ft_weight *weight);

#endif
