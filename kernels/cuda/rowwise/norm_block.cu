/*
 * norm_block.cu - RMS norms, and layer norms that norm.cu does not support: rows whose width is no
 * multiple of eight or exceeds the registers of a warp.
 *
 * A CTA processes a row. Its threads load consecutive elements and write them to shared memory,
 * from which one thread per partial sum (kernels/norm.h) adds. Rows wider than the registers of a
 * CTA are processed in chunks, which are computed again each time they are needed.
 *
 * A decode step has few rows and is bound by the longest dependency chain. RMS norms of its plans
 * therefore have specialized kernels with compile-time dtypes and a single chunk. 1 x 4096 (f32 +
 * f16 to f32 and int8) takes 2.16 us on an H200; docs/experiments lists the slower variants.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/rowwise/amax.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rowwise/norm.cuh"

enum { PARTS = FT_NORM_PARTIALS, MAX_SPECIALIZED_COLS = 8192 };

/* Template arguments instead of a dtype: any dtype, at run time; no such value. */
enum { ANY = -1, NONE = -2 };

/*
 * Kernel traits: vectors of `vector_size` elements, `kept_vectors` vectors in the registers of a
 * thread, and up to `threads` threads per CTA, at least one for each partial sum.
 */
template <ft_norm_kind kind_, int x_, int residual_, int vector_size_, int kept_vectors_>
struct norm_traits {
    static constexpr ft_norm_kind kind = kind_;
    static constexpr int x = x_, residual = residual_, vector_size = vector_size_,
                         kept_vectors = kept_vectors_;
    static constexpr int threads = MAX_SPECIALIZED_COLS / 4 / kept_vectors_;
    static constexpr bool single_chunk = x_ != ANY; /* rows are a single chunk */
};

/* A thread's elements of a chunk: vectors that are blockDim.x vectors apart. */
template <typename F> struct chunk_values {
    float v[F::kept_vectors][F::vector_size];
};

template <typename F> struct raw {
    ft_raw_vec<F::vector_size> v[F::kept_vectors];
};

/* A thread's first element of a chunk, and its column. */
typedef struct chunk_position {
    size_t at;
    int col, cols;
} chunk_position;

template <typename F> __device__ __forceinline__ int vector_offset(int k)
{
    return k * F::vector_size * (int) blockDim.x;
}

template <typename F> __device__ __forceinline__ bool has_columns(const chunk_position &p, int k)
{
    return p.col + vector_offset<F>(k) < p.cols;
}

template <typename F>
__device__ __forceinline__ chunk_position chunk_position_of(const ft_cuda_norm_args &n, int base)
{
    int col = base + (int) threadIdx.x * F::vector_size;
    return { blockIdx.x * n.x.cols + col, col, (int) n.x.cols };
}

/* ---- Loads and stores ------------------------------------------------------------------------ */

template <typename F, ft_dtype dtype>
__device__ __forceinline__ void fetch_as(raw<F> &bits, void *data, const chunk_position &p)
{
#pragma unroll
    for (int k = 0; k < F::kept_vectors; k++)
        if (has_columns<F>(p, k))
            ft_load_raw_as<dtype, F::vector_size>(bits.v[k], data, p.at + vector_offset<F>(k));
}

template <typename F, int dtype>
__device__ __forceinline__ void fetch(raw<F> &bits, const ft_view &view, const chunk_position &p)
{
    if constexpr (dtype != ANY)
        fetch_as<F, (ft_dtype) dtype>(bits, view.data, p);
    else if (view.dtype == FT_F32)
        fetch_as<F, FT_F32>(bits, view.data, p);
    else if (view.dtype == FT_I8)
        fetch_as<F, FT_I8>(bits, view.data, p);
    else
        fetch_as<F, FT_F16>(bits, view.data, p);
}

template <typename F, int dtype>
__device__ __forceinline__ void unpack(float v[F::vector_size],
                                       const ft_raw_vec<F::vector_size> &bits, const ft_view &view)
{
    if constexpr (dtype != ANY)
        ft_unpack_as<(ft_dtype) dtype, F::vector_size>(v, bits);
    else
        ft_unpack<F::vector_size>(v, bits, view.dtype);
}

/* Stores float values if there is an output; x becomes the rounded values. */
template <typename F, int dtype>
__device__ __forceinline__ void store(const ft_view &view, chunk_values<F> &x,
                                      const chunk_position &p)
{
    if (view.data == NULL)
        return;
#pragma unroll
    for (int k = 0; k < F::kept_vectors; k++)
        if (!has_columns<F>(p, k))
            break;
        else if constexpr (dtype != ANY)
            ft_store_as<(ft_dtype) dtype, F::vector_size>(view.data, p.at + vector_offset<F>(k),
                                                          x.v[k]);
        else
            ft_store<F::vector_size>(view.data, view.dtype, p.at + vector_offset<F>(k), x.v[k]);
}

template <typename F>
__device__ __forceinline__ void store_quantized(const ft_view &view, const chunk_values<F> &x,
                                                const chunk_position &p, float inverse)
{
#pragma unroll
    for (int k = 0; k < F::kept_vectors; k++)
        if (!has_columns<F>(p, k))
            break;
        else if (view.dtype == FT_I8)
            ft_store_quantized_as<FT_I8, F::vector_size>(view.data, p.at + vector_offset<F>(k),
                                                         x.v[k], inverse);
        else
            ft_store_quantized_as<FT_F32, F::vector_size>(view.data, p.at + vector_offset<F>(k),
                                                          x.v[k], inverse);
}

template <typename F>
__device__ __forceinline__ void load_vector(chunk_values<F> &to, const float *from,
                                            const chunk_position &p)
{
#pragma unroll
    for (int k = 0; k < F::kept_vectors; k++)
        if (has_columns<F>(p, k)) {
            const void *vector = from + p.col + vector_offset<F>(k);
            ft_unpack_as<FT_F32, F::vector_size>(to.v[k],
                                                 *(const ft_raw_vec<F::vector_size> *) vector);
        }
}

/*
 * Loads the input of the norm; zeros after the end of the row. A sum that is stored is used as
 * rounded.
 */
template <typename F>
__device__ __forceinline__ void load(chunk_values<F> &x, const ft_cuda_norm_args &n,
                                     const chunk_position &p)
{
    raw<F> bits = {}, added = {};
    bool has_residual = F::residual == ANY ? n.residual.data != NULL : F::residual != NONE;
    fetch<F, F::x>(bits, n.x, p);
    if (F::residual != NONE && has_residual)
        fetch<F, F::residual == NONE ? ANY : F::residual>(added, n.residual, p);
#pragma unroll
    for (int k = 0; k < F::kept_vectors; k++) {
        float r[F::vector_size];
        unpack<F, F::x>(x.v[k], bits.v[k], n.x);
        if (F::residual == NONE || !has_residual)
            continue;
        unpack<F, F::residual == NONE ? ANY : F::residual>(r, added.v[k], n.residual);
#pragma unroll
        for (int e = 0; e < F::vector_size; e++)
            x.v[k][e] = fmaf(r[e], n.residual_scale, x.v[k][e]);
    }
    store<F, F::x>(n.second, x, p);
}

/* ---- Sums ---------------------------------------------------------------------------------- */

/* Writes a chunk to shared memory, which all threads have finished reading. */
template <typename F>
__device__ __forceinline__ void store_to_shared(float *shared, const chunk_values<F> &x)
{
#pragma unroll
    for (int k = 0; k < F::kept_vectors; k++) {
        void *vector = shared + vector_offset<F>(k) + (int) threadIdx.x * F::vector_size;
        ft_raw_vec<F::vector_size> bits;
#pragma unroll
        for (int e = 0; e < F::vector_size; e++)
            bits.word[e] = __float_as_uint(x.v[k][e]);
        *(ft_raw_vec<F::vector_size> *) vector = bits;
    }
    __syncthreads();
}

/* part += this thread's elements, or the squares of their distances to the mean. */
template <bool squares>
__device__ __forceinline__ float accumulate_part(float part, const float *shared, float mean,
                                                 int count)
{
    if (threadIdx.x >= PARTS)
        return part;
#pragma unroll 8
    for (int i = (int) threadIdx.x; i < count; i += PARTS) {
        float distance = shared[i] - mean;
        part = squares ? fmaf(distance, distance, part) : part + distance;
    }
    return part;
}

/* ---- A row ---------------------------------------------------------------------------------- */

template <typename F>
__device__ __forceinline__ void smooth(chunk_values<F> &x, const ft_cuda_norm_args &n,
                                       const chunk_position &p)
{
    chunk_values<F> factor = {};
    load_vector(factor, n.smoothing, p);
#pragma unroll
    for (int i = 0; i < F::kept_vectors * F::vector_size; i++)
        x.v[i / F::vector_size][i % F::vector_size] *=
            factor.v[i / F::vector_size][i % F::vector_size];
}

/*
 * x = (x - mean) * factor * weight [+ bias], stored if there is an output, then smoothed for the
 * quantized output.
 */
template <typename F>
__device__ __forceinline__ void apply_norm(chunk_values<F> &x, const chunk_values<F> &weight,
                                           float mean, float factor, const ft_cuda_norm_args &n,
                                           const chunk_position &p)
{
    chunk_values<F> bias = {};
    if (F::kind == FT_NORM_LAYER)
        load_vector(bias, n.bias, p);
#pragma unroll
    for (int i = 0; i < F::kept_vectors * F::vector_size; i++) {
        float &v = x.v[i / F::vector_size][i % F::vector_size],
              w = weight.v[i / F::vector_size][i % F::vector_size];
        v = F::kind == FT_NORM_RMS
                ? v * factor * w
                : fmaf((v - mean) * factor, w, bias.v[i / F::vector_size][i % F::vector_size]);
    }
    store<F, ANY>(n.out, x, p);
    if (n.smoothing != NULL)
        smooth(x, n, p);
}

/*
 * blockIdx.x is the row; there are `chunk_cols` floats of shared memory. If the row is a single
 * chunk, each loop runs once, and its data is still there from the previous loop.
 */
template <typename F>
static __global__ void __launch_bounds__(F::threads) norm_block_kernel(const ft_cuda_norm_args n)
{
    extern __shared__ float4 smem[];
    __shared__ float vector_sums[2][FT_NORM_VECTORS];
    __shared__ float warp_amax[FT_WARP];
    float *shared = (float *) smem, mean = 0.0f, sum = 0.0f, squares = 0.0f, amax = 0.0f;
    int cols = (int) n.x.cols,
        chunk_cols = F::single_chunk ? cols : vector_offset<F>(F::kept_vectors);
    chunk_values<F> x, weight = {};
    if (F::single_chunk)
        load_vector(weight, n.weight, chunk_position_of<F>(n, 0));
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    for (int base = 0; base < cols; base += chunk_cols) {
        int count = min(cols - base, chunk_cols);
        load(x, n, chunk_position_of<F>(n, base));
        if (base > 0)
            __syncthreads(); /* the previous chunk has been added */
        store_to_shared(shared, x);
        if (F::kind == FT_NORM_LAYER)
            sum = accumulate_part<false>(sum, shared, 0.0f, count);
        else
            squares = accumulate_part<true>(squares, shared, 0.0f, count);
    }
    if (F::kind == FT_NORM_LAYER) {
        mean = ft_norm_mean(ft_block_sum_parts(sum, vector_sums[0]), n.cols, n.inverse_cols);
        for (int base = 0; base < cols; base += chunk_cols) {
            if (cols > chunk_cols) {
                load(x, n, chunk_position_of<F>(n, base));
                __syncthreads();
                store_to_shared(shared, x);
            }
            squares = accumulate_part<true>(squares, shared, mean, min(cols - base, chunk_cols));
        }
    }
    float variance =
        ft_norm_mean(ft_block_sum_parts(squares, vector_sums[1]), n.cols, n.inverse_cols);
    float factor = ft_norm_factor(variance, n.eps);
    for (int base = 0; base < cols; base += chunk_cols) {
        chunk_position p = chunk_position_of<F>(n, base);
        if (!F::single_chunk && cols > chunk_cols)
            load(x, n, p);
        if (!F::single_chunk)
            load_vector(weight, n.weight, p);
        apply_norm(x, weight, mean, factor, n, p);
        if (n.quantized.data != NULL && n.quantized.scales == NULL)
            store_quantized(n.quantized, x, p, n.inverse);
#pragma unroll
        for (int i = 0; i < F::kept_vectors * F::vector_size; i++)
            if (has_columns<F>(p, i / F::vector_size))
                amax = ft_amax(amax, x.v[i / F::vector_size][i % F::vector_size]);
    }
    if (n.quantized.scales == NULL)
        return;
    float scale = ft_scale_from_amax(ft_block_amax(amax, warp_amax));
    if (threadIdx.x == 0)
        n.quantized.scales[blockIdx.x] = scale;
    for (int base = 0; base < cols; base += chunk_cols) {
        chunk_position p = chunk_position_of<F>(n, base);
        if (!F::single_chunk && cols > chunk_cols) {
            load(x, n, p);
            load_vector(weight, n.weight, p);
            apply_norm(x, weight, mean, factor, n, p);
        }
        store_quantized(n.quantized, x, p, ft_inverse_scale(scale));
    }
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <typename F> static int launch(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    size_t vectors = (n.x.cols + F::vector_size - 1) / F::vector_size;
    size_t threads =
        (vectors + F::kept_vectors * FT_WARP - 1) / (F::kept_vectors * FT_WARP) * FT_WARP;
    threads = threads < PARTS ? PARTS : threads < F::threads ? threads : F::threads;
    return ft_launch(norm_block_kernel<F>, (unsigned) n.x.rows, (unsigned) threads,
                     threads * F::kept_vectors * F::vector_size * sizeof(float), args->stream,
                     args->props->has_pdl, 1, n);
}

template <int vector_size>
static int launch_generic(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    return args->op->attr.norm == FT_NORM_RMS
               ? launch<norm_traits<FT_NORM_RMS, ANY, ANY, vector_size, 4>>(args, n)
               : launch<norm_traits<FT_NORM_LAYER, ANY, ANY, vector_size, 4>>(args, n);
}

/*
 * Fewer vectors per thread shorten the dependency chain; with many rows more loads in flight are
 * better.
 */
template <int x, int residual>
static int launch_specialized(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    bool is_small_batch = n.x.rows <= 2 * (size_t) args->props->sm_count;
    return is_small_batch || n.x.cols <= MAX_SPECIALIZED_COLS / 4
               ? launch<norm_traits<FT_NORM_RMS, x, residual, 4, 2>>(args, n)
               : launch<norm_traits<FT_NORM_RMS, x, residual, 4, 4>>(args, n);
}

template <int x> static int launch_dtype(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    return n.residual.data == NULL ? launch_specialized<x, NONE>(args, n)
                                   : launch_specialized<x, x>(args, n);
}

/*
 * Whether an RMS norm has a specialized kernel: sums have x's dtype, and the residual is not int8.
 */
static bool has_specialized_kernel(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    bool residual = n.residual.data == NULL || n.residual.dtype == n.x.dtype ||
                    (n.x.dtype == FT_F32 && n.residual.dtype == FT_F16);
    return args->op->attr.norm == FT_NORM_RMS && n.x.cols % 4 == 0 &&
           n.x.cols <= MAX_SPECIALIZED_COLS && residual && n.residual.scale <= 0.0f &&
           (n.second.data == NULL || n.second.dtype == n.x.dtype);
}

int ft_cuda_norm_block(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    if (!has_specialized_kernel(args, n))
        return n.x.cols % 4 == 0 ? launch_generic<4>(args, n) : launch_generic<1>(args, n);
    if (n.x.dtype == FT_F32 && n.residual.data != NULL && n.residual.dtype == FT_F16)
        return launch_specialized<FT_F32, FT_F16>(args, n);
    return n.x.dtype == FT_F16    ? launch_dtype<FT_F16>(args, n)
           : n.x.dtype == FT_BF16 ? launch_dtype<FT_BF16>(args, n)
                                  : launch_dtype<FT_F32>(args, n);
}
