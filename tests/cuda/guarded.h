/*
 * guarded.h - operands and results in device memory for tests; results are poison between guards
 * before a kernel writes them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_CUDA_GUARDED_H
#define FT_TESTS_CUDA_GUARDED_H

#include "kernels/view.h"

/* Bails out where a status of the CUDA runtime is an error. */
void must(int status, const char *what);

/* Device memory until free_all(); holds these bytes, or poison. */
void *on_device(const void *data, size_t bytes);
void free_all(void);

/* Random numbers in it, F16 or BF16, and F32. */
void *random_f16(uint64_t seed, ft_dtype dtype, size_t n);
float *random_vector(uint64_t seed, size_t n);

/* A result between guard bytes, all poison. */
ft_view result_of(size_t rows, size_t cols, ft_dtype dtype);

/* Whether two results, guards included, are bit-identical. */
bool same(const ft_view *a, const ft_view *b);

/* Whether a result still holds only poison. */
bool untouched(const ft_view *view);

#endif
