/*
 * operands.h - random operands in device memory, for benchmarks of row operations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_CUDA_OPERANDS_H
#define FT_TESTS_BENCH_CUDA_OPERANDS_H

#include "tests/bench/cuda/replay.h"

/* FT_BF16 means no operand: the benchmarks do not use bf16. */
#define FT_NO_OPERAND FT_BF16

/* Bytes of an element; 0 for no operand. */
size_t operand_bytes(ft_dtype dtype);

/* Random floats between 2^-1 and 2 of either sign; random int8 values; zeros as indices. */
void *random_operand(size_t n, ft_dtype dtype);

/* A matrix of those, or none; int8 matrices have a scale. */
ft_view operand_view(size_t rows, size_t cols, ft_dtype dtype);

/*
 * Rotating sets of operands.  Their number is such that sets of `bytes` together exceed the L2
 * cache (`cold`), but at most the number of launches of a graph.
 */
typedef struct operand_sets {
    ft_cuda_device_props props; /* for all launches */
    int (*run)(const ft_cuda_args *);
    ft_cuda_args set[LAUNCHES];
    size_t count;
    bool is_cold; /* all sets together exceed the L2 cache */
} operand_sets;

/* Sets the number of sets; the caller fills them. */
void operand_sets_init(operand_sets *sets, const ft_cuda_device_props *props,
                       int (*run)(const ft_cuda_args *), double bytes, double cold);
void operand_sets_fini(operand_sets *sets);

/* Microseconds of one launch, rotating through `count` sets. */
double operand_sets_time(const operand_sets *sets, size_t count);

#endif
