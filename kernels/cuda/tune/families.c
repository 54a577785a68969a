/*
 * families.c - all families of GEMM kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/tune/families.h"
#include "runtime/mem.h"

#include <string.h>

const ft_cuda_gemm_family *ft_cuda_gemm_family_of(const ft_gemm_problem *problem)
{
    static const ft_cuda_gemm_family *const families[] = { &ft_cuda_int8_family,
                                                           &ft_cuda_groupwise_family,
                                                           &ft_cuda_f16_family };
    for (size_t i = 0; i < FT_COUNT(families); i++)
        if (families[i]->computes(problem))
            return families[i];
    return NULL;
}

int ft_cuda_gemm_candidate_named(const ft_cuda_gemm_family *family, const char *name)
{
    char known[FT_GEMM_KERNEL_NAME];
    for (int i = 0; family->describe(i, known); i++)
        if (strcmp(name, known) == 0)
            return i;
    return -1;
}
