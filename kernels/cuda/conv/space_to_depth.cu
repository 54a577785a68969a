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

enum { THREADS = 256, SMEM_BYTES = 8 << 10 /* bytes per CTA; at least one window */ };

/* Work of a CTA: some windows of one row of windows, with all channels. */
typedef struct patch_args {
    const char *from;
    char *to;
    ft_conv conv;
    int per_row, down;           /* windows of an image */
    int windows_per_cta, blocks; /* windows per CTA; CTAs per row of windows */
    int window, lines;           /* elements; pixel lines of a CTA: channels x kernel rows */
    int vectors;                 /* per row that is written */
} patch_args;

/* Reads N elements of T at a time, of `row_elements` consecutive ones in each line. */
template <typename T, int N>
__device__ __forceinline__ void read_lines(T *tile, const patch_args &a, const T *image, int left,
                                           int row_elements)
{
    const ft_conv &c = a.conv;
    struct alignas(N * sizeof(T)) vector {
        T element[N];
    };
    int per_row = row_elements / N;
#pragma unroll 4
    for (int i = threadIdx.x; i < a.lines * per_row; i += THREADS) {
        int line = i / per_row, at = (i - line * per_row) * N;
        int channel = line / c.kernel[0], row = line - channel * c.kernel[0];
        *(vector *) (tile + line * a.windows_per_cta * c.kernel[1] + at) =
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
__device__ __forceinline__ uint4 gather(const T *tile, const patch_args &a, int window, int col)
{
    constexpr int n = CONV_VECTOR / (int) sizeof(T);
    const ft_conv &c = a.conv;
    int row_elements = a.windows_per_cta * c.kernel[1], tap = col / c.channels,
        channel = col - tap * c.channels;
    int row = tap / c.kernel[1], right = tap - row * c.kernel[1];
    const T *from = tile + window * c.kernel[1];
    union {
        T element[n];
        uint4 words;
    } out;
#pragma unroll
    for (int e = 0; e < n; e++) {
        out.element[e] =
            col + e < a.window ? from[(channel * c.kernel[0] + row) * row_elements + right] : 0;
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
static __global__ void __launch_bounds__(THREADS)
    patches_kernel(const __grid_constant__ patch_args a)
{
    extern __shared__ __align__(16) char shared[];
    T *tile = (T *) shared;
    const ft_conv &c = a.conv;
    int row = (int) blockIdx.x / a.blocks, first = (int) blockIdx.x % a.blocks * a.windows_per_cta;
    int count = min(a.windows_per_cta, a.per_row - first);
    size_t image = blockIdx.y;
    const T *from = (const T *) a.from +
                    image * (unsigned) c.channels * (size_t) (c.height * c.width) +
                    (size_t) (row * c.kernel[0]) * (unsigned) c.width;
    uint4 *to =
        (uint4 *) a.to +
        ((image * (unsigned) a.down + (unsigned) row) * (unsigned) a.per_row + (unsigned) first) *
            (unsigned) a.vectors;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    read_lines<T, N>(tile, a, from, first * c.kernel[1], count * c.kernel[1]);
    __syncthreads();
    for (int i = threadIdx.x; i < count * a.vectors; i += THREADS) {
        int window = i / a.vectors;
        to[i] = gather(tile, a, window, (i - window * a.vectors) * (CONV_VECTOR / (int) sizeof(T)));
    }
}

template <typename T, int N>
static int launch_patches(const ft_cuda_device_props *props, void *stream,
                          const conv_problem_args *t, const patch_args &a)
{
    size_t bytes = (size_t) (a.lines * a.windows_per_cta * a.conv.kernel[1]) * sizeof(T);
    dim3 grid((unsigned) (a.blocks * a.down), (unsigned) t->images);
    return ft_launch(patches_kernel<T, N>, grid, THREADS, bytes, stream, props->has_pdl, 1, a);
}

template <typename T>
static int convert(const ft_cuda_device_props *props, void *stream, const conv_problem_args *t,
                   size_t line, void *to)
{
    const ft_conv &c = t->conv;
    size_t window = (size_t) t->window * sizeof(T);
    patch_args a = {};
    a.from = (const char *) t->x, a.to = (char *) to;
    a.conv = c;
    a.per_row = t->per_row, a.down = t->out_pixels / t->per_row;
    a.windows_per_cta = window > SMEM_BYTES / 2 ? 1 : (int) (SMEM_BYTES / window);
    a.windows_per_cta = a.windows_per_cta < t->per_row ? a.windows_per_cta : t->per_row;
    a.blocks = (t->per_row + a.windows_per_cta - 1) / a.windows_per_cta;
    a.window = t->window, a.lines = c.channels * c.kernel[0];
    a.vectors = (int) (line / CONV_VECTOR);
    constexpr int max_vector = 8 / (int) sizeof(T);
    bool fits =
        c.kernel[1] % max_vector == 0 && c.width % max_vector == 0 && (uintptr_t) a.from % 8 == 0;
    return fits ? launch_patches<T, max_vector>(props, stream, t, a)
                : launch_patches<T, 1>(props, stream, t, a);
}

int ft_cuda_conv_space_to_depth(const ft_cuda_device_props *props, void *stream,
                                const conv_problem_args *t, const conv_input_layout *layout,
                                void *to)
{
    return t->x_dtype == FT_I8 ? convert<uint8_t>(props, stream, t, layout->line, to)
                               : convert<uint16_t>(props, stream, t, layout->line, to);
}
