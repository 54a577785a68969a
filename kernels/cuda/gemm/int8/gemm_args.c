/*
 * gemm_args.c - what every INT8 GEMM kernel requires of its arguments.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/cuda.h"

bool ft_cuda_gemm_args_valid(const ft_cuda_gemm_args *p)
{
    size_t columns = 0;
    if (p->n_outputs < 1 || p->n_outputs > FT_CUDA_MAX_FUSED)
        return false;
    for (int i = 0; i < p->n_outputs; i++)
        columns += p->width[i];
    return columns == p->n;
}
