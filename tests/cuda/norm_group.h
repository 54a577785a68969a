/*
 * norm_group.h - a fusion group of an RMS norm, its linears and a gate, for tests that compare its
 * fused kernels with one kernel for each operation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_CUDA_NORM_GROUP_H
#define FT_TESTS_CUDA_NORM_GROUP_H

#include "kernels/cuda/fused_kernels.h"

/* The output features of the linears, 0 after the last one, and the operations around them. */
typedef struct norm_group_shape {
    ft_dtype dtype; /* of all rows */
    size_t rows[FT_CUDA_MAX_FUSED], k;
    bool residual, bias;
    ft_activation gate; /* FT_ACT_NONE: there is none */
} norm_group_shape;

typedef struct norm_group {
    const norm_group_shape *s;
    int linears;
    size_t tokens;
    ft_op norm_op, linear_op, gate_op;
    ft_weight gamma, weight[FT_CUDA_MAX_FUSED], bias[FT_CUDA_MAX_FUSED];
    ft_cuda_args norm, linear[FT_CUDA_MAX_FUSED], gate;
} norm_group;

/*
 * Opens a group with random rows, and with the device, scratch memory and batch of `common`.  The
 * caller sets `weight` and `bias`, and calls free_all().
 */
void norm_group_open(norm_group *g, const norm_group_shape *s, const ft_cuda_args *common,
                     size_t tokens, uint64_t seed);

bool norm_group_gates(const norm_group *g);

/* New results, all poison. */
void norm_group_clear(norm_group *g);

/* The linears, with the norm and the gate. */
ft_cuda_group norm_group_of(const norm_group *g, bool norm, bool gate);

/* Runs the kernel that the table has for all of `group`; false: it has none. */
bool norm_group_run_fused(const ft_cuda_group *group);

/* Two tests of fused results against those of separate kernels. */
void norm_group_compare(const norm_group *g, const norm_group *expected, bool norm);

#endif
