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
enum { THREADS = 1024, CLUSTER = 8, WARP = 32, BACK = 256 };

/* Source of the values that are quantized; the SiLU gate has kernels of its own. */
typedef enum source { VALUES, SILU_GATE, ANY_GATE } source;

/* Parameters: quantizes a, or act(a) * b. */
typedef struct dynamic {
    ft_cuda_view a, b, codes;
    ft_activation activation;
    int blocks; /* per row */
    int share;  /* columns of a row per CTA */
} dynamic;

/* ---- Values -------------------------------------------------------------------------------- */

/*
 * Computes `kept_vectors` vectors of this thread, blockDim.x vectors apart. The first is element
 * `at` and column `col` of the row. Columns from `end` on are zeros.
 */
template <source from, ft_dtype dtype, int N, int kept>
__device__ __forceinline__ void make(float v[kept][N], const dynamic &d, size_t at, int col,
                                     int end)
{
    ft_bits<N> a[kept] = {}, b[kept] = {};
    int step = (int) blockDim.x * N;
#pragma unroll
    for (int k = 0; k < kept; k++)
        if (col + k * step < end) {
            ft_fetch_as<dtype, N>(a[k], d.a.data, at + k * step);
            if (from != VALUES)
                ft_fetch_as<dtype, N>(b[k], d.b.data, at + k * step);
        }
#pragma unroll
    for (int k = 0; k < kept; k++) {
        float factor[N];
        ft_unpack_as<dtype, N>(v[k], a[k]);
        if (from == VALUES)
            continue;
        ft_unpack_as<dtype, N>(factor, b[k]);
        if (from == SILU_GATE)
            ft_silu_all<N>(v[k]);
        else
            ft_activate_all<N>(d.activation, v[k]);
#pragma unroll
        for (int i = 0; i < N; i++)
            v[k][i] = v[k][i] * factor[i];
    }
}

/* ---- Exchange between the CTAs of a row ----------------------------------------------------- */

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/* Maximum over a cluster. `ranks` is shared memory; the other CTAs must have started. */
__device__ __forceinline__ float amax_of_cluster(float amax, float ranks[CLUSTER], int blocks)
{
    unsigned rank = blockIdx.x % blocks, lane = threadIdx.x % WARP;
    uint32_t slot = (uint32_t) __cvta_generic_to_shared(&ranks[rank]);
    ft_cluster_wait();
    if ((int) threadIdx.x < blocks)
        asm volatile("{\n\t"
                     ".reg .b32 there;\n\t"
                     "mapa.shared::cluster.u32 there, %0, %1;\n\t"
                     "st.shared::cluster.f32 [there], %2;\n\t"
                     "}" ::"r"(slot),
                     "r"(threadIdx.x), "f"(amax)
                     : "memory");
    ft_cluster_arrive();
    ft_cluster_wait();
    return ft_amax_of_warp((int) lane < blocks ? ranks[lane] : 0.0f);
}

#else

__device__ __forceinline__ void ft_cluster_begin() {}

__device__ __forceinline__ float amax_of_cluster(float amax, float *, int)
{
    return amax;
}

#endif

/* ---- Kernels -------------------------------------------------------------------------------- */

template <ft_dtype dtype, int N, int kept>
__device__ __forceinline__ void store(const float v[kept][N], const dynamic &d, size_t at, int col,
                                      int end, float inverse)
{
    int step = (int) blockDim.x * N;
#pragma unroll
    for (int k = 0; k < kept; k++)
        if (col + k * step < end)
            ft_store_codes_as<dtype, N>(d.codes.data, at + k * step, v[k], inverse);
}

/* A cluster of d.ctas_per_row CTAs processes one row. */
template <source from, ft_dtype dtype, int N, int kept>
static __global__ void __launch_bounds__(THREADS) dynamic_kernel(const dynamic d)
{
    __shared__ float warps[WARP], ranks[CLUSTER];
    size_t row = blockIdx.x / d.blocks, first = row * d.a.cols;
    int stretch = kept * N * (int) blockDim.x;
    int begin = (int) (blockIdx.x % d.blocks) * d.share, mine = begin + (int) threadIdx.x * N;
    int end = min(begin + d.share, (int) d.a.cols);
    float v[kept][N], amax = 0.0f;
    if (d.blocks > 1)
        ft_cluster_begin();
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    for (int col = mine; col < end; col += stretch) {
        make<from, dtype, N, kept>(v, d, first + col, col, end);
#pragma unroll
        for (int i = 0; i < kept * N; i++)
            amax = ft_amax(amax, v[i / N][i % N]);
    }
    amax = ft_amax_of_block(amax, warps);
    if (d.blocks > 1)
        amax = amax_of_cluster(amax, ranks, d.blocks);
    float scale = ft_scale_from_amax(amax), inverse = ft_inverse_scale(scale);
    if (threadIdx.x == 0 && begin == 0)
        d.codes.scales[row] = scale;
    for (int col = mine; col < end; col += stretch) {
        if (d.share > stretch)
            make<from, dtype, N, kept>(v, d, first + col, col, end);
        if (d.codes.dtype == FT_I8)
            store<FT_I8, N, kept>(v, d, first + col, col, end, inverse);
        else
            store<FT_F32, N, kept>(v, d, first + col, col, end, inverse);
    }
}

/* Dequantizes row blockIdx.x. */
static __global__ void __launch_bounds__(BACK)
    dequantize_kernel(const ft_cuda_view codes, const ft_cuda_view out)
{
    size_t row = blockIdx.x, at = row * codes.cols;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    float scale = codes.scales[row], v;
    for (size_t col = threadIdx.x; col < codes.cols; col += BACK) {
        ft_load<1>(&v, codes.data, codes.dtype, at + col);
        v = v * scale;
        ft_store<1>(out.data, out.dtype, at + col, &v);
    }
}

/* ---- Launch --------------------------------------------------------------------------------- */

/*
 * CTAs per row. With few rows, as many as have work; with many rows, two if one CTA would leave too
 * few registers for a second one on its multiprocessor.
 */
static int blocks_of(const ft_cuda_chip *chip, size_t rows, size_t cols)
{
    enum { LEAST = 1024, MOST = 8192 }; /* columns per CTA */
    size_t room = (size_t) chip->multiprocessors / rows;
    size_t blocks = room >= CLUSTER ? CLUSTER : room >= 2 ? 2 : room == 0 && cols > MOST ? 2 : 1;
    while (blocks > 1 && cols < blocks * LEAST)
        blocks /= 2;
    return chip->overlaps ? (int) blocks : 1; /* older devices have no clusters */
}

/* Whether there are so few rows that each vector gets a thread. */
static bool is_few(const ft_cuda_chip *chip, size_t rows)
{
    return chip->overlaps && rows * CLUSTER <= (size_t) chip->multiprocessors;
}

template <source from, ft_dtype dtype, int N, int kept>
static int launch_cut(const ft_cuda_args *args, dynamic &d)
{
    size_t vectors = (d.a.cols / N + d.blocks - 1) / d.blocks;
    size_t threads = (vectors + kept * WARP - 1) / (kept * WARP) * WARP;
    d.share = (int) vectors * N;
    return ft_launch(dynamic_kernel<from, dtype, N, kept>, (unsigned) (d.a.rows * d.blocks),
                     (unsigned) (threads < THREADS ? threads : THREADS), 0, args->stream,
                     args->chip->overlaps, (unsigned) d.blocks, d);
}

/* Without a gate one CTA processes a row quickly; gates are computed by as many CTAs as useful. */
template <source from, ft_dtype dtype> static int launch(const ft_cuda_args *args, dynamic &d)
{
    d.blocks = from == VALUES ? 1 : blocks_of(args->chip, d.a.rows, d.a.cols);
    if (d.a.cols % 4 != 0)
        return launch_cut<from, dtype, 1, 4>(args, d);
    if constexpr (from != VALUES)
        if (is_few(args->chip, d.a.rows))
            return launch_cut<from, dtype, 4, 1>(args, d);
    return launch_cut<from, dtype, 4, 4>(args, d);
}

template <source from> static int dynamic_op(const ft_cuda_args *args)
{
    dynamic d = {};
    d.a = args->in[0], d.b = args->in[1], d.codes = args->codes;
    d.activation = args->op->attr.activation;
    if (d.a.rows == 0)
        return (int) cudaSuccess;
    return d.a.dtype == FT_F16    ? launch<from, FT_F16>(args, d)
           : d.a.dtype == FT_BF16 ? launch<from, FT_BF16>(args, d)
                                  : launch<from, FT_F32>(args, d);
}

int ft_cuda_quantize_rows(const ft_cuda_args *args)
{
    return dynamic_op<VALUES>(args);
}

int ft_cuda_gate_rows(const ft_cuda_args *args)
{
    return args->op->attr.activation == FT_ACT_SILU ? dynamic_op<SILU_GATE>(args)
                                                    : dynamic_op<ANY_GATE>(args);
}

int ft_cuda_dequantize_rows(const ft_cuda_args *args)
{
    if (args->in[0].rows == 0)
        return (int) cudaSuccess;
    return ft_launch(dequantize_kernel, (unsigned) args->in[0].rows, BACK, 0, args->stream,
                     args->chip->overlaps, 1, args->in[0], args->out);
}
