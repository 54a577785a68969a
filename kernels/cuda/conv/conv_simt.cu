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

enum { SIDE = 64, STEP = 32, THREADS = 256, EACH = 4, APART = SIDE / EACH };

/* Operand types: float values, int8 values, or float values that are quantized dynamically. */
typedef enum factors { REALS, CODES, MADE_CODES } factors;

/* int32_t for int8 values, float otherwise. */
template <factors kind> struct number_of {
    typedef int32_t type;
};
template <> struct number_of<REALS> {
    typedef float type;
};

/* ---- Operands ------------------------------------------------------------------------------- */

/* Position of a window: its image, and the input pixel of its first tap. */
typedef struct window_place {
    size_t image;
    int top, left;
    bool exists;
} window_place;

__device__ __forceinline__ window_place place_of(const conv_task &t, unsigned window)
{
    window_place place;
    unsigned positions = (unsigned) t.positions, position = window % positions;
    place.image = window / positions;
    place.top = (int) (position / (unsigned) t.across) * t.conv.stride[0] - t.conv.padding[0];
    place.left = (int) (position % (unsigned) t.across) * t.conv.stride[1] - t.conv.padding[1];
    place.exists = place.image < (size_t) t.images;
    return place;
}

/* Finds the element of x in a column of a window; false outside the image. */
__device__ __forceinline__ bool find_pixel(const conv_task &t, const window_place &place, int col,
                                           size_t &at)
{
    const ft_conv &c = t.conv;
    int tap = col / c.channels, channel = col % c.channels;
    int row = place.top + tap / c.kernel[1] * c.dilation[0];
    int pixel = place.left + tap % c.kernel[1] * c.dilation[1];
    at = c.in_order == FT_IMAGE_PIXELS
             ? ((place.image * (unsigned) c.height + (unsigned) row) * (unsigned) c.width +
                (unsigned) pixel) *
                       (unsigned) c.channels +
                   (unsigned) channel
             : ((place.image * (unsigned) c.channels + (unsigned) channel) * (unsigned) c.height +
                (unsigned) row) *
                       (unsigned) c.width +
                   (unsigned) pixel;
    return place.exists && row >= 0 && row < c.height && pixel >= 0 && pixel < c.width;
}

template <factors kind>
__device__ __forceinline__ typename number_of<kind>::type
read_x(const conv_task &t, const window_place &place, int col, float inverse)
{
    size_t at;
    if (!find_pixel(t, place, col, at))
        return 0;
    if (kind == CODES)
        return ((const int8_t *) t.x)[at] - t.conv.zero;
    float value;
    ft_load<1>(&value, t.x, t.x_dtype, at);
    return kind == REALS ? value : ft_quantize(value, inverse);
}

template <factors kind>
__device__ __forceinline__ typename number_of<kind>::type read_w(const conv_task &t, int output,
                                                                 int col)
{
    size_t row = (unsigned) output, k = (unsigned) t.window, n = (unsigned) t.outputs;
    int bits = ft_blocks_bits(t.w_dtype);
    if (kind == CODES)
        return ((const int8_t *)
                    t.w)[ft_offset_col4(row, (unsigned) col, ft_layout_rows(FT_COL4_4R2_8C, n))];
    if (bits != 0)
        return (int) ft_panel_code((const uint32_t *) t.w, row, (unsigned) col, k, bits) -
               ft_blocks_zero(&t.blocks, ft_blocks_index(&t.blocks, row, (unsigned) col, n), bits);
    float value;
    ft_load<1>(&value, (void *) t.w, t.w_dtype, row * k + (unsigned) col);
    return kind == REALS ? value : 0;
}

/* ---- Accumulation --------------------------------------------------------------------------- */

template <factors kind> struct tile {
    typename number_of<kind>::type x[STEP][SIDE + 1], w[STEP][SIDE + 1];
    float unit[SIDE], part[THREADS / SIDE][SIDE];
};

__device__ __forceinline__ float add_product(float sum, float x, float w)
{
    return fmaf(x, w, sum);
}

__device__ __forceinline__ int32_t add_product(int32_t sum, int32_t x, int32_t w)
{
    return sum + x * w;
}

/* Computes the scale of each window's int8 values in columns first .. end - 1. */
__device__ __forceinline__ void find_units(tile<MADE_CODES> &s, const conv_task &t,
                                           const window_place &place, int first, int end)
{
    int window = threadIdx.x % SIDE, part = threadIdx.x / SIDE;
    float amax = 0.0f;
    for (int col = first + part; col < end; col += THREADS / SIDE)
        amax = fmaxf(amax, fabsf(read_x<REALS>(t, place, col, 0.0f)));
    s.part[part][window] = amax;
    __syncthreads();
    if (part == 0) {
#pragma unroll
        for (int i = 1; i < THREADS / SIDE; i++)
            amax = fmaxf(amax, s.part[i][window]);
        s.unit[window] = ft_scale_from_amax(amax);
    }
    __syncthreads();
}

/* Loads columns first .. end - 1, at most STEP, to shared memory. */
template <factors kind>
__device__ __forceinline__ void fetch_step(tile<kind> &s, const conv_task &t,
                                           const window_place &place, int output, int first,
                                           int end)
{
    int window = threadIdx.x % SIDE;
    float inverse = kind == MADE_CODES ? ft_inverse_scale(s.unit[window]) : 0.0f;
    for (int i = threadIdx.x / SIDE; i < STEP; i += THREADS / SIDE)
        s.x[i][window] = first + i < end ? read_x<kind>(t, place, first + i, inverse) : 0;
    int col = first + (int) threadIdx.x % STEP;
    for (int i = threadIdx.x / STEP; i < SIDE; i += THREADS / STEP)
        s.w[threadIdx.x % STEP][i] =
            output + i < t.outputs && col < end ? read_w<kind>(t, output + i, col) : 0;
}

/*
 * sum = windows . w^T over columns first .. end - 1. Thread (a, b) has windows a + 16 i and output
 * channels b + 16 j.
 */
template <factors kind>
__device__ __forceinline__ void add_group(typename number_of<kind>::type (&sum)[EACH][EACH],
                                          tile<kind> &s, const conv_task &t,
                                          const window_place &place, int output, int first, int end)
{
    int a = threadIdx.x % APART, b = threadIdx.x / APART;
#pragma unroll
    for (int i = 0; i < EACH * EACH; i++)
        sum[i / EACH][i % EACH] = 0;
    for (int col = first; col < end; col += STEP) {
        fetch_step<kind>(s, t, place, output, col, end);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < STEP; k++)
#pragma unroll
            for (int i = 0; i < EACH * EACH; i++)
                sum[i / EACH][i % EACH] =
                    add_product(sum[i / EACH][i % EACH], s.x[k][a + i / EACH * APART],
                                s.w[k][b + i % EACH * APART]);
        __syncthreads();
    }
}

/* ---- Epilogue ------------------------------------------------------------------------------- */

/* Adds the sum of a group to a result. Float and int8 weights have one group. */
template <factors kind>
__device__ __forceinline__ float add_sum(const conv_task &t, float total,
                                         typename number_of<kind>::type sum, int output, int col,
                                         float unit)
{
    if (kind == CODES)
        return ft_dequantize((int32_t) sum, t.x_scale * t.w_scale[output],
                             t.bias == NULL ? 0.0f : t.bias[output]);
    if (t.blocks.scale == NULL)
        return (float) sum;
    size_t at = ft_blocks_index(&t.blocks, (unsigned) output, (unsigned) col, (unsigned) t.outputs);
    return ft_blocks_add(total, (float) sum, __half2float(((const __half *) t.blocks.scale)[at]),
                         kind == MADE_CODES ? unit : 1.0f);
}

template <factors kind>
__device__ __forceinline__ void put(const conv_task &t, unsigned window, int output, float value)
{
    unsigned positions = (unsigned) t.positions, image = window / positions;
    size_t at = ((size_t) image * (unsigned) t.outputs + (unsigned) output) * positions +
                (window - image * positions);
    if (t.conv.out_order == FT_IMAGE_PIXELS)
        at = (size_t) window * (unsigned) t.outputs + (unsigned) output;
    if (kind != CODES && t.bias != NULL)
        value += t.bias[output];
    value = conv_finish(t, value);
    if (t.y_dtype == FT_I8)
        ft_store_codes<1>(t.y, t.y_dtype, at, &value, t.y_inverse);
    else
        ft_store<1>(t.y, t.y_dtype, at, &value);
}

/* grid = (tiles of windows, tiles of output channels) */
template <factors kind>
static __global__ void __launch_bounds__(THREADS, 3)
    plain_kernel(const __grid_constant__ conv_task t)
{
    __shared__ tile<kind> s;
    unsigned first = blockIdx.x * SIDE, windows = (unsigned) t.images * (unsigned) t.positions;
    int output = (int) blockIdx.y * SIDE, a = threadIdx.x % APART, b = threadIdx.x / APART;
    int group = t.blocks.scale == NULL || t.blocks.group == 0 ? t.window : t.blocks.group;
    window_place place = place_of(t, first + threadIdx.x % SIDE);
    float total[EACH][EACH] = {};
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    for (int col = 0; col < t.window; col += group) {
        typename number_of<kind>::type sum[EACH][EACH];
        int end = t.window - col < group ? t.window : col + group;
        if constexpr (kind == MADE_CODES)
            find_units(s, t, place, col, end);
        add_group<kind>(sum, s, t, place, output, col, end);
#pragma unroll
        for (int i = 0; i < EACH * EACH; i++) {
            int own = output + b + i % EACH * APART;
            if (own < t.outputs)
                total[i / EACH][i % EACH] =
                    add_sum<kind>(t, total[i / EACH][i % EACH], sum[i / EACH][i % EACH], own, col,
                                  kind == MADE_CODES ? s.unit[a + i / EACH * APART] : 1.0f);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH * EACH; i++) {
        unsigned window = first + (unsigned) (a + i / EACH * APART);
        int own = output + b + i % EACH * APART;
        if (window < windows && own < t.outputs)
            put<kind>(t, window, own, total[i / EACH][i % EACH]);
    }
}

/* A grid supports up to 65535 tiles of output channels. */
int ft_cuda_conv_plain(const ft_cuda_chip *chip, void *stream, const conv_task *t)
{
    size_t windows = (size_t) t->images * (size_t) t->positions;
    dim3 grid(ft_cover(windows, SIDE), ft_cover((size_t) t->outputs, SIDE));
    if (windows == 0)
        return (int) cudaSuccess;
    if (grid.y > 65535 || windows / SIDE >= INT32_MAX)
        return (int) cudaErrorNotSupported;
    auto *kernel = t->w_dtype == FT_I8  ? plain_kernel<CODES>
                   : t->blocks.by_codes ? plain_kernel<MADE_CODES>
                                        : plain_kernel<REALS>;
    return ft_launch(kernel, grid, THREADS, 0, stream, chip->overlaps, 1, *t);
}
