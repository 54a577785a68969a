/*
 * gemm_f32_job.c - see gemm_f32_job.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/f32/gemm_f32_job.h"

#include "runtime/tensor.h"

const void *ft_gemm_float_weights(const ft_gemm_float *gemm, size_t col, size_t k_offset)
{
    return (const char *) gemm->w + (col * gemm->k + k_offset) * ft_dtype_size(gemm->w_dtype);
}

void ft_gemm_float_store(const ft_gemm_float_job *job, const ft_gemm_float_block *b, float *acc,
                         size_t acc_stride)
{
    const ft_gemm_float *g = job->gemm;
    size_t size = ft_dtype_size(g->y_dtype);
    char *y = (char *) g->y + (b->row * g->y_stride + b->col) * size;
    for (size_t i = 0; i < b->rows; i++, acc += acc_stride, y += g->y_stride * size) {
        if (g->bias != NULL)
            job->rows->add(acc, acc, g->bias + b->col, b->cols);
        job->rows->activate(acc, acc, g->activation, b->cols);
        job->rows->from_float(y, acc, g->y_dtype, b->cols);
    }
}
