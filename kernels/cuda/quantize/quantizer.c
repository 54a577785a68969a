/*
 * quantizer.c - opens and closes a weight quantizer: the table of its functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/quantize/quantizer.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* Work memory: 29 bytes for each weight of a stripe. */
enum { BLAS_BYTES = 32 << 20, PRODUCT_COLS = 2048, STRIPE_ELEMENTS = 1 << 26 };

/* ---- Opening and closing ------------------------------------------------------------------ */

static ft_status open_blas(ft_quantizer *q, ft_error *err)
{
    FT_TRY(ft_quantizer_reserve(q, &q->blas_memory, BLAS_BYTES, err));
    cublasStatus_t status = cublasCreate(&q->blas);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetStream(q->blas, q->stream);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetWorkspace(q->blas, q->blas_memory.data, BLAS_BYTES);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetAtomicsMode(q->blas, CUBLAS_ATOMICS_NOT_ALLOWED);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetMathMode(
            q->blas, (cublasMath_t) (CUBLAS_DEFAULT_MATH |
                                     CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    return status == CUBLAS_STATUS_SUCCESS
               ? FT_OK
               : ft_fail(err, FT_EDEVICE, "cuda:%d: cuBLAS: %s", q->device->props.index,
                         cublasGetStatusString(status));
}

static ft_status init(ft_quantizer *q, ft_error *err)
{
    FT_TRY(ft_quantizer_select(q, err));
    int code = (int) cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking);
    if (code == 0)
        code = (int) cudaEventCreateWithFlags(&q->event, cudaEventDisableTiming);
    FT_TRY(ft_quantizer_check(q, code, err));
    return open_blas(q, err);
}

static void close_quantizer(ft_quantizer *q)
{
    if (q == NULL)
        return;
    ft_cuda_buffer *const buffers[] = {
        &q->blas_memory, &q->moments, &q->cross,   &q->columns, &q->factor,
        &q->difference,  &q->partial, &q->product, &q->order,   &q->upper,
        &q->inverse,     &q->failed,  &q->factors, &q->weight,  &q->q,
        &q->grids,       &q->work[0], &q->work[1], &q->work[2], &q->rows,
        &q->block,       &q->invalid, &q->words,   &q->scales,  &q->row_sums,
    };
    (void) cudaSetDevice(q->device->props.index);
    if (q->blas != NULL)
        (void) cublasDestroy(q->blas);
    for (size_t i = 0; i < FT_COUNT(buffers); i++)
        (void) cudaFree(buffers[i]->data);
    if (q->event != NULL)
        (void) cudaEventDestroy(q->event);
    if (q->stream != NULL)
        (void) cudaStreamDestroy(q->stream);
    free(q->magnitude);
    free(q->square);
    free(q);
}

static ft_status open_quantizer(ft_quantizer **out, ft_device *device, ft_error *err)
{
    ft_quantizer *q = *out = ft_calloc(1, sizeof *q);
    if (q == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a quantizer");
    q->device = device;
    q->product_cols = PRODUCT_COLS;
    q->stripe_elements = STRIPE_ELEMENTS;
    ft_status status = init(q, err);
    if (status != FT_OK) {
        close_quantizer(q);
        *out = NULL;
    }
    return status;
}

static void copy_columns(const ft_quantizer *q, double *magnitude, double *square)
{
    memcpy(magnitude, q->magnitude, q->cols * sizeof *magnitude);
    memcpy(square, q->square, q->cols * sizeof *square);
}

const ft_weight_quantizer ft_cuda_weight_quantizer = {
    .open = open_quantizer,
    .close = close_quantizer,
    .begin = ft_quantizer_begin,
    .choose_unit = ft_quantizer_choose_unit,
    .add = ft_quantizer_add,
    .factorize = ft_quantizer_factorize,
    .columns = copy_columns,
    .quantize = ft_quantizer_quantize,
};
