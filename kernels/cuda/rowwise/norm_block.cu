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

enum { PARTS = FT_NORM_PARTS, WIDEST = 8192 };

/* Template arguments instead of a dtype: any dtype, at run time; no such value. */
enum { ANY = -1, NONE = -2 };

/*
 * Kernel traits: vectors of `vector_size` elements, `kept_vectors` vectors in the registers of a
 * thread, and up to `threads` threads per CTA, at least one for each partial sum.
 */
template <ft_norm_kind kind_, int x_, int residual_, int wide_, int kept_> struct form {
    static constexpr ft_norm_kind kind = kind_;
    static constexpr int x = x_, residual = residual_, wide = wide_, kept = kept_;
    static constexpr int threads = WIDEST / 4 / kept_;
    static constexpr bool whole = x_ != ANY; /* rows are a single chunk */
};

/* A thread's elements of a chunk: vectors that are blockDim.x vectors apart. */
template <typename F> struct elements {
    float v[F::kept][F::wide];
};

template <typename F> struct raw {
    ft_bits<F::wide> v[F::kept];
};

/* A thread's first element of a chunk, and its column. */
typedef struct place {
    size_t at;
    int col, cols;
} place;

template <typename F> __device__ __forceinline__ int step_of(int k)
{
    return k * F::wide * (int) blockDim.x;
}

template <typename F> __device__ __forceinline__ bool has(const place &p, int k)
{
    return p.col + step_of<F>(k) < p.cols;
}

template <typename F>
__device__ __forceinline__ place place_of(const ft_cuda_norm_args &n, int base)
{
    int col = base + (int) threadIdx.x * F::wide;
    return { blockIdx.x * n.x.cols + col, col, (int) n.x.cols };
}

/* ---- Loads and stores ------------------------------------------------------------------------ */

template <typename F, ft_dtype dtype>
__device__ __forceinline__ void fetch_as(raw<F> &bits, void *data, const place &p)
{
#pragma unroll
    for (int k = 0; k < F::kept; k++)
        if (has<F>(p, k))
            ft_fetch_as<dtype, F::wide>(bits.v[k], data, p.at + step_of<F>(k));
}

template <typename F, int dtype>
__device__ __forceinline__ void fetch(raw<F> &bits, const ft_cuda_view &view, const place &p)
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
__device__ __forceinline__ void unpack(float v[F::wide], const ft_bits<F::wide> &bits,
                                       const ft_cuda_view &view)
{
    if constexpr (dtype != ANY)
        ft_unpack_as<(ft_dtype) dtype, F::wide>(v, bits);
    else
        ft_unpack<F::wide>(v, bits, view.dtype);
}

/* Stores float values if there is an output; x becomes the rounded values. */
template <typename F, int dtype>
__device__ __forceinline__ void store(const ft_cuda_view &view, elements<F> &x, const place &p)
{
    if (view.data == NULL)
        return;
#pragma unroll
    for (int k = 0; k < F::kept; k++)
        if (!has<F>(p, k))
            break;
        else if constexpr (dtype != ANY)
            ft_store_as<(ft_dtype) dtype, F::wide>(view.data, p.at + step_of<F>(k), x.v[k]);
        else
            ft_store<F::wide>(view.data, view.dtype, p.at + step_of<F>(k), x.v[k]);
}

template <typename F>
__device__ __forceinline__ void store_codes(const ft_cuda_view &view, const elements<F> &x,
                                            const place &p, float inverse)
{
#pragma unroll
    for (int k = 0; k < F::kept; k++)
        if (!has<F>(p, k))
            break;
        else if (view.dtype == FT_I8)
            ft_store_codes_as<FT_I8, F::wide>(view.data, p.at + step_of<F>(k), x.v[k], inverse);
        else
            ft_store_codes_as<FT_F32, F::wide>(view.data, p.at + step_of<F>(k), x.v[k], inverse);
}

template <typename F>
__device__ __forceinline__ void load_vector(elements<F> &to, const float *from, const place &p)
{
#pragma unroll
    for (int k = 0; k < F::kept; k++)
        if (has<F>(p, k)) {
            const void *vector = from + p.col + step_of<F>(k);
            ft_unpack_as<FT_F32, F::wide>(to.v[k], *(const ft_bits<F::wide> *) vector);
        }
}

/*
 * Loads the input of the norm; zeros after the end of the row. A sum that is stored is used as
 * rounded.
 */
template <typename F>
__device__ __forceinline__ void load(elements<F> &x, const ft_cuda_norm_args &n, const place &p)
{
    raw<F> bits = {}, more = {};
    bool adds = F::residual == ANY ? n.residual.data != NULL : F::residual != NONE;
    fetch<F, F::x>(bits, n.x, p);
    if (F::residual != NONE && adds)
        fetch<F, F::residual == NONE ? ANY : F::residual>(more, n.residual, p);
#pragma unroll
    for (int k = 0; k < F::kept; k++) {
        float r[F::wide];
        unpack<F, F::x>(x.v[k], bits.v[k], n.x);
        if (F::residual == NONE || !adds)
            continue;
        unpack<F, F::residual == NONE ? ANY : F::residual>(r, more.v[k], n.residual);
#pragma unroll
        for (int e = 0; e < F::wide; e++)
            x.v[k][e] = fmaf(r[e], n.residual_scale, x.v[k][e]);
    }
    store<F, F::x>(n.second, x, p);
}

/* ---- Sums ---------------------------------------------------------------------------------- */

/* Writes a chunk to shared memory, which all threads have finished reading. */
template <typename F> __device__ __forceinline__ void lay(float *shared, const elements<F> &x)
{
#pragma unroll
    for (int k = 0; k < F::kept; k++) {
        void *vector = shared + step_of<F>(k) + (int) threadIdx.x * F::wide;
        ft_bits<F::wide> bits;
#pragma unroll
        for (int e = 0; e < F::wide; e++)
            bits.word[e] = __float_as_uint(x.v[k][e]);
        *(ft_bits<F::wide> *) vector = bits;
    }
    __syncthreads();
}

/* part += this thread's elements, or the squares of their distances to the mean. */
template <bool squares>
__device__ __forceinline__ float add_part(float part, const float *shared, float mean, int count)
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

/* x = (x - mean) * factor * weight [+ bias], stored if there is an output. */
template <typename F>
__device__ __forceinline__ void finish(elements<F> &x, const elements<F> &weight, float mean,
                                       float factor, const ft_cuda_norm_args &n, const place &p)
{
    elements<F> bias = {};
    if (F::kind == FT_NORM_LAYER)
        load_vector(bias, n.bias, p);
#pragma unroll
    for (int i = 0; i < F::kept * F::wide; i++) {
        float &v = x.v[i / F::wide][i % F::wide], w = weight.v[i / F::wide][i % F::wide];
        v = F::kind == FT_NORM_RMS ? v * factor * w
                                   : fmaf((v - mean) * factor, w, bias.v[i / F::wide][i % F::wide]);
    }
    store<F, ANY>(n.out, x, p);
}

/*
 * blockIdx.x is the row; there are `chunk_cols` floats of shared memory. If the row is a single
 * chunk, each loop runs once, and its data is still there from the previous loop.
 */
template <typename F>
static __global__ void __launch_bounds__(F::threads) norm_any_kernel(const ft_cuda_norm_args n)
{
    extern __shared__ float4 memory[];
    __shared__ float eights[2][FT_NORM_EIGHTS];
    __shared__ float warps[FT_WARP];
    float *shared = (float *) memory, mean = 0.0f, sum = 0.0f, squares = 0.0f, amax = 0.0f;
    int cols = (int) n.x.cols, stretch = F::whole ? cols : step_of<F>(F::kept);
    elements<F> x, weight = {};
    if (F::whole)
        load_vector(weight, n.weight, place_of<F>(n, 0));
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    for (int base = 0; base < cols; base += stretch) {
        int count = min(cols - base, stretch);
        load(x, n, place_of<F>(n, base));
        if (base > 0)
            __syncthreads(); /* the previous chunk has been added */
        lay(shared, x);
        if (F::kind == FT_NORM_LAYER)
            sum = add_part<false>(sum, shared, 0.0f, count);
        else
            squares = add_part<true>(squares, shared, 0.0f, count);
    }
    if (F::kind == FT_NORM_LAYER) {
        mean = ft_norm_mean(ft_add_parts(sum, eights[0]), n.cols, n.inverse_cols);
        for (int base = 0; base < cols; base += stretch) {
            if (cols > stretch) {
                load(x, n, place_of<F>(n, base));
                __syncthreads();
                lay(shared, x);
            }
            squares = add_part<true>(squares, shared, mean, min(cols - base, stretch));
        }
    }
    float variance = ft_norm_mean(ft_add_parts(squares, eights[1]), n.cols, n.inverse_cols);
    float factor = ft_norm_factor(variance, n.eps);
    for (int base = 0; base < cols; base += stretch) {
        place p = place_of<F>(n, base);
        if (!F::whole && cols > stretch)
            load(x, n, p);
        if (!F::whole)
            load_vector(weight, n.weight, p);
        finish(x, weight, mean, factor, n, p);
        if (n.codes.data != NULL && n.codes.scales == NULL)
            store_codes(n.codes, x, p, n.inverse);
#pragma unroll
        for (int i = 0; i < F::kept * F::wide; i++)
            if (has<F>(p, i / F::wide))
                amax = ft_amax(amax, x.v[i / F::wide][i % F::wide]);
    }
    if (n.codes.scales == NULL)
        return;
    float scale = ft_scale_from_amax(ft_amax_of_block(amax, warps));
    if (threadIdx.x == 0)
        n.codes.scales[blockIdx.x] = scale;
    for (int base = 0; base < cols; base += stretch) {
        place p = place_of<F>(n, base);
        if (!F::whole && cols > stretch) {
            load(x, n, p);
            load_vector(weight, n.weight, p);
            finish(x, weight, mean, factor, n, p);
        }
        store_codes(n.codes, x, p, ft_inverse_scale(scale));
    }
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <typename F> static int launch(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    size_t vectors = (n.x.cols + F::wide - 1) / F::wide;
    size_t threads = (vectors + F::kept * FT_WARP - 1) / (F::kept * FT_WARP) * FT_WARP;
    threads = threads < PARTS ? PARTS : threads < F::threads ? threads : F::threads;
    return ft_launch(norm_any_kernel<F>, (unsigned) n.x.rows, (unsigned) threads,
                     threads * F::kept * F::wide * sizeof(float), args->stream,
                     args->chip->overlaps, 1, n);
}

template <int wide> static int launch_any(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    return args->op->attr.norm == FT_NORM_RMS
               ? launch<form<FT_NORM_RMS, ANY, ANY, wide, 4>>(args, n)
               : launch<form<FT_NORM_LAYER, ANY, ANY, wide, 4>>(args, n);
}

/*
 * Fewer vectors per thread shorten the dependency chain; with many rows more loads in flight are
 * better.
 */
template <int x, int residual>
static int launch_plain(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    bool few = n.x.rows <= 2 * (size_t) args->chip->multiprocessors;
    return few || n.x.cols <= WIDEST / 4 ? launch<form<FT_NORM_RMS, x, residual, 4, 2>>(args, n)
                                         : launch<form<FT_NORM_RMS, x, residual, 4, 4>>(args, n);
}

template <int x> static int launch_same(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    return n.residual.data == NULL ? launch_plain<x, NONE>(args, n) : launch_plain<x, x>(args, n);
}

/*
 * Whether an RMS norm has a specialized kernel: sums have x's dtype, and the residual is not int8.
 */
static bool is_plain(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    bool residual = n.residual.data == NULL || n.residual.dtype == n.x.dtype ||
                    (n.x.dtype == FT_F32 && n.residual.dtype == FT_F16);
    return args->op->attr.norm == FT_NORM_RMS && n.x.cols % 4 == 0 && n.x.cols <= WIDEST &&
           residual && n.residual.scale <= 0.0f &&
           (n.second.data == NULL || n.second.dtype == n.x.dtype);
}

int ft_cuda_norm_any(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    if (!is_plain(args, n))
        return n.x.cols % 4 == 0 ? launch_any<4>(args, n) : launch_any<1>(args, n);
    if (n.x.dtype == FT_F32 && n.residual.data != NULL && n.residual.dtype == FT_F16)
        return launch_plain<FT_F32, FT_F16>(args, n);
    return n.x.dtype == FT_F16    ? launch_same<FT_F16>(args, n)
           : n.x.dtype == FT_BF16 ? launch_same<FT_BF16>(args, n)
                                  : launch_same<FT_F32>(args, n);
}
