/*
 * operands.h - random operands in device memory, for benchmarks of operations on rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_CUDA_OPERANDS_H
#define FT_TESTS_BENCH_CUDA_OPERANDS_H

#include "tests/bench/cuda/replay.h"

/* FT_BF16 stands for nothing: benchmarks do not use it. */
#define FT_NO_OPERAND FT_BF16

/* Bytes of an element; 0 where there is no operand. */
size_t operand_bytes(ft_dtype dtype);

/* Random values between 2^-1 and 2 of either sign; random codes; zeros as indices. */
void *random_operand(size_t n, ft_dtype dtype);

/* A matrix of those, or none; codes have a scale. */
ft_cuda_view operand_view(size_t rows, size_t cols, ft_dtype dtype);

/*
 * Sets of operands that take turns.  There are so many that `bytes` for each are `cold` together,
 * more than the second cache holds, or as many as a graph has launches.
 */
typedef struct operand_sets {
    ft_cuda_device_props props; /* what all launches are told */
    int (*run)(const ft_cuda_args *);
    ft_cuda_args set[LAUNCHES];
    size_t count;
    bool is_cold; /* all together are that large */
} operand_sets;

/* How many sets that takes; the caller fills them. */
void operand_sets_init(operand_sets *sets, const ft_cuda_device_props *props,
                       int (*run)(const ft_cuda_args *), double bytes, double cold);
void operand_sets_fini(operand_sets *sets);

/* Microseconds of one launch, of `count` of the sets in turns. */
double operand_sets_time(const operand_sets *sets, size_t count);

#endif
