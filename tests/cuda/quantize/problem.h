/*
 * problem.h - samples and weights for the quantizer, on the host and on the device, and the same
 * sums by the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_CUDA_QUANTIZE_PROBLEM_H
#define FT_TESTS_CUDA_QUANTIZE_PROBLEM_H

#include "calibrate/stats/exact_sums.h"
#include "kernels/cuda/quantize/quantizer.h"

enum { SAMPLES = 3 };

/* One sample: inputs of the quantized prefix and of the original model. */
typedef struct sample {
    size_t rows;
    float *x, *original;          /* [rows, cols], values of the dtype */
    void *device_x, *device_orig; /* the same on the device, in the dtype */
} sample;

typedef struct problem {
    size_t cols;
    ft_dtype dtype; /* of the values */
    bool has_cross, has_dead;
    sample samples[SAMPLES];
    float *factor; /* [cols], or NULL */
} problem;

/* Correlated inputs of very different magnitudes; with has_dead, some columns are 0. */
void problem_init(problem *p, uint64_t seed);
void problem_fini(problem *p);

/* Whether a column of a problem is always 0. */
bool is_dead(const problem *p, size_t col);

/* Adds all samples to the sums of a quantizer, in reverse order if `backwards`. */
void add_samples(const problem *p, ft_quantizer *quantizer, bool backwards);

/* The same sums by the CPU, with this unit. */
void add_samples_cpu(const problem *p, ft_exact_sums *sums, double unit);

/* Adds a sample with these rows, which are those of the original model, too. */
void add_rows(const problem *p, ft_quantizer *quantizer, const float *rows, size_t count);

/* Ends the test if a call failed. */
void must_succeed(ft_status status, const ft_error *err);

/* Memory of the device. */
void *take_device_memory(size_t bytes);
void free_device_memory(void *memory);

/* A copy of device memory; free(). */
void *copy_of(const void *device, size_t bytes);

/* A device for tests without models. */
ft_device *test_device(void);

#endif
