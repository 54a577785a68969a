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

enum { ROWS = 4, STEP = FT_NORM_PARTS };

/* Template arguments instead of a dtype: any dtype, at run time; no such value. */
enum { ANY = -1, NONE = -2 };

/* ---- Rows in registers ----------------------------------------------------------------------
 *
 * A lane has 8 columns of each chunk, from s * CHUNK + threadIdx.x * FT_NORM_VECTOR on.
 */

/*
 * How many chunks every lane is known to have. Launchers use the fewest chunks, but at least two.
 */
template <int x_dtype, int steps>
constexpr int sure_steps = x_dtype == ANY || steps == 2 ? 0 : steps - 1;

/* Whether this lane's columns of chunk s are inside the row. */
template <int sure> __device__ __forceinline__ bool has(const ft_cuda_norm_args &n, int s)
{
    return s < sure || s * STEP + (int) threadIdx.x * FT_EIGHT < (int) n.x.cols;
}

template <int dtype>
__device__ __forceinline__ void fetch(ft_bits<FT_EIGHT> &bits, const ft_cuda_view &view, size_t at)
{
    if constexpr (dtype == ANY)
        ft_fetch<FT_EIGHT>(bits, view.data, view.dtype, at);
    else if constexpr (dtype != NONE)
        ft_fetch_as<(ft_dtype) dtype, FT_EIGHT>(bits, view.data, at);
}

template <int dtype>
__device__ __forceinline__ void unpack(float v[FT_EIGHT], const ft_bits<FT_EIGHT> &bits,
                                       const ft_cuda_view &view)
{
    if constexpr (dtype == ANY)
        ft_unpack<FT_EIGHT>(v, bits, view.dtype);
    else if constexpr (dtype != NONE)
        ft_unpack_as<(ft_dtype) dtype, FT_EIGHT>(v, bits);
}

template <int residual_dtype>
__device__ __forceinline__ bool has_residual(const ft_cuda_norm_args &n)
{
    return residual_dtype == ANY ? n.residual.data != NULL : residual_dtype != NONE;
}

/* A row as loaded. Elements after its end are never written and stay 0. */
template <int x_dtype, int residual_dtype, int steps> struct raw_row {
    ft_bits<FT_EIGHT> x[steps], residual[steps];
};

/* Loads the row whose first element of this lane is `at`. */
template <int x_dtype, int residual_dtype, int steps>
__device__ __forceinline__ void fetch_row(raw_row<x_dtype, residual_dtype, steps> &raw,
                                          const ft_cuda_norm_args &n, size_t at)
{
#pragma unroll
    for (int s = 0; s < steps; s++)
        if (has<sure_steps<x_dtype, steps>>(n, s)) {
            fetch<x_dtype>(raw.x[s], n.x, at + s * STEP);
            if (has_residual<residual_dtype>(n))
                fetch<residual_dtype>(raw.residual[s], n.residual, at + s * STEP);
        }
}

/* Stores float values of x's dtype, or of any dtype for ANY; v becomes the rounded values. */
template <int x_dtype>
__device__ __forceinline__ void store(const ft_cuda_view &view, float v[FT_EIGHT], size_t at)
{
    if (view.data == NULL)
        return;
    if constexpr (x_dtype == ANY)
        ft_store<FT_EIGHT>(view.data, view.dtype, at, v);
    else
        ft_store_as<(ft_dtype) x_dtype, FT_EIGHT>(view.data, at, v);
}

/* x, or x + residual. A sum that is stored is used as rounded. */
template <int x_dtype, int residual_dtype, int steps>
__device__ __forceinline__ void unpack_row(float x[steps][FT_EIGHT],
                                           const raw_row<x_dtype, residual_dtype, steps> &raw,
                                           const ft_cuda_norm_args &n, size_t at)
{
#pragma unroll
    for (int s = 0; s < steps; s++) {
        float more[FT_EIGHT];
        unpack<x_dtype>(x[s], raw.x[s], n.x);
        if (!has_residual<residual_dtype>(n))
            continue;
        unpack<residual_dtype>(more, raw.residual[s], n.residual);
#pragma unroll
        for (int e = 0; e < FT_EIGHT; e++)
            x[s][e] = fmaf(more[e], n.residual_scale, x[s][e]);
        if (has<sure_steps<x_dtype, steps>>(n, s))
            store<x_dtype>(n.second, x[s], at + s * STEP);
    }
}

/* The sum of a row's elements or of their squares, in all lanes. */
template <int steps, bool squares>
__device__ __forceinline__ float add_row(const float x[steps][FT_EIGHT])
{
    float part[FT_EIGHT];
#pragma unroll
    for (int e = 0; e < FT_EIGHT; e++)
        part[e] = squares ? x[0][e] * x[0][e] : x[0][e];
#pragma unroll
    for (int i = FT_EIGHT; i < steps * FT_EIGHT; i++) {
        float value = x[i / FT_EIGHT][i % FT_EIGHT], *sum = &part[i % FT_EIGHT];
        *sum = squares ? fmaf(value, value, *sum) : *sum + value;
    }
    return ft_add_lanes(((part[0] + part[4]) + (part[2] + part[6])) +
                        ((part[1] + part[5]) + (part[3] + part[7])));
}

/*
 * x = (x - mean) / sqrt(variance + eps), without weight and bias. The CPU's partial sums start at
 * 0, these with an element: adding 0 at the end gives its sign to a sum that consists of -0 only.
 */
template <int steps, int sure>
__device__ __forceinline__ void standardize(float x[steps][FT_EIGHT], const ft_cuda_norm_args &n)
{
    float mean = ft_norm_mean(add_row<steps, false>(x) + 0.0f, n.cols, n.inverse_cols);
#pragma unroll
    for (int s = 0; s < steps; s++) {
        float less = has<sure>(n, s) ? mean : 0.0f;
#pragma unroll
        for (int e = 0; e < FT_EIGHT; e++)
            x[s][e] -= less;
    }
    float variance = ft_norm_mean(add_row<steps, true>(x), n.cols, n.inverse_cols);
    float factor = ft_norm_factor(variance, n.eps);
#pragma unroll
    for (int i = 0; i < steps * FT_EIGHT; i++)
        x[i / FT_EIGHT][i % FT_EIGHT] *= factor;
}

/* Weight and bias of a lane's columns of one chunk. */
typedef struct parameters {
    float4 weight[2], bias[2];
} parameters;

__device__ __forceinline__ void load_parameters(parameters &p, const ft_cuda_norm_args &n, int s)
{
    int at = s * (STEP / 4) + (int) threadIdx.x * 2;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        p.weight[i] = ((const float4 *) n.weight)[at + i];
        p.bias[i] = ((const float4 *) n.bias)[at + i];
    }
}

__device__ __forceinline__ void apply_affine(float x[FT_EIGHT], const parameters &p)
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
template <int steps, int sure>
__device__ __forceinline__ float inverse_of_row(const float x[steps][FT_EIGHT],
                                                const ft_cuda_norm_args &n, size_t row)
{
    if (n.codes.scales == NULL)
        return n.inverse;
    float amax = 0.0f;
#pragma unroll
    for (int i = 0; i < steps * FT_EIGHT; i++)
        if (has<sure>(n, i / FT_EIGHT))
            amax = ft_amax(amax, x[i / FT_EIGHT][i % FT_EIGHT]);
    float scale = ft_scale_from_amax(ft_amax_of_warp(amax));
    if (threadIdx.x == 0)
        n.codes.scales[row] = scale;
    return ft_inverse_scale(scale);
}

/* Stores int8 values, or any quantized dtype for ANY. */
template <int x_dtype>
__device__ __forceinline__ void store_codes(const float x[FT_EIGHT], const ft_cuda_norm_args &n,
                                            size_t at, float inverse)
{
    if constexpr (x_dtype == ANY)
        ft_store_codes<FT_EIGHT>(n.codes.data, n.codes.dtype, at, x, inverse);
    else
        ft_store_codes_as<FT_I8, FT_EIGHT>(n.codes.data, at, x, inverse);
}

/* Stores floats, int8 values, or both. */
template <int x_dtype, int steps, int sure>
__device__ __forceinline__ void store_row(float x[steps][FT_EIGHT], const ft_cuda_norm_args &n,
                                          size_t row, size_t at)
{
#pragma unroll
    for (int s = 0; s < steps; s++)
        if (has<sure>(n, s))
            store<x_dtype>(n.out, x[s], at + s * STEP);
    if (n.codes.data == NULL)
        return;
    float inverse = inverse_of_row<steps, sure>(x, n, row);
#pragma unroll
    for (int s = 0; s < steps; s++)
        if (has<sure>(n, s))
            store_codes<x_dtype>(x[s], n, at + s * STEP, inverse);
}

/*
 * A warp processes a row, then every `stride`-th row after it. Specialized kernels keep the weights
 * in registers and prefetch the next row; `blocks` CTAs per multiprocessor leave registers for
 * both.
 */
template <int x_dtype, int residual_dtype, int steps, int blocks>
static __global__ void __launch_bounds__(FT_WARP *ROWS, blocks)
    norm_kernel(const ft_cuda_norm_args n)
{
    constexpr bool ahead = x_dtype != ANY;
    constexpr int sure = sure_steps<x_dtype, steps>;
    size_t row = (size_t) blockIdx.x * ROWS + threadIdx.y, stride = (size_t) gridDim.x * ROWS;
    size_t at = row * n.x.cols + threadIdx.x * FT_EIGHT;
    raw_row<x_dtype, residual_dtype, steps> raw = {};
    parameters p[steps];
#pragma unroll
    for (int s = 0; ahead && s < steps; s++)
        if (has<sure>(n, s))
            load_parameters(p[s], n, s);
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (row < n.x.rows)
        fetch_row(raw, n, at);
    while (row < n.x.rows) {
        float x[steps][FT_EIGHT];
        size_t next = at + stride * n.x.cols;
        unpack_row(x, raw, n, at);
        if (ahead && row + stride < n.x.rows)
            fetch_row(raw, n, next);
        standardize<steps, sure>(x, n);
#pragma unroll
        for (int s = 0; s < steps; s++)
            if (has<sure>(n, s)) {
                if (!ahead)
                    load_parameters(p[s], n, s);
                apply_affine(x[s], p[s]);
            }
        store_row<x_dtype, steps, sure>(x, n, row, at);
        row += stride;
        if (!ahead && row < n.x.rows)
            fetch_row(raw, n, next);
        at = next;
    }
}

/* ---- Launch -------------------------------------------------------------------------------- */

template <int x_dtype, int residual_dtype, int steps, int blocks>
static int launch_steps(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    unsigned all = ft_cover(n.x.rows, ROWS);
    unsigned most = (unsigned) args->chip->multiprocessors * blocks;
    return ft_launch(norm_kernel<x_dtype, residual_dtype, steps, blocks>, all < most ? all : most,
                     dim3(FT_WARP, ROWS), 0, args->stream, args->chip->overlaps, 1, n);
}

/* One float dtype, also for the residual unless it is int8; int8 quantized output. */
static bool is_plain(const ft_cuda_norm_args &n)
{
    ft_dtype dtype = n.x.dtype;
    bool residual = n.residual.data == NULL || n.residual.dtype == FT_I8 ||
                    (n.residual.dtype == dtype && n.residual.scale <= 0.0f);
    return (dtype == FT_F16 || dtype == FT_F32) && residual && n.x.cols <= 4 * STEP &&
           (n.out.data == NULL || n.out.dtype == dtype) &&
           (n.second.data == NULL || n.second.dtype == dtype) &&
           (n.codes.data == NULL || n.codes.dtype == FT_I8);
}

template <int x_dtype, int residual_dtype>
static int launch_form(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    constexpr int fewer = x_dtype == FT_F32; /* f32 takes more registers than f16 */
    return n.x.cols <= 2 * STEP   ? launch_steps<x_dtype, residual_dtype, 2, 5 - fewer>(args, n)
           : n.x.cols <= 3 * STEP ? launch_steps<x_dtype, residual_dtype, 3, 4 - fewer>(args, n)
                                  : launch_steps<x_dtype, residual_dtype, 4, 3 - fewer>(args, n);
}

template <int x_dtype> static int launch_plain(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    return n.residual.data == NULL     ? launch_form<x_dtype, NONE>(args, n)
           : n.residual.dtype == FT_I8 ? launch_form<x_dtype, FT_I8>(args, n)
                                       : launch_form<x_dtype, x_dtype>(args, n);
}

extern "C" int ft_cuda_norm(const ft_cuda_args *args)
{
    ft_cuda_norm_args n = {};
    n.x = args->in[0], n.residual = args->in[1], n.out = args->out, n.codes = args->codes;
    n.second = args->second;
    n.weight = (const float *) args->weight[0]->data;
    n.bias = args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data;
    n.residual_scale = n.residual.scale > 0.0f ? n.residual.scale : 1.0f;
    n.eps = args->op->attr.eps;
    n.inverse = ft_inverse_scale(args->codes.scale);
    n.cols = (float) n.x.cols;
    n.inverse_cols = 1.0f / n.cols;
    if (n.x.rows == 0)
        return (int) cudaSuccess;
    if (args->op->attr.norm != FT_NORM_LAYER || n.x.cols % FT_EIGHT != 0 || n.x.cols > 8 * STEP)
        return ft_cuda_norm_any(args, n);
    if (is_plain(n))
        return n.x.dtype == FT_F16 ? launch_plain<FT_F16>(args, n) : launch_plain<FT_F32>(args, n);
    return n.x.cols <= 4 * STEP ? launch_steps<ANY, ANY, 4, 3>(args, n)
                                : launch_steps<ANY, ANY, 8, 2>(args, n);
}
