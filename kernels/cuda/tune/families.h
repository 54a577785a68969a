/*
 * families.h - all families of GEMM kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_TUNE_FAMILIES_H
#define FT_KERNELS_CUDA_TUNE_FAMILIES_H

#include "kernels/cuda/gemm_family.h"

/* The family of a problem, or NULL. */
const ft_cuda_gemm_family *ft_cuda_gemm_family_of(const ft_gemm_problem *problem);

/* The candidate of a family with this name, or -1. */
int ft_cuda_gemm_candidate_named(const ft_cuda_gemm_family *family, const char *name);

#endif
