/*
 * nchw_to_nhwc.cu - converts images from NCHW to NHWC for the tensor-core kernels.
 *
 * A CTA transposes 64 channels of a range of pixels through shared memory: it reads consecutive
 * pixels and writes consecutive channels. A row of a channel has 128 bytes there and begins one
 * bank after the previous row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/nchw_to_nhwc.cuh"

#include <type_traits>

enum {
    CHANNELS = 64, /* per CTA */
    WORDS = 32,    /* words of a channel's pixels */
    PITCH = WORDS + 1,
    SMEM_WORDS = CHANNELS * PITCH + 64, /* words of shared memory */
    SMALL_PLANE_THREADS = 128,
    MAX_SMALL_PLANE = 512, /* bytes of a plane: 64 of them fit into shared memory */
};

/* Traits for elements of SIZE bytes: pixels of a CTA, channels of a vector, threads. */
template <int SIZE> struct transpose_traits {
    static constexpr int pixels = WORDS * 4 / SIZE, group = CONV_VECTOR / SIZE;
    static constexpr int threads = CHANNELS / group * WORDS;
};

typedef struct transpose_args {
    const char *from;
    char *to;
    int channels, pixels, width; /* of the images; width: pixels of a row */
    conv_input_layout layout;
    uint32_t pad; /* four padding values */
} transpose_args;

/* The first word of a channel. The layout avoids bank conflicts when eight lanes read vectors. */
template <int SIZE> __device__ __forceinline__ int row_of(int channel)
{
    return channel * PITCH + (SIZE == 1 ? channel / 16 * 8 : 0);
}

/* Loads this CTA's channels and pixels in vectors of V bytes. */
template <int SIZE, int V>
__device__ __forceinline__ void read_tile(uint32_t *tile, const transpose_args &a,
                                          const char *image, int channel, int pixel)
{
    constexpr int per_row = WORDS * 4 / V, threads = transpose_traits<SIZE>::threads;
    constexpr int vectors_per_thread = CHANNELS * per_row / threads;
    struct alignas(V) vector {
        unsigned char byte[V];
    } v[vectors_per_thread < 8 ? vectors_per_thread : 8];
    constexpr int batch = vectors_per_thread < 8 ? vectors_per_thread : 8;
#pragma unroll 1
    for (int i = 0; i < vectors_per_thread; i += batch) {
#pragma unroll
        for (int j = 0; j < batch; j++) {
            int at = (i + j) * threads + (int) threadIdx.x, row = channel + at / per_row;
            int byte = pixel * SIZE + at % per_row * V;
            v[j] = {};
            if (row < a.channels && byte < a.pixels * SIZE)
                v[j] = *(const vector *) (image + (size_t) row * (size_t) (a.pixels * SIZE) + byte);
        }
#pragma unroll
        for (int j = 0; j < batch; j++) {
            int at = (i + j) * threads + (int) threadIdx.x;
            char *to = (char *) (tile + row_of<SIZE>(at / per_row)) + at % per_row * V;
            if constexpr (V < 4)
                *(vector *) to = v[j];
            else
#pragma unroll
                for (int w = 0; w < V / 4; w++)
                    ((uint32_t *) to)[w] = ((const uint32_t *) &v[j])[w];
        }
    }
}

/* Transposes 4 / SIZE pixels: 16 bytes of channels of each, from a word of each channel. */
template <int SIZE>
__device__ __forceinline__ void transpose_block(uint4 (&out)[4 / SIZE],
                                                const uint32_t (&in)[CONV_VECTOR / SIZE])
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t word[4 / SIZE];
        if constexpr (SIZE == 2) {
            word[0] = __byte_perm(in[2 * i], in[2 * i + 1], 0x5410);
            word[1] = __byte_perm(in[2 * i], in[2 * i + 1], 0x7632);
        } else {
            uint32_t a = __byte_perm(in[4 * i], in[4 * i + 1], 0x5140);
            uint32_t b = __byte_perm(in[4 * i + 2], in[4 * i + 3], 0x5140);
            uint32_t c = __byte_perm(in[4 * i], in[4 * i + 1], 0x7362);
            uint32_t d = __byte_perm(in[4 * i + 2], in[4 * i + 3], 0x7362);
            word[0] = __byte_perm(a, b, 0x5410);
            word[1] = __byte_perm(a, b, 0x7632);
            word[2] = __byte_perm(c, d, 0x5410);
            word[3] = __byte_perm(c, d, 0x7632);
        }
#pragma unroll
        for (int p = 0; p < 4 / SIZE; p++)
            (&out[p].x)[i] = word[p];
    }
}

/* Offset of pixel `pixel` of an image in NHWC. */
__device__ __forceinline__ size_t pixel_offset(const transpose_args &a, int pixel)
{
    int row = 0, col = pixel;
    if (a.layout.width != a.width || a.layout.border[0] != 0) {
        row = pixel / a.width + a.layout.border[0];
        col = pixel % a.width + a.layout.border[1];
    }
    return (size_t) (row * a.layout.width + col) * a.layout.line;
}

template <int SIZE>
__device__ __forceinline__ void write_tile(const uint32_t *tile, const transpose_args &a,
                                           char *image, int channel, int pixel)
{
    constexpr int group = transpose_traits<SIZE>::group, per_row = 4 / SIZE;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int q = lane % 4 + warp / 4 * 4, word = lane / 4 + warp % 4 * 8;
    uint32_t in[group];
    uint4 out[per_row];
#pragma unroll
    for (int i = 0; i < group; i++)
        in[i] = tile[row_of<SIZE>(q * group + i) + word];
    transpose_block<SIZE>(out, in);
    channel += q * group;
#pragma unroll
    for (int p = 0; p < per_row; p++)
        if (channel < a.channels && pixel + word * per_row + p < a.pixels)
            *(uint4 *) (image + pixel_offset(a, pixel + word * per_row + p) + channel * SIZE) =
                out[p];
}

/* Writes the padding around an image. */
__device__ __forceinline__ void write_border(const transpose_args &a, char *image)
{
    int vectors = (int) (a.layout.line / CONV_VECTOR);
    int pixels = a.layout.height * a.layout.width;
    for (int i = threadIdx.x; i < pixels * vectors; i += blockDim.x) {
        int pixel = i / vectors, row = pixel / a.layout.width, col = pixel % a.layout.width;
        bool inside = row >= a.layout.border[0] && row < a.layout.height - a.layout.border[0] &&
                      col >= a.layout.border[1] && col < a.layout.width - a.layout.border[1];
        if (!inside)
            *(uint4 *) (image + (size_t) i * CONV_VECTOR) = make_uint4(a.pad, a.pad, a.pad, a.pad);
    }
}

/* grid = (ranges of pixels, and one more for the padding; channels; images) */
template <int SIZE, int V>
static __global__ void __launch_bounds__(transpose_traits<SIZE>::threads)
    transpose_kernel(const __grid_constant__ transpose_args a)
{
    __shared__ uint32_t tile[SMEM_WORDS];
    int pixel = (int) blockIdx.x * transpose_traits<SIZE>::pixels,
        channel = (int) blockIdx.y * CHANNELS;
    char *to = a.to + blockIdx.z * a.layout.image;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (pixel >= a.pixels) {
        if (blockIdx.y == 0)
            write_border(a, to);
        return;
    }
    read_tile<SIZE, V>(
        tile, a, a.from + (size_t) blockIdx.z * (size_t) a.channels * (size_t) (a.pixels * SIZE),
        channel, pixel);
    __syncthreads();
    write_tile<SIZE>(tile, a, to, channel, pixel);
}

/* ---- Small planes --------------------------------------------------------------------------- */

/*
 * Planes that are not aligned to words, such as 7 x 7: all channels of a CTA are read as
 * consecutive vectors, regardless of plane boundaries. grid = (channels, images)
 */
template <typename T>
static __global__ void __launch_bounds__(SMALL_PLANE_THREADS)
    small_plane_kernel(const __grid_constant__ transpose_args a)
{
    extern __shared__ __align__(16) char shared[];
    constexpr int n = CONV_VECTOR / (int) sizeof(T);
    int channel = (int) blockIdx.x * CHANNELS, count = min(CHANNELS, a.channels - channel);
    size_t first = (size_t) blockIdx.y * (unsigned) a.channels + (unsigned) channel;
    const uint4 *from = (const uint4 *) (a.from + first * (unsigned) a.pixels * sizeof(T));
    char *to = a.to + blockIdx.y * a.layout.image + (size_t) channel * sizeof(T);
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    for (int i = threadIdx.x; i < count * a.pixels / n; i += SMALL_PLANE_THREADS)
        ((uint4 *) shared)[i] = from[i];
    __syncthreads();
    /* a warp: vectors of four groups of channels, of eight pixels */
    int q = threadIdx.x % 4, pixel_index = threadIdx.x / 4, groups = count / n;
    for (; q < groups; q += 4)
        for (int pixel = pixel_index; pixel < a.pixels; pixel += SMALL_PLANE_THREADS / 4) {
            union {
                T element[n];
                uint4 words;
            } out;
#pragma unroll
            for (int e = 0; e < n; e++)
                out.element[e] = ((const T *) shared)[(q * n + e) * a.pixels + pixel];
            *(uint4 *) (to + pixel_offset(a, pixel) + q * CONV_VECTOR) = out.words;
        }
    if (blockIdx.x == 0 && a.layout.height * a.layout.width != a.pixels)
        write_border(a, to);
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <int SIZE, int V>
static int launch(const ft_cuda_device_props *props, void *stream, const conv_problem_args *t,
                  const transpose_args &a)
{
    bool has_border_pixels = a.layout.height * a.layout.width != a.pixels;
    dim3 grid(ft_ceil_div((size_t) a.pixels, transpose_traits<SIZE>::pixels) + has_border_pixels,
              ft_ceil_div((size_t) a.channels, CHANNELS), (unsigned) t->images);
    return ft_launch(transpose_kernel<SIZE, V>, grid, transpose_traits<SIZE>::threads, 0, stream,
                     props->has_pdl, 1, a);
}

template <typename T>
static int launch_small_planes(const ft_cuda_device_props *props, void *stream,
                               const conv_problem_args *t, const transpose_args &a)
{
    dim3 grid(ft_ceil_div((size_t) a.channels, CHANNELS), (unsigned) t->images);
    return ft_launch(small_plane_kernel<T>, grid, SMALL_PLANE_THREADS,
                     (size_t) (CHANNELS * a.pixels) * sizeof(T), stream, props->has_pdl, 1, a);
}

template <int SIZE>
static int launch_aligned(const ft_cuda_device_props *props, void *stream,
                          const conv_problem_args *t, const transpose_args &a)
{
    size_t plane = (size_t) a.pixels * SIZE | (uintptr_t) a.from;
    if (plane % 4 != 0 && a.pixels * SIZE <= MAX_SMALL_PLANE &&
        (uintptr_t) a.from % CONV_VECTOR == 0)
        return launch_small_planes<std::conditional_t<SIZE == 1, uint8_t, uint16_t>>(props, stream,
                                                                                     t, a);
    return plane % 16 == 0  ? launch<SIZE, 16>(props, stream, t, a)
           : plane % 8 == 0 ? launch<SIZE, 8>(props, stream, t, a)
           : plane % 4 == 0 ? launch<SIZE, 4>(props, stream, t, a)
           : plane % 2 == 0 ? launch<SIZE, 2>(props, stream, t, a)
                            : launch<SIZE, SIZE>(props, stream, t, a);
}

int ft_cuda_conv_convert_input(const ft_cuda_device_props *props, void *stream,
                               const conv_problem_args *t, const conv_input_layout *layout,
                               void *to)
{
    transpose_args a = {};
    if (t->conv.in_layout == FT_IMAGE_NHWC)
        return ft_cuda_conv_pad_nhwc(props, stream, t, layout, to);
    if (layout->layout_kind == CONV_LAYOUT_PATCHES)
        return ft_cuda_conv_space_to_depth(props, stream, t, layout, to);
    a.from = (const char *) t->x, a.to = (char *) to;
    a.channels = t->conv.channels, a.pixels = conv_pixels(t->conv), a.width = t->conv.width;
    a.layout = *layout;
    a.pad = t->x_dtype == FT_I8 ? (uint32_t) (uint8_t) t->conv.zero * 0x01010101u : 0;
    return t->x_dtype == FT_I8 ? launch_aligned<1>(props, stream, t, a)
                               : launch_aligned<2>(props, stream, t, a);
}

/* ---- Selection of the input layout ---------------------------------------------------------- */

static bool is_patchify(const ft_conv &c)
{
    bool fits = c.kernel[0] * c.kernel[1] > 1;
    for (int i = 0; i < 2; i++)
        fits = fits && c.kernel[i] == c.stride[i] && c.padding[i] == 0 &&
               (c.dilation[i] == 1 || c.kernel[i] == 1);
    return fits;
}

static bool is_one_pixel(const ft_conv &c)
{
    return c.kernel[0] * c.kernel[1] * c.stride[0] * c.stride[1] == 1 &&
           c.padding[0] + c.padding[1] == 0;
}

static bool is_one_row(const ft_conv &c)
{
    return c.height == 1 && c.kernel[0] == 1 && c.padding[0] == 0 &&
           (c.dilation[1] == 1 || c.kernel[1] == 1);
}

/* Limits of TMA im2col: corners of boxes, offsets and strides have few bits. */
static bool fits_im2col(const ft_conv &c)
{
    bool fits = true;
    for (int i = 0; i < 2; i++) {
        int64_t reach = (int64_t) c.dilation[i] * (c.kernel[i] - 1);
        int padding = c.zero != 0 ? 0 : c.padding[i]; /* otherwise the padding is stored */
        fits = fits && padding <= 127 && reach <= 255 && reach - padding <= 128 && c.stride[i] <= 8;
    }
    return fits;
}

/* Whether 32 bits hold the number of pixels, including padding, and the bytes of a window. */
static bool fits_32_bits(const conv_problem_args *t)
{
    const ft_conv &c = t->conv;
    int64_t pixels = (int64_t) (c.height + 2 * c.padding[0]) * (c.width + 2 * c.padding[1]);
    return pixels <= 1 << 28 && t->window <= 1 << 24;
}

static conv_layout input_layout_of(const conv_problem_args *t, size_t pixel, size_t size)
{
    const ft_conv &c = t->conv;
    if (!fits_32_bits(t))
        return CONV_LAYOUT_NONE;
    bool im2col = fits_im2col(c) && pixel % 32 == 0;
    if (is_patchify(c) && (size_t) t->window * size <= CONV_MAX_PATCH)
        return CONV_LAYOUT_PATCHES;
    bool planes = c.in_layout == FT_IMAGE_NCHW && c.out_layout == FT_IMAGE_NCHW;
    if (planes && is_one_pixel(c) && size == 2 && (size_t) conv_pixels(c) * size % 16 == 0)
        return CONV_LAYOUT_NCHW;
    if (is_one_pixel(c) && pixel % 16 == 0)
        return CONV_LAYOUT_ROWS;
    if (im2col && (!is_one_row(c) || (pixel % 128 == 0 && c.zero == 0)))
        return CONV_LAYOUT_NHWC;
    return is_one_row(c) && pixel % 16 == 0 ? CONV_LAYOUT_ROWS : CONV_LAYOUT_NONE;
}

conv_input_layout ft_cuda_conv_input_layout_of(const conv_problem_args *t)
{
    const ft_conv &c = t->conv;
    size_t size = t->x_dtype == FT_I8 ? 1 : 2, pixel = (size_t) c.channels * size;
    conv_input_layout layout = {};
    layout.layout_kind = input_layout_of(t, pixel, size);
    bool has_border_pixels = layout.layout_kind == CONV_LAYOUT_ROWS || c.zero != 0;
    for (int i = 0; i < 2; i++)
        layout.border[i] = has_border_pixels ? c.padding[i] : 0;
    bool has_border = layout.border[0] + layout.border[1] > 0;
    layout.converted = layout.layout_kind == CONV_LAYOUT_PATCHES || has_border ||
                       (c.in_layout == FT_IMAGE_NCHW && layout.layout_kind != CONV_LAYOUT_NCHW);
    layout.height = c.height + 2 * layout.border[0];
    layout.width = c.width + 2 * layout.border[1];
    layout.line = layout.layout_kind == CONV_LAYOUT_PATCHES
                      ? ((size_t) t->window * size + 15) / 16 * 16
                      : pixel;
    layout.image = layout.line * (layout.layout_kind == CONV_LAYOUT_PATCHES
                                      ? (size_t) t->out_pixels
                                      : (size_t) layout.height * (size_t) layout.width);
    return layout;
}
