/*
 * relayout-t.c - the int8 layouts are those of cuBLASLt: ft_cuda_relayout() and
 * cublasLtMatrixTransform() write the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cuda/cuda.h"
#include "runtime/tensor.h"
#include "tests/cuda/gemm_int8.h"
#include "tests/lib/ops/gpu.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

/* Compares ft_cuda_relayout() with the transform of cuBLASLt. */
static void test_relayout(cublasLtHandle_t blas, ft_layout to, cublasLtOrder_t order, size_t rows,
                          size_t cols)
{
    size_t bytes = ft_layout_bytes(to, rows, cols);
    size_t stride = (to == FT_COL32 ? rows : ft_layout_rows(to, rows)) * 32;
    int8_t *row = problem_random_int8(rows * cols), *ours = malloc(bytes),
           *theirs = calloc(1, bytes);
    int8_t *dev_row = upload(row, rows * cols), *dev_ours = upload(theirs, bytes);
    int8_t *dev_theirs = upload(theirs, bytes);
    cublasLtMatrixLayoutOpaque_t from_layout, to_layout;
    cublasLtMatrixTransformDescOpaque_t what;
    const float one = 1.0f, zero = 0.0f;
    int32_t from_order = CUBLASLT_ORDER_ROW, to_order = order;
    cublasLtMatrixLayoutInit(&from_layout, CUDA_R_8I, rows, cols, (int64_t) cols);
    cublasLtMatrixLayoutSetAttribute(&from_layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &from_order,
                                     sizeof from_order);
    cublasLtMatrixLayoutInit(&to_layout, CUDA_R_8I, rows, cols, (int64_t) stride);
    cublasLtMatrixLayoutSetAttribute(&to_layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &to_order,
                                     sizeof to_order);
    cublasLtMatrixTransformDescInit(&what, CUDA_R_32F);
    int status = (int) cublasLtMatrixTransform(blas, &what, &one, dev_row, &from_layout, &zero,
                                               NULL, NULL, dev_theirs, &to_layout, NULL);
    is_int(status, 0, "cuBLASLt transforms a %zu x %zu matrix to %s", rows, cols,
           ft_layout_name(to));
    is_int(ft_cuda_relayout(NULL, dev_ours, to, dev_row, FT_ROW, rows, cols), 0,
           "ft_cuda_relayout() launches");
    download(ours, dev_ours, bytes);
    download(theirs, dev_theirs, bytes);
    ok(memcmp(ours, theirs, bytes) == 0,
       "ft_cuda_relayout() of %zu x %zu to %s writes the bytes of cuBLASLt", rows, cols,
       ft_layout_name(to));
    cudaFree(dev_row);
    cudaFree(dev_ours);
    cudaFree(dev_theirs);
    free(row);
    free(ours);
    free(theirs);
}

int main(void)
{
    static const struct {
        ft_layout layout;
        cublasLtOrder_t order;
    } orders[] = { { FT_COL32, CUBLASLT_ORDER_COL32 },
                   { FT_COL4_4R2_8C, CUBLASLT_ORDER_COL4_4R2_8C },
                   { FT_COL32_2R_4R4, CUBLASLT_ORDER_COL32_2R_4R4 } };
    (void) need_gpu();
    cublasLtHandle_t blas;
    if (cublasLtCreate(&blas) != CUBLAS_STATUS_SUCCESS)
        bail_out("cannot create a cuBLASLt handle");
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        test_relayout(blas, orders[i].layout, orders[i].order, 64, 96);
        test_relayout(blas, orders[i].layout, orders[i].order, 37, 70);
        test_relayout(blas, orders[i].layout, orders[i].order, 768, 3072);
    }
    cublasLtDestroy(blas);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
