/*
 * blas.c - dense linear algebra of the quantizer, by cuBLAS.
 *
 * cuBLAS is column-major: a row-major matrix is its transpose there. So operands change places, and
 * an upper triangle is a lower one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/quantize/quantizer.h"
#include "runtime/error.h"
#include "runtime/mem.h"

static ft_status check(const ft_quantizer *q, cublasStatus_t status, ft_error *err)
{
    return status == CUBLAS_STATUS_SUCCESS
               ? FT_OK
               : ft_fail(err, FT_EDEVICE, "cuda:%d: cuBLAS: %s", q->device->props.index,
                         cublasGetStatusString(status));
}

/* ---- Products ----------------------------------------------------------------------------- */

ft_status ft_quantizer_dgemm(const ft_quantizer *q, const ft_quantizer_gemm *g, ft_error *err)
{
    return check(q,
                 cublasDgemm(q->blas, CUBLAS_OP_N, CUBLAS_OP_N, (int) g->n, (int) g->m, (int) g->k,
                             &g->alpha, g->b, (int) g->b_stride, g->a, (int) g->a_stride, &g->beta,
                             g->c, (int) g->c_stride),
                 err);
}

ft_status ft_quantizer_sgemm(const ft_quantizer *q, const ft_quantizer_gemm *g, ft_error *err)
{
    float alpha = (float) g->alpha, beta = (float) g->beta;
    return check(q,
                 cublasSgemm(q->blas, CUBLAS_OP_N, CUBLAS_OP_N, (int) g->n, (int) g->m, (int) g->k,
                             &alpha, g->b, (int) g->b_stride, g->a, (int) g->a_stride, &beta, g->c,
                             (int) g->c_stride),
                 err);
}

ft_status ft_quantizer_gemm_transposed(const ft_quantizer *q, const ft_quantizer_gemm *g,
                                       ft_dtype dtype, ft_error *err)
{
    const float one = 1.0f, zero = 0.0f;
    cudaDataType_t type = dtype == FT_F32 ? CUDA_R_32F : dtype == FT_F16 ? CUDA_R_16F : CUDA_R_16BF;
    return check(q,
                 cublasGemmEx(q->blas, CUBLAS_OP_N, CUBLAS_OP_T, (int) g->n, (int) g->m, (int) g->k,
                              &one, g->b, type, (int) g->b_stride, g->a, type, (int) g->a_stride,
                              &zero, g->c, CUDA_R_32F, (int) g->n, CUBLAS_COMPUTE_32F,
                              CUBLAS_GEMM_DEFAULT),
                 err);
}

/* ---- Cholesky factor ---------------------------------------------------------------------- */

/* The rows of the factor to the right of a diagonal block, and what they take off the rest. */
static ft_status update_rest(const ft_quantizer *q, double *a, size_t n, size_t first, size_t end,
                             ft_error *err)
{
    const double one = 1.0, minus_one = -1.0;
    int rest = (int) (n - end), count = (int) (end - first), stride = (int) n;
    double *block = a + first * n + first, *right = a + first * n + end, *below = a + end * n + end;
    FT_TRY(check(q,
                 cublasDtrsm(q->blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T,
                             CUBLAS_DIAG_NON_UNIT, rest, count, &one, block, stride, right, stride),
                 err));
    return check(q,
                 cublasDsyrk(q->blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, rest, count, &minus_one,
                             right, stride, &one, below, stride),
                 err);
}

ft_status ft_quantizer_cholesky(const ft_quantizer *q, double *a, size_t n, ft_error *err)
{
    for (size_t first = 0, end; first < n; first = end) {
        end = first + ft_min_size(FT_CUDA_CHOLESKY_BLOCK, n - first);
        const ft_cuda_cholesky_args args = {
            .a = a + first * n + first, .n = n, .count = end - first, .failed = q->failed.data
        };
        FT_TRY(ft_quantizer_check(q, ft_cuda_launch_cholesky(q->stream, &args), err));
        if (end < n)
            FT_TRY(update_rest(q, a, n, first, end, err));
    }
    return FT_OK;
}

ft_status ft_quantizer_failed(const ft_quantizer *q, bool *failed, ft_error *err)
{
    int value = 0;
    FT_TRY(ft_quantizer_download(q, &value, q->failed.data, sizeof value, err));
    *failed = value != 0;
    return FT_OK;
}

ft_status ft_quantizer_solve(const ft_quantizer *q, const double *upper, size_t n, double *x,
                             size_t rows, bool transposed, ft_error *err)
{
    const double one = 1.0;
    return check(q,
                 cublasDtrsm(q->blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER,
                             transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, (int) n,
                             (int) rows, &one, upper, (int) n, x, (int) n),
                 err);
}
