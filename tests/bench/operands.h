/*
 * operands.h - random operands in device memory, for benchmarks of operations on rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_OPERANDS_H
#define FT_TESTS_BENCH_OPERANDS_H

#include "kernels/cuda/cuda.h"

/* FT_BF16 stands for nothing: benchmarks do not use it. */
#define FT_NO_OPERAND FT_BF16

/* Bytes of an element; 0 where there is no operand. */
size_t operand_bytes(ft_dtype dtype);

/* Random values between 2^-1 and 2 of either sign; random codes; zeros as indices. */
void *random_operand(size_t n, ft_dtype dtype);

/* A matrix of those, or none; codes have a scale. */
ft_cuda_view operand_view(size_t rows, size_t cols, ft_dtype dtype);

/* The memory of all matrices that an operation has. */
void free_operands(ft_cuda_args *args);

#endif
