/*
 * linear_float.cu - y = act(x . w^T + b) in floats: cuBLAS, then bias and activation in place; of
 * few rows linear_gemv.cu; mma_f16.cu where a row must not depend on how many there are.
 *
 * Sums are in float for all dtypes, and F32 is not cut to TF32.  Half-precision weights of an F32
 * plan are converted block by block, so scratch does not grow with the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/cuda/rows.cuh"

#include <cublas_v2.h>

/* 16 MB of converted weights: 5461 rows of 768, so most matrices are one block. */
enum { CONVERTED = 16 << 20 };

/* ---- Bias and activation --------------------------------------------------------------------- */

/* A block takes 64 vectors of columns, of 16 rows: each thread has 4 of them on the way. */
enum { ACROSS = 64, DOWN = 4, STEPS = 4 };

typedef struct finish_args {
    void *y[FT_CUDA_PARTS];
    const float *bias[FT_CUDA_PARTS]; /* NULL: none */
    ft_dtype dtype;
    ft_activation activation;
    size_t rows, cols;
} finish_args;

/* blockIdx.z is the part. */
template <int N>
static __global__ void __launch_bounds__(ACROSS *DOWN)
    finish_kernel(const __grid_constant__ finish_args f)
{
    void *y = f.y[blockIdx.z];
    const float *bias = f.bias[blockIdx.z];
    size_t first = (size_t) blockIdx.x * DOWN * STEPS + threadIdx.y;
    size_t col = ((size_t) blockIdx.y * ACROSS + threadIdx.x) * N;
    ft_bits<N> bits[STEPS];
    float b[N] = {}, v[STEPS * N];
    if (bias != NULL && col < f.cols)
        ft_load<N>(b, (void *) bias, FT_F32, col);
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (col >= f.cols)
        return;
#pragma unroll
    for (int s = 0; s < STEPS; s++)
        if (first + s * DOWN < f.rows)
            ft_fetch<N>(bits[s], y, f.dtype, (first + s * DOWN) * f.cols + col);
#pragma unroll
    for (int s = 0; s < STEPS; s++)
        ft_unpack<N>(v + s * N, bits[s], f.dtype);
#pragma unroll
    for (int i = 0; i < STEPS * N; i++)
        v[i] += b[i % N];
    ft_activate_all<STEPS * N>(f.activation, v);
#pragma unroll
    for (int s = 0; s < STEPS; s++)
        if (first + s * DOWN < f.rows)
            ft_store<N>(y, f.dtype, (first + s * DOWN) * f.cols + col, v + s * N);
}

template <int N> static int launch_finish(const ft_cuda_args *args, const finish_args &f, int count)
{
    dim3 grid(ft_cover(f.rows, DOWN * STEPS), ft_cover(f.cols, ACROSS * N), (unsigned) count);
    return ft_launch(finish_kernel<N>, grid, dim3(ACROSS, DOWN), 0, args->stream,
                     args->chip->overlaps, 1, f);
}

static int finish(const ft_cuda_args *const *args, int count)
{
    finish_args f = {};
    bool biased = false;
    f.dtype = args[0]->out.dtype;
    f.activation = args[0]->op->attr.activation;
    f.rows = args[0]->out.rows;
    f.cols = args[0]->out.cols;
    for (int i = 0; i < count; i++) {
        f.y[i] = args[i]->out.data;
        f.bias[i] = args[i]->weight[1] == NULL ? NULL : (const float *) args[i]->weight[1]->data;
        biased = biased || f.bias[i] != NULL;
    }
    if (!biased && f.activation == FT_ACT_NONE)
        return (int) cudaSuccess;
    return f.cols % 4 == 0 ? launch_finish<4>(args[0], f, count)
                           : launch_finish<1>(args[0], f, count);
}

/* ---- Converted weights ------------------------------------------------------------------------
 */

enum { THREADS = 256 };

/* out[i] = in[first + i] */
static __global__ void __launch_bounds__(THREADS)
    convert_kernel(float *out, const void *in, ft_dtype dtype, size_t first, size_t n)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (i < n)
        ft_load<1>(&out[i], (void *) in, dtype, first + i);
}

static size_t block_rows(const ft_weight *weight)
{
    size_t rows = CONVERTED / sizeof(float) / weight->cols;
    return rows == 0 ? 1 : rows < weight->rows ? rows : weight->rows;
}

/* ---- Products -----------------------------------------------------------------------------------
 */

static cudaDataType_t type_of(ft_dtype dtype)
{
    return dtype == FT_F16 ? CUDA_R_16F : dtype == FT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static int code_of(cublasStatus_t status)
{
    return (int) (status == CUBLAS_STATUS_SUCCESS         ? cudaSuccess
                  : status == CUBLAS_STATUS_NOT_SUPPORTED ? cudaErrorNotSupported
                  : status == CUBLAS_STATUS_ALLOC_FAILED  ? cudaErrorMemoryAllocation
                                                          : cudaErrorLaunchFailure);
}

/*
 * out = x . w^T for `n` rows of weights; out begins at their column of y.  To cuBLAS, whose
 * matrices are columns, it is out^T = w . x^T.
 */
static int multiply(const ft_cuda_args *args, const void *w, ft_dtype dtype, size_t n, void *out)
{
    const ft_cuda_view *x = &args->in[0], *y = &args->out;
    const float one = 1.0f, zero = 0.0f;
    int k = (int) x->cols;
    return code_of(cublasGemmEx((cublasHandle_t) args->blas, CUBLAS_OP_T, CUBLAS_OP_N, (int) n,
                                (int) x->rows, k, &one, w, type_of(dtype), k, x->data,
                                type_of(x->dtype), k, &zero, out, type_of(y->dtype), (int) y->cols,
                                CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* Half-precision weights times floats: a block of weights becomes floats, and is multiplied. */
static int multiply_converted(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    float *converted = (float *) args->scratch;
    size_t step = block_rows(weight);
    if (args->scratch_bytes < step * weight->cols * sizeof(float))
        return (int) cudaErrorInvalidValue;
    for (size_t row = 0; row < weight->rows; row += step) {
        size_t rows = weight->rows - row < step ? weight->rows - row : step;
        size_t n = rows * weight->cols;
        int status = ft_launch(convert_kernel, ft_cover(n, THREADS), THREADS, 0, args->stream,
                               args->chip->overlaps, 1, converted, weight->data, weight->dtype,
                               row * weight->cols, n);
        if (status == 0)
            status = multiply(args, converted, FT_F32, rows, (float *) args->out.data + row);
        if (status != 0)
            return status;
    }
    return (int) cudaSuccess;
}

/*
 * Elements from one matrix to the next, the same between all `count`; 0 where it is not, or where
 * they overlap.
 */
static long long distance(const void *const data[], int count, size_t elements, ft_dtype dtype)
{
    ptrdiff_t size = dtype == FT_F32 ? 4 : 2;
    ptrdiff_t bytes = (const char *) data[1] - (const char *) data[0];
    for (int i = 2; i < count; i++)
        if ((const char *) data[i] - (const char *) data[i - 1] != bytes)
            return 0;
    return bytes % size == 0 && bytes / size >= (ptrdiff_t) elements ? bytes / size : 0;
}

/* Whether these are products of one x that differ only in weights, biases and results. */
static bool are_alike(const ft_cuda_args *a, const ft_cuda_args *b)
{
    return a->in[0].data == b->in[0].data && a->in[0].rows == b->in[0].rows &&
           a->weight[0]->rows == b->weight[0]->rows && a->weight[0]->cols == b->weight[0]->cols &&
           a->weight[0]->dtype == b->weight[0]->dtype && a->out.dtype == b->out.dtype &&
           a->op->attr.activation == b->op->attr.activation;
}

/* The products of a group as a batch with one x. */
static int multiply_group(const ft_cuda_args *const *args, int count)
{
    const ft_cuda_view *x = &args[0]->in[0], *y = &args[0]->out;
    const ft_weight *weight = args[0]->weight[0];
    const void *w[FT_CUDA_PARTS], *out[FT_CUDA_PARTS];
    const float one = 1.0f, zero = 0.0f;
    for (int i = 0; i < count; i++) {
        if (!are_alike(args[0], args[i]))
            return (int) cudaErrorNotSupported;
        w[i] = args[i]->weight[0]->data;
        out[i] = args[i]->out.data;
    }
    long long w_apart = distance(w, count, weight->rows * weight->cols, weight->dtype);
    long long y_apart = distance(out, count, y->rows * y->cols, y->dtype);
    if (w_apart == 0 || y_apart == 0 || weight->dtype != x->dtype)
        return (int) cudaErrorNotSupported;
    int k = (int) x->cols, n = (int) y->cols;
    return code_of(cublasGemmStridedBatchedEx(
        (cublasHandle_t) args[0]->blas, CUBLAS_OP_T, CUBLAS_OP_N, n, (int) x->rows, k, &one, w[0],
        type_of(weight->dtype), k, w_apart, x->data, type_of(x->dtype), k, 0, &zero, y->data,
        type_of(y->dtype), n, y_apart, count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* ------------------------------------------------------------------------------------------ */

/*
 * Sequences are few, however many there are, so that their results do not depend on their number.
 */
static bool is_few(const ft_cuda_args *args)
{
    return args->per == FT_SEQUENCES;
}

static bool is_steady(const ft_cuda_args *args)
{
    return args->batch != NULL && args->batch->steady;
}

int ft_cuda_linear_float(const ft_cuda_args *const *args, int count)
{
    const ft_weight *weight = args[0]->weight[0];
    if (is_steady(args[0]))
        return ft_cuda_linear_steady(args, count);
    if (is_few(args[0]))
        return count == 1 ? ft_cuda_linear_few(args[0]) : (int) cudaErrorNotSupported;
    int status =
        count > 1 ? multiply_group(args, count)
        : weight->dtype == args[0]->in[0].dtype
            ? multiply(args[0], weight->data, weight->dtype, weight->rows, args[0]->out.data)
            : multiply_converted(args[0]);
    return status != 0 ? status : finish(args, count);
}

size_t ft_cuda_linear_float_scratch(const ft_value *x, const ft_weight *weight)
{
    return x->dtype == weight->dtype || x->rows == FT_SEQUENCES
               ? 0
               : block_rows(weight) * weight->cols * sizeof(float);
}
