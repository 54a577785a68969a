/*
 * linear_float.cu - y = act(x . w^T + b) in float: cuBLAS, then bias and activation in place.
 *
 * Few rows go to linear_gemv.cu, batch-invariant plans and devices with wgmma to linear_f16.cu.
 * Accumulation is in float for all dtypes, and F32 is not rounded to TF32.  F16 and BF16 weights of
 * an F32 plan are converted chunk by chunk, so that scratch does not grow with the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/cuda/rows.cuh"

#include <cublas_v2.h>

/* 16 MB of converted weights: 5461 rows of 768, so most matrices are one chunk. */
enum { CONVERTED_BYTES = 16 << 20 };

/* ---- Bias and activation --------------------------------------------------------------------- */

/* A thread block processes 16 rows of 64 column vectors: 4 loads in flight per thread. */
enum { BLOCK_VECTORS = 64, BLOCK_ROWS = 4, ROWS_PER_THREAD = 4 };

typedef struct bias_act_args {
    void *y[FT_CUDA_MAX_FUSED];
    const float *bias[FT_CUDA_MAX_FUSED]; /* NULL: none */
    ft_dtype dtype;
    ft_activation activation;
    size_t rows, cols;
} bias_act_args;

/* blockIdx.z is the linear of the group. */
template <int N>
static __global__ void __launch_bounds__(BLOCK_VECTORS *BLOCK_ROWS)
    bias_act_kernel(const __grid_constant__ bias_act_args f)
{
    void *y = f.y[blockIdx.z];
    const float *bias = f.bias[blockIdx.z];
    size_t first = (size_t) blockIdx.x * BLOCK_ROWS * ROWS_PER_THREAD + threadIdx.y;
    size_t col = ((size_t) blockIdx.y * BLOCK_VECTORS + threadIdx.x) * N;
    ft_raw_vec<N> bits[ROWS_PER_THREAD];
    float b[N] = {}, v[ROWS_PER_THREAD * N];
    if (bias != NULL && col < f.cols)
        ft_load<N>(b, (void *) bias, FT_F32, col);
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (col >= f.cols)
        return;
#pragma unroll
    for (int s = 0; s < ROWS_PER_THREAD; s++)
        if (first + s * BLOCK_ROWS < f.rows)
            ft_load_raw<N>(bits[s], y, f.dtype, (first + s * BLOCK_ROWS) * f.cols + col);
#pragma unroll
    for (int s = 0; s < ROWS_PER_THREAD; s++)
        ft_unpack<N>(v + s * N, bits[s], f.dtype);
#pragma unroll
    for (int i = 0; i < ROWS_PER_THREAD * N; i++)
        v[i] += b[i % N];
    ft_activate_vec<ROWS_PER_THREAD * N>(f.activation, v);
#pragma unroll
    for (int s = 0; s < ROWS_PER_THREAD; s++)
        if (first + s * BLOCK_ROWS < f.rows)
            ft_store<N>(y, f.dtype, (first + s * BLOCK_ROWS) * f.cols + col, v + s * N);
}

template <int N>
static int launch_bias_act(const ft_cuda_args *args, const bias_act_args &f, int count)
{
    dim3 grid(ft_ceil_div(f.rows, BLOCK_ROWS * ROWS_PER_THREAD),
              ft_ceil_div(f.cols, BLOCK_VECTORS * N), (unsigned) count);
    return ft_launch(bias_act_kernel<N>, grid, dim3(BLOCK_VECTORS, BLOCK_ROWS), 0, args->stream,
                     args->props->has_pdl, 1, f);
}

static int bias_act(const ft_cuda_args *const *args, int count)
{
    bias_act_args f = {};
    bool has_bias = false;
    f.dtype = args[0]->out.dtype;
    f.activation = args[0]->op->attr.activation;
    f.rows = args[0]->out.rows;
    f.cols = args[0]->out.cols;
    for (int i = 0; i < count; i++) {
        f.y[i] = args[i]->out.data;
        f.bias[i] = args[i]->weight[1] == NULL ? NULL : (const float *) args[i]->weight[1]->data;
        has_bias = has_bias || f.bias[i] != NULL;
    }
    if (!has_bias && f.activation == FT_ACT_NONE)
        return (int) cudaSuccess;
    return f.cols % 4 == 0 ? launch_bias_act<4>(args[0], f, count)
                           : launch_bias_act<1>(args[0], f, count);
}

/* ---- Converted weights ----------------------------------------------------------------------- */

enum { THREADS = 256 };

/* out[i] = in[first + i] */
static __global__ void __launch_bounds__(THREADS)
    convert_kernel(float *out, const void *in, ft_dtype dtype, size_t first, size_t n)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (i < n)
        ft_load<1>(&out[i], (void *) in, dtype, first + i);
}

static size_t chunk_rows(const ft_weight *weight)
{
    size_t rows = CONVERTED_BYTES / sizeof(float) / weight->cols;
    return rows == 0 ? 1 : rows < weight->rows ? rows : weight->rows;
}

/* ---- GEMM ------------------------------------------------------------------------------------ */

static cudaDataType_t cuda_type_of(ft_dtype dtype)
{
    return dtype == FT_F16 ? CUDA_R_16F : dtype == FT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static int error_of(cublasStatus_t status)
{
    return (int) (status == CUBLAS_STATUS_SUCCESS         ? cudaSuccess
                  : status == CUBLAS_STATUS_NOT_SUPPORTED ? cudaErrorNotSupported
                  : status == CUBLAS_STATUS_ALLOC_FAILED  ? cudaErrorMemoryAllocation
                                                          : cudaErrorLaunchFailure);
}

/*
 * out = x . w^T for `n` rows of w; out points to their first column in y.  In the column-major view
 * of cuBLAS this is out^T = w . x^T.
 */
static int gemm(const ft_cuda_args *args, const void *w, ft_dtype dtype, size_t n, void *out)
{
    const ft_view *x = &args->in[0], *y = &args->out;
    const float alpha = 1.0f, beta = 0.0f;
    int k = (int) x->cols;
    return error_of(cublasGemmEx((cublasHandle_t) args->blas, CUBLAS_OP_T, CUBLAS_OP_N, (int) n,
                                 (int) x->rows, k, &alpha, w, cuda_type_of(dtype), k, x->data,
                                 cuda_type_of(x->dtype), k, &beta, out, cuda_type_of(y->dtype),
                                 (int) y->cols, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* F16 or BF16 weights with F32 x: convert and multiply one chunk of weight rows at a time. */
static int gemm_converted(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    float *converted = (float *) args->scratch;
    size_t chunk = chunk_rows(weight);
    if (args->scratch_bytes < chunk * weight->cols * sizeof(float))
        return (int) cudaErrorInvalidValue;
    for (size_t row = 0; row < weight->rows; row += chunk) {
        size_t rows = weight->rows - row < chunk ? weight->rows - row : chunk;
        size_t n = rows * weight->cols;
        int status = ft_launch(convert_kernel, ft_ceil_div(n, THREADS), THREADS, 0, args->stream,
                               args->props->has_pdl, 1, converted, weight->data, weight->dtype,
                               row * weight->cols, n);
        if (status == 0)
            status = gemm(args, converted, FT_F32, rows, (float *) args->out.data + row);
        if (status != 0)
            return status;
    }
    return (int) cudaSuccess;
}

/* ------------------------------------------------------------------------------------------ */

/* GEMV even for many sequences, so that results do not depend on the batch size. */
static bool is_per_sequence(const ft_cuda_args *args)
{
    return args->per == FT_SEQUENCES;
}

int ft_cuda_linear_float(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    if (ft_cuda_is_batch_invariant(args))
        return ft_cuda_linear_batch_invariant(args);
    if (is_per_sequence(args))
        return ft_cuda_linear_gemv(args);
    if (ft_cuda_linear_wgmma_supports(args))
        return ft_cuda_linear_wgmma(args);
    int status = weight->dtype == args->in[0].dtype
                     ? gemm(args, weight->data, weight->dtype, weight->rows, args->out.data)
                     : gemm_converted(args);
    return status != 0 ? status : bias_act(&args, 1);
}

size_t ft_cuda_linear_float_scratch(const ft_value *x, const ft_weight *weight)
{
    return x->dtype == weight->dtype || x->rows == FT_SEQUENCES
               ? 0
               : chunk_rows(weight) * weight->cols * sizeof(float);
}

/* ---- Groups --------------------------------------------------------------------------------- */

static bool is_float(const ft_weight *weight)
{
    return weight->dtype != FT_I8 && weight->scale == NULL && weight->groupwise.scale == NULL;
}

bool ft_cuda_is_float_group(const ft_cuda_group *group)
{
    const ft_weight *weight = group->linear[0]->weight[0];
    bool supported = group->linears > 1 && group->linears <= FT_CUDA_MAX_FUSED &&
                     group->linear[0]->in[0].rows > 0;
    for (int i = 0; supported && i < group->linears; i++) {
        const ft_weight *other = group->linear[i]->weight[0];
        supported = is_float(other) && other->rows == weight->rows && other->cols == weight->cols &&
                    other->dtype == weight->dtype;
    }
    return supported;
}

extern "C" bool ft_cuda_group_cublas_supports(const ft_cuda_group *group)
{
    const ft_cuda_args *first = group->linear[0];
    bool supported = ft_cuda_is_float_group(group) && !ft_cuda_is_batch_invariant(first) &&
                     !is_per_sequence(first) && first->weight[0]->dtype == first->in[0].dtype &&
                     group->contiguous && group->result_stride > 0;
    for (int i = 1; supported && i < group->linears; i++)
        supported = group->linear[i]->out.dtype == first->out.dtype &&
                    group->linear[i]->op->attr.activation == first->op->attr.activation;
    return supported;
}

/* The GEMMs share x, and the weights of a contiguous group have a constant stride. */
static int gemm_strided_batched(const ft_cuda_group *group)
{
    const ft_cuda_args *first = group->linear[0];
    const ft_view *x = &first->in[0], *y = &first->out;
    const ft_weight *weight = first->weight[0], *next = group->linear[1]->weight[0];
    const float alpha = 1.0f, beta = 0.0f;
    ptrdiff_t bytes = (const char *) next->data - (const char *) weight->data;
    long long w_stride = bytes / (weight->dtype == FT_F32 ? 4 : 2);
    long long y_stride = (long long) group->result_stride / (y->dtype == FT_F32 ? 4 : 2);
    int k = (int) x->cols, n = (int) y->cols;
    return error_of(cublasGemmStridedBatchedEx(
        (cublasHandle_t) first->blas, CUBLAS_OP_T, CUBLAS_OP_N, n, (int) x->rows, k, &alpha,
        weight->data, cuda_type_of(weight->dtype), k, w_stride, x->data, cuda_type_of(x->dtype), k,
        0, &beta, y->data, cuda_type_of(y->dtype), n, y_stride, group->linears, CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT));
}

extern "C" int ft_cuda_group_cublas(const ft_cuda_group *group)
{
    if (!ft_cuda_group_cublas_supports(group))
        return (int) cudaErrorNotSupported;
    int status = gemm_strided_batched(group);
    return status != 0 ? status : bias_act(group->linear, group->linears);
}
