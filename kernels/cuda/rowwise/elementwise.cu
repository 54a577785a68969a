/*
 * elementwise.cu - elementwise operations, and NORMALIZE (per row).
 *
 * Matrices are treated as arrays. A thread issues four loads of four consecutive elements before it
 * waits for any: the 1024 threads of a multiprocessor then have 32 KB of f16 in flight, more than
 * the 23 KB that hide the memory latency of an H200. Short arrays, which would leave
 * multiprocessors without a CTA, use one load of four elements per thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rowwise/dynamic_quant.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/quant.h"

enum { THREADS = 256, VECTORS_PER_THREAD = 4, SMALL_ARRAY = 2 << 20 };

/* y = f(a), a + b or f(a) * b, depending on the operation. */
typedef struct elementwise_args {
    ft_view a, b, y;
    ft_activation activation;
    bool quantized; /* whether y is quantized: always for QUANTIZE, optionally for GATE */
    float inverse; /* 1 / scale of y */
    const float *smoothing; /* QUANTIZE: multiplies the columns of a; NULL: none */
    size_t n;      /* number of elements */
} elementwise_args;

/* ---- Elements ------------------------------------------------------------------------------ */

/* Whether an operation reads b. */
template <ft_op_kind kind> constexpr bool is_binary = kind == FT_OP_ADD || kind == FT_OP_GATE;

/* Computes and stores N results at `at` from the loaded operands. */
template <ft_op_kind kind, int N>
__device__ __forceinline__ void compute(const elementwise_args &m, size_t at,
                                        const ft_raw_vec<N> &a_bits, const ft_raw_vec<N> &b_bits)
{
    float a[N], b[N];
    ft_unpack<N>(a, a_bits, m.a.dtype);
    if constexpr (is_binary<kind>)
        ft_unpack<N>(b, b_bits, m.b.dtype);
    if constexpr (kind == FT_OP_ACTIVATE || kind == FT_OP_GATE)
        ft_activate_vec<N>(m.activation, a);
#pragma unroll
    for (int i = 0; i < N; i++)
        if constexpr (kind == FT_OP_DEQUANTIZE)
            a[i] = a[i] * m.a.scale;
        else if constexpr (kind == FT_OP_ADD)
            a[i] = fmaf(b[i], m.b.scale > 0.0f ? m.b.scale : 1.0f, a[i]);
        else if constexpr (kind == FT_OP_GATE)
            a[i] = a[i] * b[i];
        else if (kind == FT_OP_QUANTIZE && m.smoothing != NULL)
            a[i] *= m.smoothing[(at + i) % m.a.cols];
    if (kind == FT_OP_QUANTIZE || (kind == FT_OP_GATE && m.quantized))
        ft_store_quantized<N>(m.y.data, m.y.dtype, at, a, m.inverse);
    else
        ft_store<N>(m.y.data, m.y.dtype, at, a);
}

/* The last elements of an array whose size is no multiple of four. */
template <ft_op_kind kind>
__device__ __forceinline__ void process_tail(const elementwise_args &m, size_t at)
{
    for (; at < m.n; at++) {
        ft_raw_vec<1> a, b;
        ft_load_raw<1>(a, m.a.data, m.a.dtype, at);
        if (is_binary<kind>)
            ft_load_raw<1>(b, m.b.data, m.b.dtype, at);
        compute<kind, 1>(m, at, a, b);
    }
}

template <ft_op_kind kind, int N, int vectors>
static __global__ void __launch_bounds__(THREADS, 3) elementwise_kernel(const elementwise_args m)
{
    ft_raw_vec<N> a[vectors], b[vectors];
    size_t first = ((size_t) blockIdx.x * vectors * THREADS + threadIdx.x) * N;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
#pragma unroll
    for (int s = 0; s < vectors; s++) {
        size_t at = first + s * THREADS * N;
        if (at + N > m.n)
            continue;
        ft_load_raw<N>(a[s], m.a.data, m.a.dtype, at);
        if (is_binary<kind>)
            ft_load_raw<N>(b[s], m.b.data, m.b.dtype, at);
    }
#pragma unroll
    for (int s = 0; s < vectors; s++) {
        size_t at = first + s * THREADS * N;
        if (at + N <= m.n)
            compute<kind, N>(m, at, a[s], b[s]);
        else
            process_tail<kind>(m, at);
    }
}

/* ---- Rows ---------------------------------------------------------------------------------- */

enum { SUM_LANES = 16, ROWS = 4, UNROLL = 16 };

/*
 * Loads elements col, col + 16, ... of a row; zeros after its end. Loads after the end read the
 * last element again, so that no load depends on a branch.
 */
template <ft_dtype dtype>
__device__ __forceinline__ void load_strided(float v[UNROLL], void *data, size_t at, int col,
                                             int cols)
{
    ft_raw_vec<1> bits[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; i++)
        ft_load_raw_as<dtype, 1>(bits[i], data, at + min(col + i * SUM_LANES, cols - 1));
#pragma unroll
    for (int i = 0; i < UNROLL; i++) {
        ft_unpack_as<dtype, 1>(&v[i], bits[i]);
        v[i] = col + i * SUM_LANES < cols ? v[i] : 0.0f;
    }
}

/*
 * L2 normalization of rows. Lane i of 16 adds the squares of elements i, i + 16, ...; then the
 * lanes are added as a tree. This is the order of kernels/cpu/base/rows_impl.h.
 */
template <ft_dtype dtype>
static __global__ void __launch_bounds__(SUM_LANES *ROWS) normalize_kernel(ft_view x, ft_view y)
{
    size_t row = (size_t) blockIdx.x * ROWS + threadIdx.y, last = x.rows - 1;
    size_t at = (row < last ? row : last) * x.cols;
    int lane = (int) threadIdx.x, cols = (int) x.cols;
    float v[UNROLL], sum = 0.0f;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    for (int col = lane; col < cols; col += UNROLL * SUM_LANES) {
        load_strided<dtype>(v, x.data, at, col, cols);
#pragma unroll
        for (int i = 0; i < UNROLL; i++)
            sum += v[i] * v[i];
    }
    for (int distance = SUM_LANES / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, distance);
    float length = sqrtf(sum);
    /* The same lower bound as in PyTorch's normalize: a zero row stays zero. */
    float factor = 1.0f / (length > 1e-12f ? length : 1e-12f);
    for (int col = lane; row <= last && col < cols; col += UNROLL * SUM_LANES) {
        load_strided<dtype>(v, x.data, at, col, cols);
#pragma unroll
        for (int i = 0; i < UNROLL; i++) {
            v[i] = v[i] * factor;
            if (col + i * SUM_LANES < cols)
                ft_store<1>(y.data, y.dtype, at + col + i * SUM_LANES, &v[i]);
        }
    }
}

/* ---- Launch --------------------------------------------------------------------------------- */

/* Whether four elements can be loaded and stored at once: at most 16 bytes. */
static bool is_aligned(const elementwise_args *m)
{
    return ((uintptr_t) m->a.data | (uintptr_t) m->b.data | (uintptr_t) m->y.data) % 16 == 0;
}

template <ft_op_kind kind, int N, int vectors>
static int launch_vectors(void *stream, bool has_pdl, const elementwise_args &m)
{
    return ft_launch(elementwise_kernel<kind, N, vectors>, ft_ceil_div(m.n, N * vectors * THREADS),
                     THREADS, 0, stream, has_pdl, 1, m);
}

template <ft_op_kind kind> static int launch(void *stream, bool has_pdl, const elementwise_args &m)
{
    if (m.n == 0)
        return (int) cudaSuccess;
    if (!is_aligned(&m))
        return launch_vectors<kind, 1, VECTORS_PER_THREAD>(stream, has_pdl, m);
    return m.n < SMALL_ARRAY ? launch_vectors<kind, 4, 1>(stream, has_pdl, m)
                             : launch_vectors<kind, 4, VECTORS_PER_THREAD>(stream, has_pdl, m);
}

template <ft_op_kind kind> static int elementwise_op(const ft_cuda_args *args)
{
    elementwise_args m = {};
    m.a = args->in[0], m.b = args->in[1];
    m.quantized = args->quantized.data != NULL;
    m.y = m.quantized ? args->quantized : args->out;
    m.activation = args->op->attr.activation;
    m.inverse = ft_inverse_scale(args->quantized.scale);
    if (kind == FT_OP_QUANTIZE && args->weight[FT_WEIGHT_SMOOTHING] != NULL)
        m.smoothing = (const float *) args->weight[FT_WEIGHT_SMOOTHING]->data;
    m.n = m.a.rows * m.a.cols;
    return launch<kind>(args->stream, args->props->has_pdl, m);
}

/* ---- Operations ---------------------------------------------------------------------------- */

extern "C" int ft_cuda_activate(const ft_cuda_args *args)
{
    return elementwise_op<FT_OP_ACTIVATE>(args);
}

extern "C" int ft_cuda_add(const ft_cuda_args *args)
{
    return elementwise_op<FT_OP_ADD>(args);
}

extern "C" int ft_cuda_quantize(const ft_cuda_args *args)
{
    return args->quantized.scales != NULL ? ft_cuda_quantize_rows(args)
                                          : elementwise_op<FT_OP_QUANTIZE>(args);
}

extern "C" int ft_cuda_gate(const ft_cuda_args *args)
{
    return args->quantized.scales != NULL ? ft_cuda_gate_rows(args)
                                          : elementwise_op<FT_OP_GATE>(args);
}

extern "C" int ft_cuda_dequantize(const ft_cuda_args *args)
{
    return args->in[0].scales != NULL ? ft_cuda_dequantize_rows(args)
                                      : elementwise_op<FT_OP_DEQUANTIZE>(args);
}

extern "C" int ft_cuda_l2_normalize(const ft_cuda_args *args)
{
    const ft_view *x = &args->in[0];
    if (x->rows == 0)
        return (int) cudaSuccess;
    return ft_launch(x->dtype == FT_F16    ? normalize_kernel<FT_F16>
                     : x->dtype == FT_BF16 ? normalize_kernel<FT_BF16>
                                           : normalize_kernel<FT_F32>,
                     ft_ceil_div(x->rows, ROWS), dim3(SUM_LANES, ROWS), 0, args->stream,
                     args->props->has_pdl, 1, *x, args->out);
}

extern "C" int ft_cuda_probe_arch(int *built_for)
{
    cudaFuncAttributes attributes = {};
    cudaError_t status = cudaFuncGetAttributes(&attributes, normalize_kernel<FT_F32>);
    *built_for = attributes.ptxVersion;
    return (int) status;
}

static ft_view array_of(const void *data, ft_dtype dtype, float scale)
{
    ft_view view = {};
    view.data = (void *) data, view.dtype = dtype, view.scale = scale;
    return view;
}

extern "C" int ft_cuda_quantize_array(void *stream, int8_t *quantized, const float *x,
                                      float inverse_scale, size_t n)
{
    elementwise_args m = {};
    m.a = array_of(x, FT_F32, 0.0f), m.y = array_of(quantized, FT_I8, 0.0f);
    m.inverse = inverse_scale;
    m.n = n;
    return launch<FT_OP_QUANTIZE>(stream, false, m);
}

extern "C" int ft_cuda_dequantize_array(void *stream, float *out, const int8_t *quantized,
                                        float scale, size_t n)
{
    elementwise_args m = {};
    m.a = array_of(quantized, FT_I8, scale), m.y = array_of(out, FT_F32, 0.0f);
    m.n = n;
    return launch<FT_OP_DEQUANTIZE>(stream, false, m);
}
