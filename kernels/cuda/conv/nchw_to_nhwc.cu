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
    ROOM = CHANNELS * PITCH + 64, /* words of shared memory */
    SMALL_THREADS = 128,
    MOST_SMALL = 512, /* bytes of a plane: 64 of them fit into shared memory */
};

/* Traits for elements of SIZE bytes: pixels of a CTA, channels of a vector, threads. */
template <int SIZE> struct turn_form {
    static constexpr int pixels = WORDS * 4 / SIZE, group = CONV_VECTOR / SIZE;
    static constexpr int threads = CHANNELS / group * WORDS;
};

typedef struct turn_args {
    const char *from;
    char *to;
    int channels, pixels, width; /* of the images; width: pixels of a row */
    conv_turned turned;
    uint32_t pad; /* four padding values */
} turn_args;

/* The first word of a channel. The layout avoids bank conflicts when eight lanes read vectors. */
template <int SIZE> __device__ __forceinline__ int row_of(int channel)
{
    return channel * PITCH + (SIZE == 1 ? channel / 16 * 8 : 0);
}

/* Loads this CTA's channels and pixels in vectors of V bytes. */
template <int SIZE, int V>
__device__ __forceinline__ void read_tile(uint32_t *tile, const turn_args &a, const char *image,
                                          int channel, int pixel)
{
    constexpr int across = WORDS * 4 / V, threads = turn_form<SIZE>::threads;
    constexpr int each = CHANNELS * across / threads;
    struct alignas(V) vector {
        unsigned char byte[V];
    } v[each < 8 ? each : 8];
    constexpr int together = each < 8 ? each : 8;
#pragma unroll 1
    for (int i = 0; i < each; i += together) {
#pragma unroll
        for (int j = 0; j < together; j++) {
            int at = (i + j) * threads + (int) threadIdx.x, row = channel + at / across;
            int byte = pixel * SIZE + at % across * V;
            v[j] = {};
            if (row < a.channels && byte < a.pixels * SIZE)
                v[j] = *(const vector *) (image + (size_t) row * (size_t) (a.pixels * SIZE) + byte);
        }
#pragma unroll
        for (int j = 0; j < together; j++) {
            int at = (i + j) * threads + (int) threadIdx.x;
            char *to = (char *) (tile + row_of<SIZE>(at / across)) + at % across * V;
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
__device__ __forceinline__ void turn_square(uint4 (&out)[4 / SIZE],
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
__device__ __forceinline__ size_t line_of(const turn_args &a, int pixel)
{
    int row = 0, col = pixel;
    if (a.turned.width != a.width || a.turned.frame[0] != 0) {
        row = pixel / a.width + a.turned.frame[0];
        col = pixel % a.width + a.turned.frame[1];
    }
    return (size_t) (row * a.turned.width + col) * a.turned.line;
}

template <int SIZE>
__device__ __forceinline__ void write_tile(const uint32_t *tile, const turn_args &a, char *image,
                                           int channel, int pixel)
{
    constexpr int group = turn_form<SIZE>::group, across = 4 / SIZE;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int q = lane % 4 + warp / 4 * 4, word = lane / 4 + warp % 4 * 8;
    uint32_t in[group];
    uint4 out[across];
#pragma unroll
    for (int i = 0; i < group; i++)
        in[i] = tile[row_of<SIZE>(q * group + i) + word];
    turn_square<SIZE>(out, in);
    channel += q * group;
#pragma unroll
    for (int p = 0; p < across; p++)
        if (channel < a.channels && pixel + word * across + p < a.pixels)
            *(uint4 *) (image + line_of(a, pixel + word * across + p) + channel * SIZE) = out[p];
}

/* Writes the padding around an image. */
__device__ __forceinline__ void write_frame(const turn_args &a, char *image)
{
    int vectors = (int) (a.turned.line / CONV_VECTOR);
    int pixels = a.turned.height * a.turned.width;
    for (int i = threadIdx.x; i < pixels * vectors; i += blockDim.x) {
        int pixel = i / vectors, row = pixel / a.turned.width, col = pixel % a.turned.width;
        bool inside = row >= a.turned.frame[0] && row < a.turned.height - a.turned.frame[0] &&
                      col >= a.turned.frame[1] && col < a.turned.width - a.turned.frame[1];
        if (!inside)
            *(uint4 *) (image + (size_t) i * CONV_VECTOR) = make_uint4(a.pad, a.pad, a.pad, a.pad);
    }
}

/* grid = (ranges of pixels, and one more for the padding; channels; images) */
template <int SIZE, int V>
static __global__ void __launch_bounds__(turn_form<SIZE>::threads)
    turn_kernel(const __grid_constant__ turn_args a)
{
    __shared__ uint32_t tile[ROOM];
    int pixel = (int) blockIdx.x * turn_form<SIZE>::pixels, channel = (int) blockIdx.y * CHANNELS;
    char *to = a.to + blockIdx.z * a.turned.image;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (pixel >= a.pixels) {
        if (blockIdx.y == 0)
            write_frame(a, to);
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
static __global__ void __launch_bounds__(SMALL_THREADS)
    small_kernel(const __grid_constant__ turn_args a)
{
    extern __shared__ __align__(16) char shared[];
    constexpr int n = CONV_VECTOR / (int) sizeof(T);
    int channel = (int) blockIdx.x * CHANNELS, count = min(CHANNELS, a.channels - channel);
    size_t first = (size_t) blockIdx.y * (unsigned) a.channels + (unsigned) channel;
    const uint4 *from = (const uint4 *) (a.from + first * (unsigned) a.pixels * sizeof(T));
    char *to = a.to + blockIdx.y * a.turned.image + (size_t) channel * sizeof(T);
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    for (int i = threadIdx.x; i < count * a.pixels / n; i += SMALL_THREADS)
        ((uint4 *) shared)[i] = from[i];
    __syncthreads();
    /* a warp: vectors of four groups of channels, of eight pixels */
    int q = threadIdx.x % 4, place = threadIdx.x / 4, groups = count / n;
    for (; q < groups; q += 4)
        for (int pixel = place; pixel < a.pixels; pixel += SMALL_THREADS / 4) {
            union {
                T element[n];
                uint4 words;
            } out;
#pragma unroll
            for (int e = 0; e < n; e++)
                out.element[e] = ((const T *) shared)[(q * n + e) * a.pixels + pixel];
            *(uint4 *) (to + line_of(a, pixel) + q * CONV_VECTOR) = out.words;
        }
    if (blockIdx.x == 0 && a.turned.height * a.turned.width != a.pixels)
        write_frame(a, to);
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <int SIZE, int V>
static int launch(const ft_cuda_chip *chip, void *stream, const conv_task *t, const turn_args &a)
{
    bool framed = a.turned.height * a.turned.width != a.pixels;
    dim3 grid(ft_cover((size_t) a.pixels, turn_form<SIZE>::pixels) + framed,
              ft_cover((size_t) a.channels, CHANNELS), (unsigned) t->images);
    return ft_launch(turn_kernel<SIZE, V>, grid, turn_form<SIZE>::threads, 0, stream,
                     chip->overlaps, 1, a);
}

template <typename T>
static int launch_small(const ft_cuda_chip *chip, void *stream, const conv_task *t,
                        const turn_args &a)
{
    dim3 grid(ft_cover((size_t) a.channels, CHANNELS), (unsigned) t->images);
    return ft_launch(small_kernel<T>, grid, SMALL_THREADS,
                     (size_t) (CHANNELS * a.pixels) * sizeof(T), stream, chip->overlaps, 1, a);
}

template <int SIZE>
static int launch_for(const ft_cuda_chip *chip, void *stream, const conv_task *t,
                      const turn_args &a)
{
    size_t plane = (size_t) a.pixels * SIZE | (uintptr_t) a.from;
    if (plane % 4 != 0 && a.pixels * SIZE <= MOST_SMALL && (uintptr_t) a.from % CONV_VECTOR == 0)
        return launch_small<std::conditional_t<SIZE == 1, uint8_t, uint16_t>>(chip, stream, t, a);
    return plane % 16 == 0  ? launch<SIZE, 16>(chip, stream, t, a)
           : plane % 8 == 0 ? launch<SIZE, 8>(chip, stream, t, a)
           : plane % 4 == 0 ? launch<SIZE, 4>(chip, stream, t, a)
           : plane % 2 == 0 ? launch<SIZE, 2>(chip, stream, t, a)
                            : launch<SIZE, SIZE>(chip, stream, t, a);
}

int ft_cuda_conv_turn(const ft_cuda_chip *chip, void *stream, const conv_task *t,
                      const conv_turned *turned, void *to)
{
    turn_args a = {};
    if (t->conv.in_order == FT_IMAGE_PIXELS)
        return ft_cuda_conv_frame(chip, stream, t, turned, to);
    if (turned->order == CONV_CUT)
        return ft_cuda_conv_cut(chip, stream, t, turned, to);
    a.from = (const char *) t->x, a.to = (char *) to;
    a.channels = t->conv.channels, a.pixels = conv_pixels(t->conv), a.width = t->conv.width;
    a.turned = *turned;
    a.pad = t->x_dtype == FT_I8 ? (uint32_t) (uint8_t) t->conv.zero * 0x01010101u : 0;
    return t->x_dtype == FT_I8 ? launch_for<1>(chip, stream, t, a)
                               : launch_for<2>(chip, stream, t, a);
}

/* ---- Selection of the input layout ---------------------------------------------------------- */

static bool is_cut(const ft_conv &c)
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
static bool has_small_taps(const ft_conv &c)
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
static bool is_small(const conv_task *t)
{
    const ft_conv &c = t->conv;
    int64_t pixels = (int64_t) (c.height + 2 * c.padding[0]) * (c.width + 2 * c.padding[1]);
    return pixels <= 1 << 28 && t->window <= 1 << 24;
}

static conv_order order_of(const conv_task *t, size_t pixel, size_t size)
{
    const ft_conv &c = t->conv;
    if (!is_small(t))
        return CONV_NO_ORDER;
    bool taps = has_small_taps(c) && pixel % 32 == 0;
    if (is_cut(c) && (size_t) t->window * size <= CONV_MOST_CUT)
        return CONV_CUT;
    bool planes = c.in_order == FT_IMAGE_PLANES && c.out_order == FT_IMAGE_PLANES;
    if (planes && is_one_pixel(c) && size == 2 && (size_t) conv_pixels(c) * size % 16 == 0)
        return CONV_PLANES;
    if (is_one_pixel(c) && pixel % 16 == 0)
        return CONV_ROWS;
    if (taps && (!is_one_row(c) || (pixel % 128 == 0 && c.zero == 0)))
        return CONV_PIXELS;
    return is_one_row(c) && pixel % 16 == 0 ? CONV_ROWS : CONV_NO_ORDER;
}

conv_turned ft_cuda_conv_order(const conv_task *t)
{
    const ft_conv &c = t->conv;
    size_t size = t->x_dtype == FT_I8 ? 1 : 2, pixel = (size_t) c.channels * size;
    conv_turned turned = {};
    turned.order = order_of(t, pixel, size);
    bool framed = turned.order == CONV_ROWS || c.zero != 0;
    for (int i = 0; i < 2; i++)
        turned.frame[i] = framed ? c.padding[i] : 0;
    bool has_frame = turned.frame[0] + turned.frame[1] > 0;
    turned.made = turned.order == CONV_CUT || has_frame ||
                  (c.in_order == FT_IMAGE_PLANES && turned.order != CONV_PLANES);
    turned.height = c.height + 2 * turned.frame[0];
    turned.width = c.width + 2 * turned.frame[1];
    turned.line = turned.order == CONV_CUT ? ((size_t) t->window * size + 15) / 16 * 16 : pixel;
    turned.image =
        turned.line * (turned.order == CONV_CUT ? (size_t) t->positions
                                                : (size_t) turned.height * (size_t) turned.width);
    return turned;
}
