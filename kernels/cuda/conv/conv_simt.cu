/*
 * conv_simt.cu - any convolution on any device; the reference for the faster kernels.
 *
 * A CTA computes 64 windows by 64 output channels. Windows are gathered 32 columns at a time.
 * Elements outside an image are 0, also for int8, because the zero point is subtracted on load.
 * Columns are processed in groups for group-wise quantized weights; otherwise all columns are one
 * group.
 *
 * A sum adds its columns in order. int8 sums are integers, so their results have the bits of the
 * CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv.cuh"

enum {
    TILE_DIM = 64,
    K_TILE = 32,
    THREADS = 256,
    PER_THREAD = 4,
    THREAD_STRIDE = TILE_DIM / PER_THREAD
};

/* Operand types: float values, int8 values, or float values that are quantized dynamically. */
typedef enum operand_kind { FLOATS, INT8, DYNAMIC_INT8 } operand_kind;

/* int32_t for int8 values, float otherwise. */
template <operand_kind kind> struct accumulator_of {
    typedef int32_t type;
};
template <> struct accumulator_of<FLOATS> {
    typedef float type;
};

/* ---- Operands ------------------------------------------------------------------------------- */

/* Position of a window: its image, and the input pixel of its first tap. */
typedef struct window_origin {
    size_t image;
    int top, left;
    bool exists;
} window_origin;

__device__ __forceinline__ window_origin window_origin_of(const conv_problem_args &t,
                                                          unsigned window)
{
    window_origin origin;
    unsigned out_pixels = (unsigned) t.out_pixels, position = window % out_pixels;
    origin.image = window / out_pixels;
    origin.top = (int) (position / (unsigned) t.per_row) * t.conv.stride[0] - t.conv.padding[0];
    origin.left = (int) (position % (unsigned) t.per_row) * t.conv.stride[1] - t.conv.padding[1];
    origin.exists = origin.image < (size_t) t.images;
    return origin;
}

/* Finds the element of x in a column of a window; false outside the image. */
__device__ __forceinline__ bool locate_element(const conv_problem_args &t,
                                               const window_origin &origin, int col, size_t &at)
{
    const ft_conv &c = t.conv;
    int tap = col / c.channels, channel = col % c.channels;
    int row = origin.top + tap / c.kernel[1] * c.dilation[0];
    int pixel = origin.left + tap % c.kernel[1] * c.dilation[1];
    at = c.in_layout == FT_IMAGE_NHWC
             ? ((origin.image * (unsigned) c.height + (unsigned) row) * (unsigned) c.width +
                (unsigned) pixel) *
                       (unsigned) c.channels +
                   (unsigned) channel
             : ((origin.image * (unsigned) c.channels + (unsigned) channel) * (unsigned) c.height +
                (unsigned) row) *
                       (unsigned) c.width +
                   (unsigned) pixel;
    return origin.exists && row >= 0 && row < c.height && pixel >= 0 && pixel < c.width;
}

/* int8 values less their zero point: those that are quantized here have the one of `params`. */
template <operand_kind kind>
__device__ __forceinline__ typename accumulator_of<kind>::type
read_x(const conv_problem_args &t, const window_origin &origin, int col,
       const ft_groupwise_x_params &params)
{
    size_t at;
    if (!locate_element(t, origin, col, at))
        return 0;
    if (kind == INT8)
        return ((const int8_t *) t.x)[at] - t.conv.zero;
    float value;
    ft_load<1>(&value, t.x, t.x_dtype, at);
    return kind == FLOATS ? value
                          : (int32_t) ft_groupwise_quantize_to_float(value, &params) - params.zero;
}

template <operand_kind kind>
__device__ __forceinline__ typename accumulator_of<kind>::type read_w(const conv_problem_args &t,
                                                                      int output, int col)
{
    size_t row = (unsigned) output, k = (unsigned) t.window, n = (unsigned) t.out_channels;
    int bits = ft_groupwise_bits(t.w_dtype);
    if (kind == INT8)
        return ((const int8_t *)
                    t.w)[ft_offset_col4(row, (unsigned) col, ft_layout_rows(FT_COL4_4R2_8C, n))];
    if (bits != 0)
        return (int) ft_panel_value((const uint32_t *) t.w, row, (unsigned) col, k, bits) -
               ft_groupwise_zero_point(
                   &t.groupwise, ft_groupwise_scale_index(&t.groupwise, row, (unsigned) col, n),
                   bits);
    float value;
    ft_load<1>(&value, (void *) t.w, t.w_dtype, row * k + (unsigned) col);
    return kind == FLOATS ? value : 0;
}

/* ---- Accumulation --------------------------------------------------------------------------- */

template <operand_kind kind> struct shared_tiles {
    typename accumulator_of<kind>::type x[K_TILE][TILE_DIM + 1], w[K_TILE][TILE_DIM + 1];
    ft_groupwise_x_params params_of_window[TILE_DIM];
    int32_t partial_high[THREADS / TILE_DIM][TILE_DIM], partial_low[THREADS / TILE_DIM][TILE_DIM];
};

__device__ __forceinline__ float multiply_add(float sum, float x, float w)
{
    return fmaf(x, w, sum);
}

__device__ __forceinline__ int32_t multiply_add(int32_t sum, int32_t x, int32_t w)
{
    return sum + x * w;
}

/* Computes how each window's columns first .. end - 1 are quantized. */
__device__ __forceinline__ void compute_params(shared_tiles<DYNAMIC_INT8> &s,
                                               const conv_problem_args &t,
                                               const window_origin &origin, int first, int end)
{
    int window = threadIdx.x % TILE_DIM, partial = threadIdx.x / TILE_DIM;
    int32_t high = 0, minus_low = 0;
    for (int col = first + partial; col < end; col += THREADS / TILE_DIM) {
        float x = read_x<FLOATS>(t, origin, col, ft_groupwise_x_params{});
        high = max(high, ft_positive_bits(x));
        minus_low = max(minus_low, ft_positive_bits(-x));
    }
    s.partial_high[partial][window] = high;
    s.partial_low[partial][window] = minus_low;
    __syncthreads();
    if (partial == 0) {
#pragma unroll
        for (int i = 1; i < THREADS / TILE_DIM; i++) {
            high = max(high, s.partial_high[i][window]);
            minus_low = max(minus_low, s.partial_low[i][window]);
        }
        s.params_of_window[window] =
            ft_groupwise_x_params_of(__int_as_float(high), __int_as_float(minus_low));
    }
    __syncthreads();
}

/* Loads columns first .. end - 1, at most STEP, to shared memory. */
template <operand_kind kind>
__device__ __forceinline__ void load_k_tile(shared_tiles<kind> &s, const conv_problem_args &t,
                                            const window_origin &origin, int output, int first,
                                            int end)
{
    int window = threadIdx.x % TILE_DIM;
    ft_groupwise_x_params params = {};
    if (kind == DYNAMIC_INT8)
        params = s.params_of_window[window];
    for (int i = threadIdx.x / TILE_DIM; i < K_TILE; i += THREADS / TILE_DIM)
        s.x[i][window] = first + i < end ? read_x<kind>(t, origin, first + i, params) : 0;
    int col = first + (int) threadIdx.x % K_TILE;
    for (int i = threadIdx.x / K_TILE; i < TILE_DIM; i += THREADS / K_TILE)
        s.w[threadIdx.x % K_TILE][i] =
            output + i < t.out_channels && col < end ? read_w<kind>(t, output + i, col) : 0;
}

/*
 * sum = windows . w^T over columns first .. end - 1. Thread (a, b) has windows a + 16 i and output
 * channels b + 16 j.
 */
template <operand_kind kind>
__device__ __forceinline__ void
accumulate_group(typename accumulator_of<kind>::type (&sum)[PER_THREAD][PER_THREAD],
                 shared_tiles<kind> &s, const conv_problem_args &t, const window_origin &origin,
                 int output, int first, int end)
{
    int a = threadIdx.x % THREAD_STRIDE, b = threadIdx.x / THREAD_STRIDE;
#pragma unroll
    for (int i = 0; i < PER_THREAD * PER_THREAD; i++)
        sum[i / PER_THREAD][i % PER_THREAD] = 0;
    for (int col = first; col < end; col += K_TILE) {
        load_k_tile<kind>(s, t, origin, output, col, end);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < K_TILE; k++)
#pragma unroll
            for (int i = 0; i < PER_THREAD * PER_THREAD; i++)
                sum[i / PER_THREAD][i % PER_THREAD] = multiply_add(
                    sum[i / PER_THREAD][i % PER_THREAD], s.x[k][a + i / PER_THREAD * THREAD_STRIDE],
                    s.w[k][b + i % PER_THREAD * THREAD_STRIDE]);
        __syncthreads();
    }
}

/* ---- Epilogue ------------------------------------------------------------------------------- */

/* Adds the sum of a group to a result. Float and int8 weights have one group. */
template <operand_kind kind>
__device__ __forceinline__ float apply_group_scale(const conv_problem_args &t, float total,
                                                   typename accumulator_of<kind>::type sum,
                                                   int output, int col, float scale_of_window)
{
    if (kind == INT8)
        return ft_dequantize((int32_t) sum, t.x_scale * t.w_scale[output],
                             t.bias == NULL ? 0.0f : t.bias[output]);
    if (t.groupwise.scale == NULL)
        return (float) sum;
    size_t at = ft_groupwise_scale_index(&t.groupwise, (unsigned) output, (unsigned) col,
                                         (unsigned) t.out_channels);
    return ft_groupwise_accumulate(total, (float) sum,
                                   __half2float(((const __half *) t.groupwise.scale)[at]),
                                   kind == DYNAMIC_INT8 ? scale_of_window : 1.0f);
}

template <operand_kind kind>
__device__ __forceinline__ void store_output(const conv_problem_args &t, unsigned window,
                                             int output, float value)
{
    unsigned out_pixels = (unsigned) t.out_pixels, image = window / out_pixels;
    size_t at = ((size_t) image * (unsigned) t.out_channels + (unsigned) output) * out_pixels +
                (window - image * out_pixels);
    if (t.conv.out_layout == FT_IMAGE_NHWC)
        at = (size_t) window * (unsigned) t.out_channels + (unsigned) output;
    if (kind != INT8 && t.bias != NULL)
        value += t.bias[output];
    value = conv_activate_clamp(t, value);
    if (t.y_dtype == FT_I8)
        ft_store_quantized<1>(t.y, t.y_dtype, at, &value, t.y_inv_scale);
    else
        ft_store<1>(t.y, t.y_dtype, at, &value);
}

/* grid = (tiles of windows, tiles of output channels) */
template <operand_kind kind>
static __global__ void __launch_bounds__(THREADS, 3)
    conv_simt_kernel(const __grid_constant__ conv_problem_args t)
{
    __shared__ shared_tiles<kind> s;
    unsigned first = blockIdx.x * TILE_DIM, windows = (unsigned) t.images * (unsigned) t.out_pixels;
    int output = (int) blockIdx.y * TILE_DIM, a = threadIdx.x % THREAD_STRIDE,
        b = threadIdx.x / THREAD_STRIDE;
    int group = t.groupwise.scale == NULL || t.groupwise.group == 0 ? t.window : t.groupwise.group;
    window_origin origin = window_origin_of(t, first + threadIdx.x % TILE_DIM);
    float total[PER_THREAD][PER_THREAD] = {};
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    for (int col = 0; col < t.window; col += group) {
        typename accumulator_of<kind>::type sum[PER_THREAD][PER_THREAD];
        int end = t.window - col < group ? t.window : col + group;
        if constexpr (kind == DYNAMIC_INT8)
            compute_params(s, t, origin, col, end);
        accumulate_group<kind>(sum, s, t, origin, output, col, end);
#pragma unroll
        for (int i = 0; i < PER_THREAD * PER_THREAD; i++) {
            int out_channel = output + b + i % PER_THREAD * THREAD_STRIDE;
            if (out_channel < t.out_channels)
                total[i / PER_THREAD][i % PER_THREAD] = apply_group_scale<kind>(
                    t, total[i / PER_THREAD][i % PER_THREAD], sum[i / PER_THREAD][i % PER_THREAD],
                    out_channel, col,
                    kind == DYNAMIC_INT8
                        ? s.params_of_window[a + i / PER_THREAD * THREAD_STRIDE].scale
                        : 1.0f);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < PER_THREAD * PER_THREAD; i++) {
        unsigned window = first + (unsigned) (a + i / PER_THREAD * THREAD_STRIDE);
        int out_channel = output + b + i % PER_THREAD * THREAD_STRIDE;
        if (window < windows && out_channel < t.out_channels)
            store_output<kind>(t, window, out_channel, total[i / PER_THREAD][i % PER_THREAD]);
    }
}

/* A grid supports up to 65535 tiles of output channels. */
int ft_cuda_conv_simt(const ft_cuda_device_props *props, void *stream, const conv_problem_args *t)
{
    size_t windows = (size_t) t->images * (size_t) t->out_pixels;
    dim3 grid(ft_ceil_div(windows, TILE_DIM), ft_ceil_div((size_t) t->out_channels, TILE_DIM));
    if (windows == 0)
        return (int) cudaSuccess;
    if (grid.y > 65535 || windows / TILE_DIM >= INT32_MAX)
        return (int) cudaErrorNotSupported;
    auto *kernel = t->w_dtype == FT_I8             ? conv_simt_kernel<INT8>
                   : t->groupwise.int8_activations ? conv_simt_kernel<DYNAMIC_INT8>
                                                   : conv_simt_kernel<FLOATS>;
    return ft_launch(kernel, grid, THREADS, 0, stream, props->has_pdl, 1, *t);
}
