/*
 * norm.cu - layer norm of x, or of x + residual; writes floats, codes, or both.
 *
 * The sums have the order of kernels/cpu/rows_impl.h: trees of 64 elements (i and i + 32, then 16,
 * 8, 4, 2, 1 apart), and their roots from the first to the last.  So the bits are the CPU's.
 *
 * Rows are held in registers and read once.  Eight lanes hold the 64 elements of a tree, and
 * exchange 6 times for 8 elements of each.  16 lanes would need 14; 4 lanes need 3, but read and
 * write codes by halves of the memory's sectors.  F16 + F16 to F16 and codes takes 8.9 us by 8
 * lanes, 9.2 by 16, 9.9 by 4 (4096 x 768, H200; without a residual and in the second cache, 5.2).
 *
 * A warp holds a row of up to 2048 columns, a block of 128 threads one of up to 8192; where all
 * rows fit on the device at once only if 16 lanes take one, they do.  Wider rows, and those whose
 * width is no multiple of four, are read again (norm_any_kernel).
 *
 * Codes beside half-precision floats are those of the rounded values, as a quantize would make.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/quant.h"

enum { WARP = 32, THREADS = 128, TREE = 64, TREE_LANES = 8, PARTS = TREE / TREE_LANES / 4 };
#define ALL_LANES 0xffffffffu

typedef struct norm_args {
    ft_cuda_view x, residual, out, codes;
    const float *weight, *bias; /* do not change while plans run */
    float eps;
    float inverse; /* 1 / scale of the codes */
} norm_args;

__device__ __forceinline__ float exchange(float value, int lanes_apart)
{
    return __shfl_xor_sync(ALL_LANES, value, lanes_apart);
}

/* ---- Rows in registers ----------------------------------------------------------------------
 *
 * `lanes` threads (threadIdx.x) hold a row, each in `steps` times PARTS vectors of four columns.  A
 * step covers 8 columns a lane: a tree for every eight lanes.
 */

/* The first column of this lane's vector i. */
template <int lanes> __device__ __forceinline__ int column(int i)
{
    int lane = (int) threadIdx.x;
    return i / PARTS * PARTS * 4 * lanes + lane / TREE_LANES * TREE + i % PARTS * 4 * TREE_LANES +
           lane % TREE_LANES * 4;
}

/* Whether the row has vector i.  Only the last steps can lie behind its end: see launch_*(). */
template <int lanes, int steps> __device__ __forceinline__ bool has(int i, int cols)
{
    constexpr int sure = lanes > WARP ? steps / 2 : steps <= 4 ? steps - 1 : steps - 2;
    return i < sure * PARTS || column<lanes>(i) < cols;
}

/*
 * The root of the tree of these lanes.  Element 32 p + 4 (lane % 8) + e is x[p][e].  Pairs 32 apart
 * are in one lane.  Pairs 16 and 8 apart are in lanes 4 and 2 apart: each lane adds only half of
 * what both have, and is left with the e whose bits are those of its lane.
 */
__device__ __forceinline__ float add_tree(const float x[PARTS][4])
{
    bool upper = (threadIdx.x & 4) != 0, odd = (threadIdx.x & 2) != 0;
    float v[4];
#pragma unroll
    for (int e = 0; e < 4; e++)
        v[e] = x[0][e] + x[1][e];
    float a = (upper ? v[2] : v[0]) + exchange(upper ? v[0] : v[2], 4);
    float b = (upper ? v[3] : v[1]) + exchange(upper ? v[1] : v[3], 4);
    float sum = (odd ? b : a) + exchange(odd ? a : b, 2);
    sum += exchange(sum, 1);
    sum += exchange(sum, 4);
    return sum + exchange(sum, 2);
}

/* The sum of a row, in all its lanes; `root` is shared memory for it.  Behind its end are zeros. */
template <int lanes, int steps>
__device__ __forceinline__ float add_row(const float x[steps * PARTS][4],
                                         float2 root[lanes * steps / TREE_LANES / 2])
{
    float sum[steps], total = 0.0f;
#pragma unroll
    for (int s = 0; s < steps; s++)
        sum[s] = add_tree(x + s * PARTS);
    if (threadIdx.x % TREE_LANES == 0)
#pragma unroll
        for (int s = 0; s < steps; s++)
            ((float *) root)[(s * lanes + threadIdx.x) / TREE_LANES] = sum[s];
    if (lanes <= WARP)
        __syncwarp();
    else
        __syncthreads();
#pragma unroll
    for (int i = 0; i < lanes * steps / TREE_LANES / 2; i++) {
        float2 two = root[i];
        total += two.x;
        total += two.y;
    }
    return total;
}

/* What is not there is read from the start of the row, so that no load waits for a branch. */
template <ft_dtype dtype, int lanes, int steps>
__device__ __forceinline__ void fetch_as(ft_bits<4> bits[steps * PARTS], void *data, size_t at,
                                         int cols)
{
#pragma unroll
    for (int i = 0; i < steps * PARTS; i++)
        ft_fetch_as<dtype, 4>(bits[i], data,
                              at + (has<lanes, steps>(i, cols) ? column<lanes>(i) : 0));
}

template <int lanes, int steps>
__device__ __forceinline__ void fetch(ft_bits<4> bits[steps * PARTS], const ft_cuda_view &view,
                                      size_t at)
{
    int cols = (int) view.cols;
    switch (view.dtype) {
    case FT_F16:
    case FT_BF16:
        return fetch_as<FT_F16, lanes, steps>(bits, view.data, at, cols);
    case FT_I8:
        return fetch_as<FT_I8, lanes, steps>(bits, view.data, at, cols);
    default:
        return fetch_as<FT_F32, lanes, steps>(bits, view.data, at, cols);
    }
}

template <ft_dtype dtype, int vectors>
__device__ __forceinline__ void unpack_as(float x[vectors][4], const ft_bits<4> bits[vectors])
{
#pragma unroll
    for (int i = 0; i < vectors; i++)
        ft_unpack_as<dtype, 4>(x[i], bits[i]);
}

template <int vectors>
__device__ __forceinline__ void unpack(float x[vectors][4], const ft_bits<4> bits[vectors],
                                       ft_dtype dtype)
{
    switch (dtype) {
    case FT_F16:
        return unpack_as<FT_F16, vectors>(x, bits);
    case FT_BF16:
        return unpack_as<FT_BF16, vectors>(x, bits);
    case FT_I8:
        return unpack_as<FT_I8, vectors>(x, bits);
    default:
        return unpack_as<FT_F32, vectors>(x, bits);
    }
}

/* x, or x + residual, which may be codes; zeros behind the end of the row. */
template <int lanes, int steps>
__device__ __forceinline__ void load_row(float x[steps * PARTS][4], const norm_args &n, size_t at)
{
    constexpr int vectors = steps * PARTS;
    ft_bits<4> bits[vectors], more[vectors];
    float other[vectors][4];
    fetch<lanes, steps>(bits, n.x, at);
    if (n.residual.data != NULL)
        fetch<lanes, steps>(more, n.residual, at);
    unpack<vectors>(x, bits, n.x.dtype);
    if (n.residual.data != NULL) {
        unpack<vectors>(other, more, n.residual.dtype);
        bool codes = n.residual.scale > 0.0f;
#pragma unroll
        for (int i = 0; i < 4 * vectors; i++) {
            float value = other[i / 4][i % 4];
            x[i / 4][i % 4] += codes ? value * n.residual.scale : value;
        }
    }
#pragma unroll
    for (int i = 0; i < 4 * vectors; i++)
        x[i / 4][i % 4] = has<lanes, steps>(i / 4, (int) n.x.cols) ? x[i / 4][i % 4] : 0.0f;
}

/* x = (x - mean) / sqrt(variance + eps), but for weight and bias. */
template <int lanes, int steps>
__device__ __forceinline__ void standardize(float x[steps * PARTS][4], float eps, int cols,
                                            float2 root[2][lanes * steps / TREE_LANES / 2])
{
    float square[steps * PARTS][4];
    float mean = add_row<lanes, steps>(x, root[0]) / (float) cols;
#pragma unroll
    for (int i = 0; i < steps * PARTS * 4; i++) {
        float *value = &x[i / 4][i % 4];
        *value = has<lanes, steps>(i / 4, cols) ? *value - mean : 0.0f;
        square[i / 4][i % 4] = *value * *value;
    }
    float variance = add_row<lanes, steps>(square, root[1]) / (float) cols;
    float factor = 1.0f / sqrtf(variance + eps);
#pragma unroll
    for (int i = 0; i < steps * PARTS * 4; i++)
        x[i / 4][i % 4] *= factor;
}

template <int lanes, int steps>
__device__ __forceinline__ void scale_row(float x[steps * PARTS][4], const float4 *weight,
                                          const float4 *bias, int cols)
{
#pragma unroll
    for (int i = 0; i < steps * PARTS; i++) {
        int at = has<lanes, steps>(i, cols) ? column<lanes>(i) / 4 : 0;
        float4 w = weight[at], b = bias[at];
        x[i][0] = x[i][0] * w.x + b.x, x[i][1] = x[i][1] * w.y + b.y;
        x[i][2] = x[i][2] * w.z + b.z, x[i][3] = x[i][3] * w.w + b.w;
    }
}

template <ft_dtype dtype, int lanes, int steps>
__device__ __forceinline__ void store_as(float x[steps * PARTS][4], const ft_cuda_view &view,
                                         size_t at)
{
#pragma unroll
    for (int i = 0; i < steps * PARTS; i++)
        if (has<lanes, steps>(i, (int) view.cols))
            ft_store_as<dtype, 4>(view.data, at + column<lanes>(i), x[i]);
}

template <ft_dtype dtype, int lanes, int steps>
__device__ __forceinline__ void store_codes_as(float x[steps * PARTS][4], const ft_cuda_view &view,
                                               size_t at, float inverse)
{
#pragma unroll
    for (int i = 0; i < steps * PARTS; i++)
        if (has<lanes, steps>(i, (int) view.cols))
            ft_store_codes_as<dtype, 4>(view.data, at + column<lanes>(i), x[i], inverse);
}

template <int lanes, int steps>
__device__ __forceinline__ void store_row(float x[steps * PARTS][4], const norm_args &n, size_t at)
{
    if (n.out.data != NULL && n.out.dtype == FT_F16)
        store_as<FT_F16, lanes, steps>(x, n.out, at);
    else if (n.out.data != NULL && n.out.dtype == FT_BF16)
        store_as<FT_BF16, lanes, steps>(x, n.out, at);
    else if (n.out.data != NULL)
        store_as<FT_F32, lanes, steps>(x, n.out, at);
    if (n.codes.data != NULL && n.codes.dtype == FT_I8)
        store_codes_as<FT_I8, lanes, steps>(x, n.codes, at, n.inverse);
    else if (n.codes.data != NULL)
        store_codes_as<FT_F32, lanes, steps>(x, n.codes, at, n.inverse);
}

/*
 * threadIdx.y is the row of the block.  Lanes exchange with those of the row beside theirs, so what
 * lies beyond the last row computes with it, and writes nothing.  `blocks` of a multiprocessor
 * leave registers for all loads of a row to be on the way.
 */
template <int lanes, int steps, int blocks>
static __global__ void __launch_bounds__(THREADS, blocks) norm_kernel(const norm_args n)
{
    constexpr int rows = THREADS / lanes;
    __shared__ float2 root[rows][2][lanes * steps / TREE_LANES / 2];
    extern __shared__ float4 parameters[]; /* of several rows: weight, then bias */
    const float4 *weight = (const float4 *) n.weight, *bias = (const float4 *) n.bias;
    float x[steps * PARTS][4];
    int cols = (int) n.x.cols;
    size_t row = (size_t) blockIdx.x * rows + threadIdx.y, last = n.x.rows - 1;
    size_t at = (row < last ? row : last) * n.x.cols;
#pragma unroll 2
    for (int i = threadIdx.y * lanes + threadIdx.x; rows > 1 && i < cols / 4; i += THREADS) {
        parameters[i] = weight[i];
        parameters[cols / 4 + i] = bias[i];
    }
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    load_row<lanes, steps>(x, n, at);
    standardize<lanes, steps>(x, n.eps, cols, root[threadIdx.y]);
    if (rows > 1) {
        __syncthreads();
        weight = parameters, bias = parameters + cols / 4;
    }
    scale_row<lanes, steps>(x, weight, bias, cols);
    if (row <= last)
        store_row<lanes, steps>(x, n, at);
}

/* ---- Rows of any width ---------------------------------------------------------------------- */

/* What is normalized: x, or x + residual. */
__device__ __forceinline__ float value_at(const norm_args &n, size_t at)
{
    ft_bits<1> bits, more;
    float x, other;
    ft_fetch<1>(bits, n.x.data, n.x.dtype, at);
    if (n.residual.data != NULL)
        ft_fetch<1>(more, n.residual.data, n.residual.dtype, at);
    ft_unpack<1>(&x, bits, n.x.dtype);
    if (n.residual.data == NULL)
        return x;
    ft_unpack<1>(&other, more, n.residual.dtype);
    return x + (n.residual.scale > 0.0f ? other * n.residual.scale : other);
}

/*
 * The sum over a row of value - mean, or of its squares: each warp makes trees, whose roots all
 * threads add in order.
 */
template <bool squares>
__device__ __forceinline__ float add_any(const norm_args &n, size_t at, float mean, float *root)
{
    int cols = (int) n.x.cols, trees = (cols + TREE - 1) / TREE, lane = threadIdx.x % WARP;
    for (int tree = threadIdx.x / WARP; tree < trees; tree += THREADS / WARP) {
        int low = tree * TREE + lane, high = low + WARP;
        float a = low < cols ? value_at(n, at + low) - mean : 0.0f;
        float b = high < cols ? value_at(n, at + high) - mean : 0.0f;
        float sum = squares ? a * a + b * b : a + b;
        for (int apart = WARP / 2; apart > 0; apart /= 2)
            sum += exchange(sum, apart);
        if (lane == 0)
            root[tree] = sum;
    }
    __syncthreads();
    float total = 0.0f;
#pragma unroll 8
    for (int tree = 0; tree < trees; tree++)
        total += root[tree];
    __syncthreads(); /* before the next sum writes the roots */
    return total;
}

/* A block for each row. */
static __global__ void __launch_bounds__(THREADS, 8) norm_any_kernel(const norm_args n)
{
    extern __shared__ float any_root[];
    size_t cols = n.x.cols, at = blockIdx.x * cols;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    float mean = add_any<false>(n, at, 0.0f, any_root) / (float) cols;
    float variance = add_any<true>(n, at, mean, any_root) / (float) cols;
    float factor = 1.0f / sqrtf(variance + n.eps);
    for (size_t col = threadIdx.x; col < cols; col += THREADS) {
        float y = (value_at(n, at + col) - mean) * factor * n.weight[col] + n.bias[col];
        if (n.out.data != NULL)
            ft_store<1>(n.out.data, n.out.dtype, at + col, &y);
        if (n.codes.data != NULL)
            ft_store_codes<1>(n.codes.data, n.codes.dtype, at + col, &y, n.inverse);
    }
}

/* ------------------------------------------------------------------------------------------ */

template <int lanes, int steps, int blocks>
static int launch(const ft_cuda_args *args, const norm_args &n)
{
    constexpr int rows = THREADS / lanes;
    size_t parameters = rows > 1 ? 2 * n.x.cols * sizeof(float) : 0;
    return ft_launch(norm_kernel<lanes, steps, blocks>, ft_blocks(n.x.rows, rows),
                     dim3(lanes, rows), parameters, args->stream, args->chip->overlaps, 1, n);
}

static int launch_any(const ft_cuda_args *args, const norm_args &n)
{
    size_t trees = (n.x.cols + TREE - 1) / TREE;
    return ft_launch(norm_any_kernel, (unsigned) n.x.rows, THREADS, trees * sizeof(float),
                     args->stream, args->chip->overlaps, 1, n);
}

/* A warp for each row: the fewest steps that cover it. */
static int launch_warps(const ft_cuda_args *args, const norm_args &n)
{
    size_t steps = (n.x.cols + 8 * WARP - 1) / (8 * WARP);
    return steps == 1   ? launch<WARP, 1, 8>(args, n)
           : steps == 2 ? launch<WARP, 2, 8>(args, n)
           : steps == 3 ? launch<WARP, 3, 6>(args, n)
           : steps == 4 ? launch<WARP, 4, 5>(args, n)
           : steps <= 6 ? launch<WARP, 6, 4>(args, n)
                        : launch<WARP, 8, 3>(args, n);
}

/* 513 to 768 columns: 24 rows of a warp each fit on a multiprocessor, or 32 of half a warp. */
static bool fits_by_halves(const norm_args &n, size_t multiprocessors)
{
    return n.x.cols > 512 && n.x.cols <= 768 && n.x.rows > 24 * multiprocessors &&
           n.x.rows <= 32 * multiprocessors;
}

extern "C" int ft_cuda_norm(const ft_cuda_args *args)
{
    norm_args n = {};
    n.x = args->in[0], n.residual = args->in[1], n.out = args->out, n.codes = args->codes;
    n.weight = (const float *) args->weight[0]->data;
    n.bias = (const float *) args->weight[1]->data;
    n.eps = args->op->attr.eps;
    n.inverse = ft_inverse_scale(args->codes.scale);
    if (n.x.rows == 0)
        return (int) cudaSuccess;
    if (n.x.cols % 4 != 0 || n.x.cols > 8192)
        return launch_any(args, n);
    if (n.x.cols > 2048)
        return n.x.cols <= 4096 ? launch<THREADS, 4, 5>(args, n) : launch<THREADS, 8, 3>(args, n);
    return fits_by_halves(n, (size_t) args->chip->multiprocessors) ? launch<WARP / 2, 6, 4>(args, n)
                                                                   : launch_warps(args, n);
}
