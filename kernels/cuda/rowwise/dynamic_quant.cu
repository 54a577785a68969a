/*
 * dynamic_quant.cu - QUANTIZE and GATE with dynamic per-row scales, and DEQUANTIZE.
 *
 * The amax of a row must be known before its first value can be quantized, so a CTA keeps a row in
 * registers. With few rows, a cluster of CTAs shares each row and exchanges the amax: an activation
 * takes forty instructions per element, too many for one multiprocessor. If rows are too wide for
 * registers, their values are computed twice.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/rowwise/amax.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rowwise/dynamic_quant.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/ptx/tma.cuh"

/* Threads per CTA, maximum CTAs per row, and threads of the dequantize kernel. */
enum { THREADS = 1024, CLUSTER = 8, WARP = 32, DEQUANTIZE_THREADS = 256 };

/* Source of the values that are quantized; the SiLU gate has kernels of its own. */
typedef enum value_source { VALUES, SILU_GATE, ANY_GATE } value_source;

/* Parameters: quantizes a, or act(a) * b. */
typedef struct quantize_args {
    ft_view a, b, quantized;
    ft_activation activation;
    const float *smoothing; /* without a gate: multiplies the columns of a; NULL: none */
    int ctas_per_row; /* per row */
    int cols_per_cta; /* columns of a row per CTA */
} quantize_args;

/* ---- Values -------------------------------------------------------------------------------- */

template <int N> __device__ __forceinline__ void smooth(float v[N], const float *factor)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] *= factor[i];
}

/*
 * Computes `kept_vectors` vectors of this thread, blockDim.x vectors apart. The first is element
 * `at` and column `col` of the row. Columns from `end` on are zeros.
 */
template <value_source from, ft_dtype dtype, int N, int kept_vectors>
__device__ __forceinline__ void compute_values(float v[kept_vectors][N], const quantize_args &d,
                                               size_t at, int col, int end)
{
    ft_raw_vec<N> a[kept_vectors] = {}, b[kept_vectors] = {};
    int vector_stride = (int) blockDim.x * N;
#pragma unroll
    for (int k = 0; k < kept_vectors; k++)
        if (col + k * vector_stride < end) {
            ft_load_raw_as<dtype, N>(a[k], d.a.data, at + k * vector_stride);
            if (from != VALUES)
                ft_load_raw_as<dtype, N>(b[k], d.b.data, at + k * vector_stride);
        }
#pragma unroll
    for (int k = 0; k < kept_vectors; k++) {
        float factor[N];
        ft_unpack_as<dtype, N>(v[k], a[k]);
        if (from == VALUES) {
            if (d.smoothing != NULL && col + k * vector_stride < end)
                smooth<N>(v[k], d.smoothing + col + k * vector_stride);
            continue;
        }
        ft_unpack_as<dtype, N>(factor, b[k]);
        if (from == SILU_GATE)
            ft_silu_vec<N>(v[k]);
        else
            ft_activate_vec<N>(d.activation, v[k]);
#pragma unroll
        for (int i = 0; i < N; i++)
            v[k][i] = v[k][i] * factor[i];
    }
}

/* ---- Exchange between the CTAs of a row ----------------------------------------------------- */

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/* Maximum over a cluster. `ranks` is shared memory; the other CTAs must have started. */
__device__ __forceinline__ float cluster_amax(float amax, float rank_amax[CLUSTER],
                                              int ctas_per_row)
{
    unsigned rank = blockIdx.x % ctas_per_row, lane = threadIdx.x % WARP;
    uint32_t slot = (uint32_t) __cvta_generic_to_shared(&rank_amax[rank]);
    ft_cluster_wait();
    if ((int) threadIdx.x < ctas_per_row)
        asm volatile("{\n\t"
                     ".reg .b32 there;\n\t"
                     "mapa.shared::cluster.u32 there, %0, %1;\n\t"
                     "st.shared::cluster.f32 [there], %2;\n\t"
                     "}" ::"r"(slot),
                     "r"(threadIdx.x), "f"(amax)
                     : "memory");
    ft_cluster_arrive();
    ft_cluster_wait();
    return ft_warp_amax((int) lane < ctas_per_row ? rank_amax[lane] : 0.0f);
}

#else

__device__ __forceinline__ void ft_cluster_arrive_relaxed() {}

__device__ __forceinline__ float cluster_amax(float amax, float *, int)
{
    return amax;
}

#endif

/* ---- Kernels -------------------------------------------------------------------------------- */

template <ft_dtype dtype, int N, int kept_vectors>
__device__ __forceinline__ void store(const float v[kept_vectors][N], const quantize_args &d,
                                      size_t at, int col, int end, float inverse)
{
    int vector_stride = (int) blockDim.x * N;
#pragma unroll
    for (int k = 0; k < kept_vectors; k++)
        if (col + k * vector_stride < end)
            ft_store_quantized_as<dtype, N>(d.quantized.data, at + k * vector_stride, v[k],
                                            inverse);
}

/* A cluster of d.ctas_per_row CTAs processes one row. */
template <value_source from, ft_dtype dtype, int N, int kept_vectors>
static __global__ void __launch_bounds__(THREADS) quantize_rows_kernel(const quantize_args d)
{
    __shared__ float warps[WARP], rank_amax[CLUSTER];
    size_t row = blockIdx.x / d.ctas_per_row, first = row * d.a.cols;
    int chunk_cols = kept_vectors * N * (int) blockDim.x;
    int begin = (int) (blockIdx.x % d.ctas_per_row) * d.cols_per_cta,
        first_col = begin + (int) threadIdx.x * N;
    int end = min(begin + d.cols_per_cta, (int) d.a.cols);
    float v[kept_vectors][N], amax = 0.0f;
    if (d.ctas_per_row > 1)
        ft_cluster_arrive_relaxed();
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    for (int col = first_col; col < end; col += chunk_cols) {
        compute_values<from, dtype, N, kept_vectors>(v, d, first + col, col, end);
#pragma unroll
        for (int i = 0; i < kept_vectors * N; i++)
            amax = ft_amax(amax, v[i / N][i % N]);
    }
    amax = ft_block_amax(amax, warps);
    if (d.ctas_per_row > 1)
        amax = cluster_amax(amax, rank_amax, d.ctas_per_row);
    float scale = ft_scale_from_amax(amax), inverse = ft_inverse_scale(scale);
    if (threadIdx.x == 0 && begin == 0)
        d.quantized.scales[row] = scale;
    for (int col = first_col; col < end; col += chunk_cols) {
        if (d.cols_per_cta > chunk_cols)
            compute_values<from, dtype, N, kept_vectors>(v, d, first + col, col, end);
        if (d.quantized.dtype == FT_I8)
            store<FT_I8, N, kept_vectors>(v, d, first + col, col, end, inverse);
        else
            store<FT_F32, N, kept_vectors>(v, d, first + col, col, end, inverse);
    }
}

/* Dequantizes row blockIdx.x. */
static __global__ void __launch_bounds__(DEQUANTIZE_THREADS)
    dequantize_kernel(const ft_view quantized, const ft_view out)
{
    size_t row = blockIdx.x, at = row * quantized.cols;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    float scale = quantized.scales[row], v;
    for (size_t col = threadIdx.x; col < quantized.cols; col += DEQUANTIZE_THREADS) {
        ft_load<1>(&v, quantized.data, quantized.dtype, at + col);
        v = v * scale;
        ft_store<1>(out.data, out.dtype, at + col, &v);
    }
}

/* ---- Launch --------------------------------------------------------------------------------- */

/*
 * CTAs per row. With few rows, as many as have work; with many rows, two if one CTA would leave too
 * few registers for a second one on its multiprocessor.
 */
static int ctas_per_row_of(const ft_cuda_device_props *props, size_t rows, size_t cols)
{
    enum { MIN_COLS = 1024, MAX_COLS = 8192 }; /* columns per CTA */
    size_t ctas_available = (size_t) props->sm_count / rows;
    size_t ctas_per_row = ctas_available >= CLUSTER                ? CLUSTER
                          : ctas_available >= 2                    ? 2
                          : ctas_available == 0 && cols > MAX_COLS ? 2
                                                                   : 1;
    while (ctas_per_row > 1 && cols < ctas_per_row * MIN_COLS)
        ctas_per_row /= 2;
    return props->has_pdl ? (int) ctas_per_row : 1; /* older devices have no clusters */
}

/* Whether there are so few rows that each vector gets a thread. */
static bool is_small_batch(const ft_cuda_device_props *props, size_t rows)
{
    return props->has_pdl && rows * CLUSTER <= (size_t) props->sm_count;
}

template <value_source from, ft_dtype dtype, int N, int kept_vectors>
static int launch_split(const ft_cuda_args *args, quantize_args &d)
{
    size_t vectors = (d.a.cols / N + d.ctas_per_row - 1) / d.ctas_per_row;
    size_t threads = (vectors + kept_vectors * WARP - 1) / (kept_vectors * WARP) * WARP;
    d.cols_per_cta = (int) vectors * N;
    return ft_launch(quantize_rows_kernel<from, dtype, N, kept_vectors>,
                     (unsigned) (d.a.rows * d.ctas_per_row),
                     (unsigned) (threads < THREADS ? threads : THREADS), 0, args->stream,
                     args->props->has_pdl, (unsigned) d.ctas_per_row, d);
}

/* Without a gate one CTA processes a row quickly; gates are computed by as many CTAs as useful. */
template <value_source from, ft_dtype dtype>
static int launch(const ft_cuda_args *args, quantize_args &d)
{
    d.ctas_per_row = from == VALUES ? 1 : ctas_per_row_of(args->props, d.a.rows, d.a.cols);
    if (d.a.cols % 4 != 0)
        return launch_split<from, dtype, 1, 4>(args, d);
    if constexpr (from != VALUES)
        if (is_small_batch(args->props, d.a.rows))
            return launch_split<from, dtype, 4, 1>(args, d);
    return launch_split<from, dtype, 4, 4>(args, d);
}

template <value_source from> static int quantize_rows_op(const ft_cuda_args *args)
{
    quantize_args d = {};
    d.a = args->in[0], d.b = args->in[1], d.quantized = args->quantized;
    d.activation = args->op->attr.activation;
    if (from == VALUES && args->weight[FT_WEIGHT_SMOOTHING] != NULL)
        d.smoothing = (const float *) args->weight[FT_WEIGHT_SMOOTHING]->data;
    if (d.a.rows == 0)
        return (int) cudaSuccess;
    return d.a.dtype == FT_F16    ? launch<from, FT_F16>(args, d)
           : d.a.dtype == FT_BF16 ? launch<from, FT_BF16>(args, d)
                                  : launch<from, FT_F32>(args, d);
}

int ft_cuda_quantize_rows(const ft_cuda_args *args)
{
    return quantize_rows_op<VALUES>(args);
}

int ft_cuda_gate_rows(const ft_cuda_args *args)
{
    return args->op->attr.activation == FT_ACT_SILU ? quantize_rows_op<SILU_GATE>(args)
                                                    : quantize_rows_op<ANY_GATE>(args);
}

int ft_cuda_dequantize_rows(const ft_cuda_args *args)
{
    if (args->in[0].rows == 0)
        return (int) cudaSuccess;
    return ft_launch(dequantize_kernel, (unsigned) args->in[0].rows, DEQUANTIZE_THREADS, 0,
                     args->stream, args->props->has_pdl, 1, args->in[0], args->out);
}
