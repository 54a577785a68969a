/*
 * quantizer.h - a weight quantizer on a GPU: its stream, and what it keeps in device memory.
 *
 * Device memory of a quantizer is reused, and only grows. All work is on one stream, and cuBLAS
 * uses neither atomics nor TF32: a result depends on the calls alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_QUANTIZE_QUANTIZER_H
#define FT_KERNELS_CUDA_QUANTIZE_QUANTIZER_H

#include "kernels/cuda/host/exec.h"
#include "kernels/cuda/quantize/launch.h"

#include <cublas_v2.h>

typedef struct ft_cuda_buffer {
    void *data; /* device memory */
    size_t bytes;
} ft_cuda_buffer;

struct ft_quantizer {
    const ft_device *device;
    cudaStream_t stream;
    cudaEvent_t event;
    cublasHandle_t blas;
    ft_cuda_buffer blas_memory;
    size_t product_cols;    /* columns whose products are computed at a time */
    size_t stripe_elements; /* weights that are quantized at a time, about */

    /* The input whose sums are added up. */
    size_t cols;
    bool has_cross;
    double unit;
    ft_cuda_buffer moments, cross; /* [cols, cols]: int64_t, and doubles after factorize() */
    ft_cuda_buffer columns;        /* ft_quantizer_columns */
    ft_cuda_buffer factor;         /* [cols] */
    ft_cuda_buffer difference;     /* of one sample */
    ft_cuda_buffer partial;        /* [2, chunks, cols] doubles */
    ft_cuda_buffer product;        /* of some columns of one sample */

    /* Results of factorize(). */
    double *magnitude, *square; /* [cols], in host memory */
    size_t n_dead;              /* columns at the end of the order whose inputs are always 0 */
    double damping;
    ft_cuda_buffer order;   /* [cols] uint32_t */
    ft_cuda_buffer upper;   /* [cols, cols] doubles, at last floats: U */
    ft_cuda_buffer inverse; /* [cols, cols] doubles */
    ft_cuda_buffer failed;  /* int */

    /* Of the matrix that is quantized. */
    ft_cuda_buffer factors;          /* [rows], [cols]; importance [cols]: floats */
    ft_cuda_buffer weight, q, grids; /* of a stripe of rows */
    ft_cuda_buffer work[3];          /* [stripe, cols] doubles each */
    ft_cuda_buffer rows, block;      /* of H: [128, cols] and [128, 128] doubles */
    ft_cuda_buffer invalid;          /* uint64_t */
    ft_cuda_buffer words, scales;    /* of a stripe; of the matrix */
    ft_cuda_buffer row_sums;         /* [4, stripe] doubles */
};

/* The sums of columns on the device: sections of `columns`. */
typedef struct ft_quantizer_columns {
    ft_cuda_int128 *magnitude, *square, *difference; /* [cols] */
    double *failed, *failed_difference;              /* [cols] */
    uint32_t *amax_bits;                             /* of the differences of a sample */
    size_t bytes;                                    /* of all */
} ft_quantizer_columns;

ft_quantizer_columns ft_quantizer_columns_of(const ft_quantizer *quantizer);

/* ---- Memory and errors (memory.c) --------------------------------------------------------- */

/* Enlarges a buffer to `bytes`; its contents are lost. Does nothing if it is large enough. */
ft_status ft_quantizer_reserve(const ft_quantizer *quantizer, ft_cuda_buffer *buffer, size_t bytes,
                               ft_error *err);

/* Makes the device of the quantizer that of this thread. */
ft_status ft_quantizer_select(const ft_quantizer *quantizer, ft_error *err);

/* Turns a cudaError_t into a status. */
ft_status ft_quantizer_check(const ft_quantizer *quantizer, int code, ft_error *err);

/* Copies on the stream of the quantizer; download waits for it. */
ft_status ft_quantizer_upload(const ft_quantizer *quantizer, void *to, const void *from,
                              size_t bytes, ft_error *err);
ft_status ft_quantizer_download(const ft_quantizer *quantizer, void *to, const void *from,
                                size_t bytes, ft_error *err);

/* Sets bytes on the stream of the quantizer. */
ft_status ft_quantizer_fill(const ft_quantizer *quantizer, void *to, int byte, size_t bytes,
                            ft_error *err);

/* FT_TRY() of a kernel launch. */
#define FT_QUANTIZER_LAUNCH(q, kernel, count, err, ...)                                            \
    FT_TRY(ft_quantizer_check(                                                                     \
        q, ft_cuda_launch_##kernel((q)->stream, &(ft_cuda_##kernel##_args){ __VA_ARGS__ }, count), \
        err))

/* ---- Linear algebra (blas.c): row-major matrices ------------------------------------------ */

/* c [m, n] = alpha a [m, k] . b [k, n] + beta c; strides of rows. */
typedef struct ft_quantizer_gemm {
    size_t m, n, k;
    double alpha, beta;
    const void *a, *b;
    size_t a_stride, b_stride;
    void *c;
    size_t c_stride;
} ft_quantizer_gemm;

ft_status ft_quantizer_dgemm(const ft_quantizer *quantizer, const ft_quantizer_gemm *gemm,
                             ft_error *err);
ft_status ft_quantizer_sgemm(const ft_quantizer *quantizer, const ft_quantizer_gemm *gemm,
                             ft_error *err);

/*
 * Floats c [m, n] = a^T b for a [k, m] and b [k, n] of a float dtype; sums are float32. alpha, beta
 * and c_stride are not used: c is dense.
 */
ft_status ft_quantizer_gemm_transposed(const ft_quantizer *quantizer, const ft_quantizer_gemm *gemm,
                                       ft_dtype dtype, ft_error *err);

/*
 * Replaces the upper triangle of a symmetric matrix [n, n] by U, a = U^T U; elements below it are
 * undefined. A matrix that is not positive definite is found out by ft_quantizer_failed() after all
 * factorizations, which waits for them.
 */
ft_status ft_quantizer_cholesky(const ft_quantizer *quantizer, double *a, size_t n, ft_error *err);
ft_status ft_quantizer_failed(const ft_quantizer *quantizer, bool *failed, ft_error *err);

/* x [rows, n] = x U^-1, or with `transposed` x U^-T, in place. */
ft_status ft_quantizer_solve(const ft_quantizer *quantizer, const double *upper, size_t n,
                             double *x, size_t rows, bool transposed, ft_error *err);

/* ---- Steps -------------------------------------------------------------------------------- */

/* ft_weight_quantizer (input_sums.c, factorize.c, quantize.c). */
ft_status ft_quantizer_begin(ft_quantizer *quantizer, size_t cols, bool cross, ft_error *err);
ft_status ft_quantizer_choose_unit(ft_quantizer *quantizer, const ft_exec *exec, int value,
                                   size_t rows, ft_error *err);
ft_status ft_quantizer_add(ft_quantizer *quantizer, const ft_exec *exec, int value,
                           const ft_exec *original, int original_value, size_t rows,
                           const float *factor, ft_error *err);
ft_status ft_quantizer_factorize(ft_quantizer *quantizer, const char *name, ft_error *err);
ft_status ft_quantizer_quantize(ft_quantizer *quantizer, const ft_quantizer_matrix *matrix,
                                const ft_quantizer_options *options, void *bytes,
                                ft_quantizer_error *error, ft_error *err);

/* Downloads and checks the sums of columns (input_sums.c): FT_EFORMAT with `name`. */
ft_status ft_quantizer_finish_columns(ft_quantizer *quantizer, const char *name, ft_error *err);

/* A stripe of rows of a matrix on the device. */
typedef struct ft_quantizer_stripe {
    size_t rows;
    float *weight; /* [rows, cols] */
    ft_cuda_grids grids;
    double *work[3]; /* [rows, cols] each; the widest group fits */
} ft_quantizer_stripe;

/* Rounds the weights of a stripe whose grids are chosen (round.c). Overwrites its work memory. */
ft_status ft_quantizer_round(ft_quantizer *quantizer, const ft_quantizer_stripe *stripe, int sweeps,
                             ft_error *err);

#endif
