/*
 * wgmma_f16_gemm.h - products of f16 or bf16 on sm_90a, and the forms they can take.
 *
 * k is cut into ranges; how many is a function of n and k alone.  The tensor cores add up each
 * range from its first k to its last, 16 at a time, and the sums of ranges are added in order.  So
 * a sum has the same bits in every form, which tests hold against each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_GEMM_H
#define FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_GEMM_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tile is 64 x teams weights by `rows` rows of x. */
typedef struct ft_cuda_halves_form {
    int teams, rows;
    bool spread; /* each range to a block of a cluster; else one block adds up all ranges */
    int beside;  /* blocks on a multiprocessor: 1, or 2 where there are registers for them */
} ft_cuda_halves_form;

/* Whether the kernels take such products; m does not matter. */
bool ft_cuda_wgmma_halves_takes(const ft_cuda_chip *chip, const ft_cuda_float_product *p);

int ft_cuda_wgmma_halves_ranges(size_t n, size_t k);

/* The form that is fastest for this product. */
ft_cuda_halves_form ft_cuda_wgmma_halves_form(const ft_cuda_chip *chip,
                                              const ft_cuda_float_product *p, int count);

/*
 * `count` products that differ in w, bias and y only, as one launch: in this form, with 1, 2 or 4
 * ranges of at least 64 k.  cudaErrorNotSupported: there is no such form, or they differ in more.
 */
int ft_cuda_wgmma_halves_with(const ft_cuda_halves_form *form, int ranges, const ft_cuda_chip *chip,
                              void *stream, const ft_cuda_float_product *p, int count);
int ft_cuda_wgmma_halves(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p,
                         int count);

#ifdef __cplusplus
}
#endif
#endif
