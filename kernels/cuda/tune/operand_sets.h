/*
 * operand_sets.h - random operands of a GEMM: weights in so many sets that they come from DRAM, and
 * one x and y, as in a forward pass.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_TUNE_OPERAND_SETS_H
#define FT_KERNELS_CUDA_TUNE_OPERAND_SETS_H

#include "kernels/cuda/gemm_family.h"

#include <cublas_v2.h>

enum { FT_CUDA_MAX_OPERAND_SETS = 24 };

typedef struct ft_cuda_operand_sets {
    char *memory;
    ft_cuda_gemm_operands set[FT_CUDA_MAX_OPERAND_SETS];
    int count;
    cublasHandle_t blas;
} ft_cuda_operand_sets;

/*
 * For up to problem->m rows; the problem is borrowed.  Returns a cudaError_t; fini also accepts
 * sets whose init failed, or zeros.
 */
int ft_cuda_operand_sets_init(ft_cuda_operand_sets *out, const ft_cuda_gemm_family *family,
                              const ft_cuda_device_props *props, const ft_gemm_problem *problem,
                              void *stream);
void ft_cuda_operand_sets_fini(ft_cuda_operand_sets *sets);

#endif
