/*
 * norm.cu - layer norm of x or of x + residual. Writes floats, int8 values or both, and optionally
 * the sum.
 *
 * Sums have the order of kernels/norm.h, so the bits are the CPU's. A warp holds a row of up to
 * 2048 columns in registers: 8 consecutive elements per lane for every 256 columns (a chunk). A
 * lane adds its own 8 partial sums, then 5 shuffles complete the sum. norm_block.cu handles rows of
 * other widths.
 *
 * Plans with a single dtype have specialized kernels: each warp processes several rows, keeps the
 * weights in registers, and prefetches the next row. These kernels are memory bound: f16 + f16 to
 * f16 and int8 takes 19 instructions per element (465 per lane for 768 columns). 4096 x 768 take
 * 7.0 us from memory on an H200, where the operands alone need 5.4 us at 4.1 TB/s. docs/experiments
 * lists the slower variants.
 *
 * Quantized outputs beside f16 outputs are computed from the rounded f16 values, as a QUANTIZE
 * operation would.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/rowwise/amax.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rowwise/norm.cuh"

enum { ROWS = 4, CHUNK = FT_NORM_PARTIALS };

/* Template arguments instead of a dtype: any dtype, at run time; no such value. */
enum { ANY = -1, NONE = -2 };

/* ---- Rows in registers ----------------------------------------------------------------------
 *
 * A lane has 8 columns of each chunk, from s * CHUNK + threadIdx.x * FT_NORM_VECTOR on.
 */

/*
 * How many chunks every lane is known to have. Launchers use the fewest chunks, but at least two.
 */
template <int x_dtype, int chunks>
constexpr int full_chunks = x_dtype == ANY || chunks == 2 ? 0 : chunks - 1;

/* Whether this lane's columns of chunk s are inside the row. */
template <int full> __device__ __forceinline__ bool has_columns(const ft_cuda_norm_args &n, int s)
{
    return s < full || s * CHUNK + (int) threadIdx.x * FT_NORM_VECTOR < (int) n.x.cols;
}

template <int dtype>
__device__ __forceinline__ void fetch(ft_raw_vec<FT_NORM_VECTOR> &bits, const ft_view &view,
                                      size_t at)
{
    if constexpr (dtype == ANY)
        ft_load_raw<FT_NORM_VECTOR>(bits, view.data, view.dtype, at);
    else if constexpr (dtype != NONE)
        ft_load_raw_as<(ft_dtype) dtype, FT_NORM_VECTOR>(bits, view.data, at);
}

template <int dtype>
__device__ __forceinline__ void unpack(float v[FT_NORM_VECTOR],
                                       const ft_raw_vec<FT_NORM_VECTOR> &bits, const ft_view &view)
{
    if constexpr (dtype == ANY)
        ft_unpack<FT_NORM_VECTOR>(v, bits, view.dtype);
    else if constexpr (dtype != NONE)
        ft_unpack_as<(ft_dtype) dtype, FT_NORM_VECTOR>(v, bits);
}

template <int residual_dtype>
__device__ __forceinline__ bool has_residual(const ft_cuda_norm_args &n)
{
    return residual_dtype == ANY ? n.residual.data != NULL : residual_dtype != NONE;
}

/* A row as loaded. Elements after its end are never written and stay 0. */
template <int x_dtype, int residual_dtype, int chunks> struct raw_row {
    ft_raw_vec<FT_NORM_VECTOR> x[chunks], residual[chunks];
};

/* Loads the row whose first element of this lane is `at`. */
template <int x_dtype, int residual_dtype, int chunks>
__device__ __forceinline__ void fetch_row(raw_row<x_dtype, residual_dtype, chunks> &raw,
                                          const ft_cuda_norm_args &n, size_t at)
{
#pragma unroll
    for (int s = 0; s < chunks; s++)
        if (has_columns<full_chunks<x_dtype, chunks>>(n, s)) {
            fetch<x_dtype>(raw.x[s], n.x, at + s * CHUNK);
            if (has_residual<residual_dtype>(n))
                fetch<residual_dtype>(raw.residual[s], n.residual, at + s * CHUNK);
        }
}

/* Stores float values of x's dtype, or of any dtype for ANY; v becomes the rounded values. */
template <int x_dtype>
__device__ __forceinline__ void store(const ft_view &view, float v[FT_NORM_VECTOR], size_t at)
{
    if (view.data == NULL)
        return;
    if constexpr (x_dtype == ANY)
        ft_store<FT_NORM_VECTOR>(view.data, view.dtype, at, v);
    else
        ft_store_as<(ft_dtype) x_dtype, FT_NORM_VECTOR>(view.data, at, v);
}

/* x, or x + residual. A sum that is stored is used as rounded. */
template <int x_dtype, int residual_dtype, int chunks>
__device__ __forceinline__ void unpack_row(float x[chunks][FT_NORM_VECTOR],
                                           const raw_row<x_dtype, residual_dtype, chunks> &raw,
                                           const ft_cuda_norm_args &n, size_t at)
{
#pragma unroll
    for (int s = 0; s < chunks; s++) {
        float added[FT_NORM_VECTOR];
        unpack<x_dtype>(x[s], raw.x[s], n.x);
        if (!has_residual<residual_dtype>(n))
            continue;
        unpack<residual_dtype>(added, raw.residual[s], n.residual);
#pragma unroll
        for (int e = 0; e < FT_NORM_VECTOR; e++)
            x[s][e] = fmaf(added[e], n.residual_scale, x[s][e]);
        if (has_columns<full_chunks<x_dtype, chunks>>(n, s))
            store<x_dtype>(n.second, x[s], at + s * CHUNK);
    }
}

/* The sum of a row's elements or of their squares, in all lanes. */
template <int chunks, bool squares>
__device__ __forceinline__ float sum_row(const float x[chunks][FT_NORM_VECTOR])
{
    float part[FT_NORM_VECTOR];
#pragma unroll
    for (int e = 0; e < FT_NORM_VECTOR; e++)
        part[e] = squares ? x[0][e] * x[0][e] : x[0][e];
#pragma unroll
    for (int i = FT_NORM_VECTOR; i < chunks * FT_NORM_VECTOR; i++) {
        float value = x[i / FT_NORM_VECTOR][i % FT_NORM_VECTOR], *sum = &part[i % FT_NORM_VECTOR];
        *sum = squares ? fmaf(value, value, *sum) : *sum + value;
    }
    return ft_warp_sum_f32(((part[0] + part[4]) + (part[2] + part[6])) +
                           ((part[1] + part[5]) + (part[3] + part[7])));
}

/*
 * x = (x - mean) / sqrt(variance + eps), without weight and bias. The CPU's partial sums start at
 * 0, these with an element: adding 0 at the end gives its sign to a sum that consists of -0 only.
 */
template <int chunks, int full>
__device__ __forceinline__ void normalize_row(float x[chunks][FT_NORM_VECTOR],
                                              const ft_cuda_norm_args &n)
{
    float mean = ft_norm_mean(sum_row<chunks, false>(x) + 0.0f, n.cols, n.inverse_cols);
#pragma unroll
    for (int s = 0; s < chunks; s++) {
        float offset = has_columns<full>(n, s) ? mean : 0.0f;
#pragma unroll
        for (int e = 0; e < FT_NORM_VECTOR; e++)
            x[s][e] -= offset;
    }
    float variance = ft_norm_mean(sum_row<chunks, true>(x), n.cols, n.inverse_cols);
    float factor = ft_norm_factor(variance, n.eps);
#pragma unroll
    for (int i = 0; i < chunks * FT_NORM_VECTOR; i++)
        x[i / FT_NORM_VECTOR][i % FT_NORM_VECTOR] *= factor;
}

/* Weight and bias of a lane's columns of one chunk. */
typedef struct affine {
    float4 weight[2], bias[2];
} affine;

__device__ __forceinline__ void load_affine(affine &p, const ft_cuda_norm_args &n, int s)
{
    int at = s * (CHUNK / 4) + (int) threadIdx.x * 2;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        p.weight[i] = ((const float4 *) n.weight)[at + i];
        p.bias[i] = ((const float4 *) n.bias)[at + i];
    }
}

__device__ __forceinline__ void apply_affine(float x[FT_NORM_VECTOR], const affine &p)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float4 w = p.weight[i], b = p.bias[i];
        x[4 * i] = fmaf(x[4 * i], w.x, b.x);
        x[4 * i + 1] = fmaf(x[4 * i + 1], w.y, b.y);
        x[4 * i + 2] = fmaf(x[4 * i + 2], w.z, b.z);
        x[4 * i + 3] = fmaf(x[4 * i + 3], w.w, b.w);
    }
}

/* 1 / scale for a row: a static scale, or the dynamic scale of the row. */
template <int chunks, int full>
__device__ __forceinline__ float row_inverse_scale(const float x[chunks][FT_NORM_VECTOR],
                                                   const ft_cuda_norm_args &n, size_t row)
{
    if (n.quantized.scales == NULL)
        return n.inverse;
    float amax = 0.0f;
#pragma unroll
    for (int i = 0; i < chunks * FT_NORM_VECTOR; i++)
        if (has_columns<full>(n, i / FT_NORM_VECTOR))
            amax = ft_amax(amax, x[i / FT_NORM_VECTOR][i % FT_NORM_VECTOR]);
    float scale = ft_scale_from_amax(ft_warp_amax(amax));
    if (threadIdx.x == 0)
        n.quantized.scales[row] = scale;
    return ft_inverse_scale(scale);
}

/* Stores int8 values, or any quantized dtype for ANY. */
template <int x_dtype>
__device__ __forceinline__ void
store_quantized(const float x[FT_NORM_VECTOR], const ft_cuda_norm_args &n, size_t at, float inverse)
{
    if constexpr (x_dtype == ANY)
        ft_store_quantized<FT_NORM_VECTOR>(n.quantized.data, n.quantized.dtype, at, x, inverse);
    else
        ft_store_quantized_as<FT_I8, FT_NORM_VECTOR>(n.quantized.data, at, x, inverse);
}

/* Multiplies the columns that are quantized by the smoothing. */
template <int chunks, int full>
__device__ __forceinline__ void smooth_row(float x[chunks][FT_NORM_VECTOR],
                                           const ft_cuda_norm_args &n)
{
#pragma unroll
    for (int s = 0; s < chunks; s++)
        if (has_columns<full>(n, s)) {
            int at = s * (CHUNK / 4) + (int) threadIdx.x * 2;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float4 factor = ((const float4 *) n.smoothing)[at + i];
                x[s][4 * i] *= factor.x;
                x[s][4 * i + 1] *= factor.y;
                x[s][4 * i + 2] *= factor.z;
                x[s][4 * i + 3] *= factor.w;
            }
        }
}

/* Stores floats, int8 values, or both. */
template <int x_dtype, int chunks, int full>
__device__ __forceinline__ void store_row(float x[chunks][FT_NORM_VECTOR],
                                          const ft_cuda_norm_args &n, size_t row, size_t at)
{
#pragma unroll
    for (int s = 0; s < chunks; s++)
        if (has_columns<full>(n, s))
            store<x_dtype>(n.out, x[s], at + s * CHUNK);
    if (n.quantized.data == NULL)
        return;
    if (n.smoothing != NULL)
        smooth_row<chunks, full>(x, n);
    float inverse = row_inverse_scale<chunks, full>(x, n, row);
#pragma unroll
    for (int s = 0; s < chunks; s++)
        if (has_columns<full>(n, s))
            store_quantized<x_dtype>(x[s], n, at + s * CHUNK, inverse);
}

/*
 * A warp processes a row, then every `stride`-th row after it. Specialized kernels keep the weights
 * in registers and prefetch the next row; `blocks` CTAs per multiprocessor leave registers for
 * both.
 */
template <int x_dtype, int residual_dtype, int chunks, int blocks>
static __global__ void __launch_bounds__(FT_WARP *ROWS, blocks)
    norm_kernel(const ft_cuda_norm_args n)
{
    constexpr bool prefetch_rows = x_dtype != ANY;
    constexpr int full = full_chunks<x_dtype, chunks>;
    size_t row = (size_t) blockIdx.x * ROWS + threadIdx.y, stride = (size_t) gridDim.x * ROWS;
    size_t at = row * n.x.cols + threadIdx.x * FT_NORM_VECTOR;
    raw_row<x_dtype, residual_dtype, chunks> raw = {};
    affine p[chunks];
#pragma unroll
    for (int s = 0; prefetch_rows && s < chunks; s++)
        if (has_columns<full>(n, s))
            load_affine(p[s], n, s);
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (row < n.x.rows)
        fetch_row(raw, n, at);
    while (row < n.x.rows) {
        float x[chunks][FT_NORM_VECTOR];
        size_t next = at + stride * n.x.cols;
        unpack_row(x, raw, n, at);
        if (prefetch_rows && row + stride < n.x.rows)
            fetch_row(raw, n, next);
        normalize_row<chunks, full>(x, n);
#pragma unroll
        for (int s = 0; s < chunks; s++)
            if (has_columns<full>(n, s)) {
                if (!prefetch_rows)
                    load_affine(p[s], n, s);
                apply_affine(x[s], p[s]);
            }
        store_row<x_dtype, chunks, full>(x, n, row, at);
        row += stride;
        if (!prefetch_rows && row < n.x.rows)
            fetch_row(raw, n, next);
        at = next;
    }
}

/* ---- Launch -------------------------------------------------------------------------------- */

template <int x_dtype, int residual_dtype, int chunks, int blocks>
static int launch_chunks(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    unsigned ctas = ft_ceil_div(n.x.rows, ROWS);
    unsigned max_ctas = (unsigned) args->props->sm_count * blocks;
    return ft_launch(norm_kernel<x_dtype, residual_dtype, chunks, blocks>,
                     ctas < max_ctas ? ctas : max_ctas, dim3(FT_WARP, ROWS), 0, args->stream,
                     args->props->has_pdl, 1, n);
}

/* One float dtype, also for the residual unless it is int8; int8 quantized output. */
static bool has_specialized_kernel(const ft_cuda_norm_args &n)
{
    ft_dtype dtype = n.x.dtype;
    bool residual = n.residual.data == NULL || n.residual.dtype == FT_I8 ||
                    (n.residual.dtype == dtype && n.residual.scale <= 0.0f);
    return (dtype == FT_F16 || dtype == FT_BF16 || dtype == FT_F32) && residual &&
           n.x.cols <= 4 * CHUNK && (n.out.data == NULL || n.out.dtype == dtype) &&
           (n.second.data == NULL || n.second.dtype == dtype) &&
           (n.quantized.data == NULL || n.quantized.dtype == FT_I8);
}

template <int x_dtype, int residual_dtype>
static int launch_specialized(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    constexpr int fewer_ctas = x_dtype == FT_F32; /* f32 takes more registers than f16 */
    return n.x.cols <= 2 * CHUNK
               ? launch_chunks<x_dtype, residual_dtype, 2, 5 - fewer_ctas>(args, n)
           : n.x.cols <= 3 * CHUNK
               ? launch_chunks<x_dtype, residual_dtype, 3, 4 - fewer_ctas>(args, n)
               : launch_chunks<x_dtype, residual_dtype, 4, 3 - fewer_ctas>(args, n);
}

template <int x_dtype> static int launch_dtype(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    return n.residual.data == NULL     ? launch_specialized<x_dtype, NONE>(args, n)
           : n.residual.dtype == FT_I8 ? launch_specialized<x_dtype, FT_I8>(args, n)
                                       : launch_specialized<x_dtype, x_dtype>(args, n);
}

extern "C" int ft_cuda_norm(const ft_cuda_args *args)
{
    ft_cuda_norm_args n = {};
    n.x = args->in[0], n.residual = args->in[1], n.out = args->out, n.quantized = args->quantized;
    n.second = args->second;
    n.weight = (const float *) args->weight[0]->data;
    n.bias = args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data;
    const ft_weight *smoothing = args->weight[FT_WEIGHT_SMOOTHING];
    n.smoothing = smoothing == NULL ? NULL : (const float *) smoothing->data;
    n.residual_scale = n.residual.scale > 0.0f ? n.residual.scale : 1.0f;
    n.eps = args->op->attr.eps;
    n.inverse = ft_inverse_scale(args->quantized.scale);
    n.cols = (float) n.x.cols;
    n.inverse_cols = 1.0f / n.cols;
    if (n.x.rows == 0)
        return (int) cudaSuccess;
    if (args->op->attr.norm != FT_NORM_LAYER || n.x.cols % FT_NORM_VECTOR != 0 ||
        n.x.cols > 8 * CHUNK)
        return ft_cuda_norm_block(args, n);
    if (has_specialized_kernel(n))
        return n.x.dtype == FT_F16    ? launch_dtype<FT_F16>(args, n)
               : n.x.dtype == FT_BF16 ? launch_dtype<FT_BF16>(args, n)
                                      : launch_dtype<FT_F32>(args, n);
    return n.x.cols <= 4 * CHUNK ? launch_chunks<ANY, ANY, 4, 3>(args, n)
                                 : launch_chunks<ANY, ANY, 8, 2>(args, n);
}
