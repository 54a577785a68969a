/*
 * space_to_depth.cu - cuts NCHW images into patches without overlap, each a row: [row, column,
 * channel].
 *
 * A CTA reads complete pixel lines of some consecutive windows to shared memory, and writes their
 * rows, which are consecutive too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/nchw_to_nhwc.cuh"

enum { THREADS = 256, ROOM = 8 << 10 /* bytes per CTA; at least one window */ };

/* Work of a CTA: some windows of one row of windows, with all channels. */
typedef struct cut_args {
    const char *from;
    char *to;
    ft_conv conv;
    int across, down;  /* windows of an image */
    int each, blocks;  /* windows per CTA; CTAs per row of windows */
    int window, lines; /* elements; pixel lines of a CTA: channels x kernel rows */
    int vectors;       /* per row that is written */
} cut_args;

/* Reads N elements of T at a time, of `row_elements` consecutive ones in each line. */
template <typename T, int N>
__device__ __forceinline__ void read_lines(T *tile, const cut_args &a, const T *image, int left,
                                           int wide)
{
    const ft_conv &c = a.conv;
    struct alignas(N * sizeof(T)) vector {
        T element[N];
    };
    int across = wide / N;
#pragma unroll 4
    for (int i = threadIdx.x; i < a.lines * across; i += THREADS) {
        int line = i / across, at = (i - line * across) * N;
        int channel = line / c.kernel[0], row = line - channel * c.kernel[0];
        *(vector *) (tile + line * a.each * c.kernel[1] + at) =
            *(const vector *) (image +
                               ((size_t) channel * (unsigned) c.height + (unsigned) row) *
                                   (unsigned) c.width +
                               left + at);
    }
}

/*
 * Gathers 16 bytes of a window from element `col` on. The channels of a tap are kernel rows apart.
 */
template <typename T>
__device__ __forceinline__ uint4 gather(const T *tile, const cut_args &a, int window, int col)
{
    constexpr int n = CONV_VECTOR / (int) sizeof(T);
    const ft_conv &c = a.conv;
    int wide = a.each * c.kernel[1], tap = col / c.channels, channel = col - tap * c.channels;
    int row = tap / c.kernel[1], right = tap - row * c.kernel[1];
    const T *from = tile + window * c.kernel[1];
    union {
        T element[n];
        uint4 words;
    } out;
#pragma unroll
    for (int e = 0; e < n; e++) {
        out.element[e] =
            col + e < a.window ? from[(channel * c.kernel[0] + row) * wide + right] : 0;
        if (++channel == c.channels) {
            channel = 0;
            if (++right == c.kernel[1])
                right = 0, row++;
        }
    }
    return out.words;
}

/* grid = (CTAs of a row of windows x rows, images); T has the size of an element. */
template <typename T, int N>
static __global__ void __launch_bounds__(THREADS) cut_kernel(const __grid_constant__ cut_args a)
{
    extern __shared__ __align__(16) char shared[];
    T *tile = (T *) shared;
    const ft_conv &c = a.conv;
    int row = (int) blockIdx.x / a.blocks, first = (int) blockIdx.x % a.blocks * a.each;
    int count = min(a.each, a.across - first);
    size_t image = blockIdx.y;
    const T *from = (const T *) a.from +
                    image * (unsigned) c.channels * (size_t) (c.height * c.width) +
                    (size_t) (row * c.kernel[0]) * (unsigned) c.width;
    uint4 *to =
        (uint4 *) a.to +
        ((image * (unsigned) a.down + (unsigned) row) * (unsigned) a.across + (unsigned) first) *
            (unsigned) a.vectors;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    read_lines<T, N>(tile, a, from, first * c.kernel[1], count * c.kernel[1]);
    __syncthreads();
    for (int i = threadIdx.x; i < count * a.vectors; i += THREADS) {
        int window = i / a.vectors;
        to[i] = gather(tile, a, window, (i - window * a.vectors) * (CONV_VECTOR / (int) sizeof(T)));
    }
}

template <typename T, int N>
static int launch_cut(const ft_cuda_chip *chip, void *stream, const conv_task *t, const cut_args &a)
{
    size_t bytes = (size_t) (a.lines * a.each * a.conv.kernel[1]) * sizeof(T);
    dim3 grid((unsigned) (a.blocks * a.down), (unsigned) t->images);
    return ft_launch(cut_kernel<T, N>, grid, THREADS, bytes, stream, chip->overlaps, 1, a);
}

template <typename T>
static int cut(const ft_cuda_chip *chip, void *stream, const conv_task *t, size_t line, void *to)
{
    const ft_conv &c = t->conv;
    size_t window = (size_t) t->window * sizeof(T);
    cut_args a = {};
    a.from = (const char *) t->x, a.to = (char *) to;
    a.conv = c;
    a.across = t->across, a.down = t->positions / t->across;
    a.each = window > ROOM / 2 ? 1 : (int) (ROOM / window);
    a.each = a.each < t->across ? a.each : t->across;
    a.blocks = (t->across + a.each - 1) / a.each;
    a.window = t->window, a.lines = c.channels * c.kernel[0];
    a.vectors = (int) (line / CONV_VECTOR);
    constexpr int most = 8 / (int) sizeof(T);
    bool fits = c.kernel[1] % most == 0 && c.width % most == 0 && (uintptr_t) a.from % 8 == 0;
    return fits ? launch_cut<T, most>(chip, stream, t, a) : launch_cut<T, 1>(chip, stream, t, a);
}

int ft_cuda_conv_cut(const ft_cuda_chip *chip, void *stream, const conv_task *t,
                     const conv_turned *turned, void *to)
{
    return t->x_dtype == FT_I8 ? cut<uint8_t>(chip, stream, t, turned->line, to)
                               : cut<uint16_t>(chip, stream, t, turned->line, to);
}
