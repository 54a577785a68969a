/*
 * norm.cu - layer norm of x, or of x + residual; writes floats, codes, or both.
 *
 * The sums have the order of kernels/cpu/rows_impl.h: trees of 64 elements (i and i + 32, then 16,
 * 8, 4, 2, 1 apart), and their roots from the first to the last.  So the bits are the CPU's.
 *
 * Rows are held in registers and read once.  Four lanes hold the 64 elements of a tree: most of its
 * additions are then inside a lane, where 16 lanes would exchange three times as much.  Where there
 * are rows enough to fill the device, 16 lanes take a row of up to 1024 columns, so that what is
 * done once for a row costs half.  Rows of more than 8192 columns, and those whose width is no
 * multiple of four, are read again instead (norm_any_kernel).
 *
 * Where floats are written in half precision, codes are those of the rounded values: the same as
 * a quantize of its own would make.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/quant.h"

enum { WARP = 32, THREADS = 128, TREE = 64, TREE_LANES = 4, PARTS = TREE / TREE_LANES / 4 };
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
 * step covers 16 columns a lane: a tree for every four lanes.  The row ends in the last step.
 */

/* The first column of this lane's vector i. */
template <int lanes> __device__ __forceinline__ int column(int i)
{
    int lane = (int) threadIdx.x;
    return i / PARTS * 16 * lanes + lane / TREE_LANES * TREE + i % PARTS * 16 +
           lane % TREE_LANES * 4;
}

/*
 * The root of the tree of these lanes.  Element 16 p + 4 (lane % 4) + e is x[p][e].  Pairs 32 and
 * 16 apart are in one lane.  Pairs 8 and 4 apart are in lanes 2 and 1 apart: each lane adds only
 * half of what both have, and is left with the e that has the bits of its lane.
 */
__device__ __forceinline__ float add_tree(const float x[PARTS][4])
{
    bool upper = (threadIdx.x & 2) != 0, odd = (threadIdx.x & 1) != 0;
    float v[4];
#pragma unroll
    for (int e = 0; e < 4; e++)
        v[e] = (x[0][e] + x[2][e]) + (x[1][e] + x[3][e]);
    float a = (upper ? v[2] : v[0]) + exchange(upper ? v[0] : v[2], 2);
    float b = (upper ? v[3] : v[1]) + exchange(upper ? v[1] : v[3], 2);
    float sum = (odd ? b : a) + exchange(odd ? a : b, 1);
    sum += exchange(sum, 2);
    return sum + exchange(sum, 1);
}

/* The sum of a row, in all its lanes; `root` is shared memory for it.  Behind its end are zeros. */
template <int lanes, int steps>
__device__ __forceinline__ float add_row(const float x[steps * PARTS][4],
                                         float4 root[lanes * steps / TREE_LANES / 4])
{
    float total = 0.0f;
#pragma unroll
    for (int s = 0; s < steps; s++) {
        float sum = add_tree(x + s * PARTS);
        if (threadIdx.x % TREE_LANES == 0)
            ((float *) root)[(s * lanes + threadIdx.x) / TREE_LANES] = sum;
    }
    if (lanes <= WARP)
        __syncwarp();
    else
        __syncthreads();
#pragma unroll
    for (int i = 0; i < lanes * steps / TREE_LANES / 4; i++) {
        float4 four = root[i];
        total += four.x;
        total += four.y;
        total += four.z;
        total += four.w;
    }
    return total;
}

/* Whether the row has vector i. */
template <int lanes, int vectors> __device__ __forceinline__ bool has(int i, int cols)
{
    return i < vectors - PARTS || column<lanes>(i) < cols;
}

/* What is not there is read from the start of the row, so that no load waits for a branch. */
template <ft_dtype dtype, int lanes, int vectors>
__device__ __forceinline__ void fetch_as(ft_bits<4> bits[vectors], void *data, size_t at, int cols)
{
#pragma unroll
    for (int i = 0; i < vectors; i++)
        ft_fetch_as<dtype, 4>(bits[i], data,
                              at + (has<lanes, vectors>(i, cols) ? column<lanes>(i) : 0));
}

template <int lanes, int vectors>
__device__ __forceinline__ void fetch(ft_bits<4> bits[vectors], const ft_cuda_view &view, size_t at)
{
    int cols = (int) view.cols;
    switch (view.dtype) {
    case FT_F16:
    case FT_BF16:
        return fetch_as<FT_F16, lanes, vectors>(bits, view.data, at, cols);
    case FT_I8:
        return fetch_as<FT_I8, lanes, vectors>(bits, view.data, at, cols);
    default:
        return fetch_as<FT_F32, lanes, vectors>(bits, view.data, at, cols);
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

/* x, or x + residual, which may be codes. */
template <int lanes, int vectors>
__device__ __forceinline__ void load_row(float x[vectors][4], const norm_args &n, size_t at)
{
    ft_bits<4> bits[vectors], more[vectors];
    float other[vectors][4];
    fetch<lanes, vectors>(bits, n.x, at);
    if (n.residual.data != NULL)
        fetch<lanes, vectors>(more, n.residual, at);
    unpack<vectors>(x, bits, n.x.dtype);
    if (n.residual.data == NULL)
        return;
    unpack<vectors>(other, more, n.residual.dtype);
    bool codes = n.residual.scale > 0.0f;
#pragma unroll
    for (int i = 0; i < 4 * vectors; i++) {
        float value = other[i / 4][i % 4];
        x[i / 4][i % 4] += codes ? value * n.residual.scale : value;
    }
}

/* Zeros behind the end of the row. */
template <int lanes, int vectors>
__device__ __forceinline__ void clear_rest(float x[vectors][4], int cols)
{
#pragma unroll
    for (int i = 4 * (vectors - PARTS); i < 4 * vectors; i++)
        x[i / 4][i % 4] = has<lanes, vectors>(i / 4, cols) ? x[i / 4][i % 4] : 0.0f;
}

/* x = (x - mean) / sqrt(variance + eps), but for weight and bias. */
template <int lanes, int steps>
__device__ __forceinline__ void standardize(float x[steps * PARTS][4], float eps, int cols,
                                            float4 root[2][lanes * steps / TREE_LANES / 4])
{
    constexpr int vectors = steps * PARTS;
    float square[vectors][4];
    clear_rest<lanes, vectors>(x, cols);
    float mean = add_row<lanes, steps>(x, root[0]) / (float) cols;
#pragma unroll
    for (int i = 0; i < 4 * vectors; i++)
        x[i / 4][i % 4] -= mean;
    clear_rest<lanes, vectors>(x, cols);
#pragma unroll
    for (int i = 0; i < 4 * vectors; i++)
        square[i / 4][i % 4] = x[i / 4][i % 4] * x[i / 4][i % 4];
    float variance = add_row<lanes, steps>(square, root[1]) / (float) cols;
    float factor = 1.0f / sqrtf(variance + eps);
#pragma unroll
    for (int i = 0; i < 4 * vectors; i++)
        x[i / 4][i % 4] *= factor;
}

template <int lanes, int vectors>
__device__ __forceinline__ void scale_row(float x[vectors][4], const float4 *weight,
                                          const float4 *bias, int cols)
{
#pragma unroll
    for (int i = 0; i < vectors; i++) {
        int col = has<lanes, vectors>(i, cols) ? column<lanes>(i) : 0;
        float4 w = weight[col / 4], b = bias[col / 4];
        x[i][0] = x[i][0] * w.x + b.x, x[i][1] = x[i][1] * w.y + b.y;
        x[i][2] = x[i][2] * w.z + b.z, x[i][3] = x[i][3] * w.w + b.w;
    }
}

template <ft_dtype dtype, int lanes, int vectors>
__device__ __forceinline__ void store_as(float x[vectors][4], const ft_cuda_view &view, size_t at)
{
#pragma unroll
    for (int i = 0; i < vectors; i++)
        if (has<lanes, vectors>(i, (int) view.cols))
            ft_store_as<dtype, 4>(view.data, at + column<lanes>(i), x[i]);
}

template <ft_dtype dtype, int lanes, int vectors>
__device__ __forceinline__ void store_codes_as(float x[vectors][4], const ft_cuda_view &view,
                                               size_t at, float inverse)
{
#pragma unroll
    for (int i = 0; i < vectors; i++)
        if (has<lanes, vectors>(i, (int) view.cols))
            ft_store_codes_as<dtype, 4>(view.data, at + column<lanes>(i), x[i], inverse);
}

template <int lanes, int vectors>
__device__ __forceinline__ void store_row(float x[vectors][4], const norm_args &n, size_t at)
{
    if (n.out.data != NULL && n.out.dtype == FT_F16)
        store_as<FT_F16, lanes, vectors>(x, n.out, at);
    else if (n.out.data != NULL && n.out.dtype == FT_BF16)
        store_as<FT_BF16, lanes, vectors>(x, n.out, at);
    else if (n.out.data != NULL)
        store_as<FT_F32, lanes, vectors>(x, n.out, at);
    if (n.codes.data != NULL && n.codes.dtype == FT_I8)
        store_codes_as<FT_I8, lanes, vectors>(x, n.codes, at, n.inverse);
    else if (n.codes.data != NULL)
        store_codes_as<FT_F32, lanes, vectors>(x, n.codes, at, n.inverse);
}

/* Few enough for all loads of a row to be on the way; of 768 columns, 32 rows at a time. */
constexpr int blocks_at_once(int lanes, int steps)
{
    return steps == 1                    ? 8
           : steps == 2                  ? 5
           : steps == 3 && lanes <= WARP ? 4
           : lanes <= WARP               ? 3
                                         : 2;
}

/*
 * threadIdx.y is the row of the block.  Lanes exchange with those of the row beside theirs, so what
 * lies beyond the last row computes with it, and writes nothing.
 */
template <int lanes, int steps>
static __global__ void __launch_bounds__(THREADS, blocks_at_once(lanes, steps))
    norm_kernel(const norm_args n)
{
    constexpr int vectors = steps * PARTS, rows = THREADS / lanes;
    __shared__ float4 root[rows][2][lanes * steps / TREE_LANES / 4];
    extern __shared__ float4 parameters[]; /* of several rows: weight, then bias */
    const float4 *weight = (const float4 *) n.weight, *bias = (const float4 *) n.bias;
    float x[vectors][4];
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
    load_row<lanes, vectors>(x, n, at);
    standardize<lanes, steps>(x, n.eps, cols, root[threadIdx.y]);
    if (rows > 1) {
        __syncthreads();
        weight = parameters, bias = parameters + cols / 4;
    }
    scale_row<lanes, vectors>(x, weight, bias, cols);
    if (row <= last)
        store_row<lanes, vectors>(x, n, at);
}

/* ---- Rows of any width ---------------------------------------------------------------------- */

/* What is normalized: x, or x + residual; 0 behind the end of the row. */
__device__ __forceinline__ float value_at(const norm_args &n, size_t at, size_t col)
{
    ft_bits<1> bits, more;
    float x = 0.0f, other;
    if (col >= n.x.cols)
        return 0.0f;
    ft_fetch<1>(bits, n.x.data, n.x.dtype, at + col);
    if (n.residual.data != NULL)
        ft_fetch<1>(more, n.residual.data, n.residual.dtype, at + col);
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
    size_t trees = (n.x.cols + TREE - 1) / TREE, lane = threadIdx.x % WARP;
    for (size_t tree = threadIdx.x / WARP; tree < trees; tree += THREADS / WARP) {
        size_t low = tree * TREE + lane, high = low + WARP;
        float a = low < n.x.cols ? value_at(n, at, low) - mean : 0.0f;
        float b = high < n.x.cols ? value_at(n, at, high) - mean : 0.0f;
        float sum = squares ? a * a + b * b : a + b;
        for (int apart = WARP / 2; apart > 0; apart /= 2)
            sum += exchange(sum, apart);
        if (lane == 0)
            root[tree] = sum;
    }
    __syncthreads();
    float total = 0.0f;
#pragma unroll 8
    for (size_t tree = 0; tree < trees; tree++)
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
        float y = (value_at(n, at, col) - mean) * factor * n.weight[col] + n.bias[col];
        if (n.out.data != NULL)
            ft_store<1>(n.out.data, n.out.dtype, at + col, &y);
        if (n.codes.data != NULL)
            ft_store_codes<1>(n.codes.data, n.codes.dtype, at + col, &y, n.inverse);
    }
}

/* ------------------------------------------------------------------------------------------ */

template <int lanes, int steps> static int launch(const ft_cuda_args *args, const norm_args &n)
{
    constexpr int rows = THREADS / lanes;
    size_t parameters = rows > 1 ? 2 * n.x.cols * sizeof(float) : 0;
    return ft_launch(norm_kernel<lanes, steps>, ft_blocks(n.x.rows, rows), dim3(lanes, rows),
                     parameters, args->stream, args->chip->overlaps, 1, n);
}

static int launch_any(const ft_cuda_args *args, const norm_args &n)
{
    size_t trees = (n.x.cols + TREE - 1) / TREE;
    return ft_launch(norm_any_kernel, (unsigned) n.x.rows, THREADS, trees * sizeof(float),
                     args->stream, args->chip->overlaps, 1, n);
}

/* Whether a warp for each row leaves half of the device idle. */
static bool is_short(const ft_cuda_args *args)
{
    return args->in[0].rows <= (size_t) args->chip->multiprocessors * 8;
}

extern "C" int ft_cuda_norm(const ft_cuda_args *args)
{
    norm_args n = {};
    n.x = args->in[0], n.residual = args->in[1], n.out = args->out, n.codes = args->codes;
    n.weight = (const float *) args->weight[0]->data;
    n.bias = (const float *) args->weight[1]->data;
    n.eps = args->op->attr.eps;
    n.inverse = ft_inverse_scale(args->codes.scale);
    size_t cols = n.x.cols;
    if (n.x.rows == 0)
        return (int) cudaSuccess;
    if (cols % 4 != 0 || cols > 8192)
        return launch_any(args, n);
    if (cols > 2048)
        return cols <= 4096   ? launch<128, 2>(args, n)
               : cols <= 6144 ? launch<128, 3>(args, n)
                              : launch<128, 4>(args, n);
    if (cols > 1024)
        return cols <= 1536 ? launch<32, 3>(args, n) : launch<32, 4>(args, n);
    if (is_short(args))
        return cols <= 512 ? launch<32, 1>(args, n) : launch<32, 2>(args, n);
    return cols <= 256   ? launch<16, 1>(args, n)
           : cols <= 512 ? launch<16, 2>(args, n)
           : cols <= 768 ? launch<16, 3>(args, n)
                         : launch<16, 4>(args, n);
}
