/*
 * tuned_gemm.c - what a tuning file has chosen for a GEMM.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/gemm_family.h"

int ft_cuda_gemm_tuned(const ft_cuda_device_props *props, const ft_gemm_problem *problem)
{
    const ft_cuda_tuned_gemm *best = NULL;
    for (size_t i = 0; i < props->num_tuned; i++) {
        const ft_cuda_tuned_gemm *t = &props->tuned[i];
        if (t->problem.m >= problem->m && ft_gemm_problem_same_shape(&t->problem, problem) &&
            (best == NULL || t->problem.m < best->problem.m))
            best = t;
    }
    return best == NULL ? -1 : best->candidate;
}
