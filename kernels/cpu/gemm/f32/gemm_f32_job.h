/*
 * gemm_f32_job.h - what the two ways to compute a float GEMM share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_F32_GEMM_F32_JOB_H
#define FT_KERNELS_CPU_GEMM_F32_GEMM_F32_JOB_H

#include "kernels/cpu/base/rows.h"
#include "kernels/cpu/gemm/f32/f32.h"
#include "kernels/cpu/gemm/f32/gemm_f32.h"

typedef struct ft_gemm_float_job {
    const ft_gemm_float *gemm;
    const ft_float_kernels *kernels;
    const ft_row_kernels *rows;
} ft_gemm_float_job;

/* A rectangle of the output. */
typedef struct ft_gemm_float_block {
    size_t row, rows, col, cols;
} ft_gemm_float_block;

/* Weights from row `col` and column `k_offset` on. */
const void *ft_gemm_float_weights(const ft_gemm_float *gemm, size_t col, size_t k_offset);

/*
 * The epilogue: adds the bias, applies the activation and converts to the output dtype. acc
 * [rows, cols] has rows acc_stride apart, and is overwritten.
 */
void ft_gemm_float_store(const ft_gemm_float_job *job, const ft_gemm_float_block *block, float *acc,
                         size_t acc_stride);

/* The GEMM by packed operands; scratch bytes as those of gemm_f32.h. */
size_t ft_gemm_float_packed_scratch(size_t m, size_t k, int threads);
void ft_gemm_float_packed_run(const ft_gemm_float_job *job);

#endif
