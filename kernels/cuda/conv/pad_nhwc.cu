/*
 * pad_nhwc.cu - pads NHWC images, or cuts them into patches.
 *
 * Both move contiguous elements: the 16 bytes that a thread writes at once belong to a pixel, or to
 * what one row of the kernel covers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/nchw_to_nhwc.cuh"

enum { THREADS = 256 };

typedef struct frame_args {
    const char *from;
    char *to;
    ft_conv conv;
    conv_turned turned;
    int across;      /* windows per row */
    int vectors;     /* per pixel, or per window */
    int window, run; /* elements of a window, and of what a kernel row covers */
    size_t total;    /* vectors */
    uint32_t pad;    /* four padding values */
} frame_args;

/* Pads; the channels of a pixel are complete vectors. */
static __global__ void __launch_bounds__(THREADS) frame_kernel(const __grid_constant__ frame_args a)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (i >= a.total)
        return;
    size_t place = i / (unsigned) a.vectors, line = place / (unsigned) a.turned.width;
    size_t image = line / (unsigned) a.turned.height;
    int row = (int) (line - image * (unsigned) a.turned.height) - a.turned.frame[0];
    int col = (int) (place - line * (unsigned) a.turned.width) - a.turned.frame[1];
    uint4 v = make_uint4(a.pad, a.pad, a.pad, a.pad);
    if (row >= 0 && row < a.conv.height && col >= 0 && col < a.conv.width) {
        size_t pixel =
            (image * (unsigned) a.conv.height + (unsigned) row) * (unsigned) a.conv.width +
            (unsigned) col;
        v = ((const uint4 *) a.from)[pixel * (unsigned) a.vectors + i % (unsigned) a.vectors];
    }
    ((uint4 *) a.to)[i] = v;
}

/* Cuts patches; elements of type T. */
template <typename T>
static __global__ void __launch_bounds__(THREADS) cut_kernel(const __grid_constant__ frame_args a)
{
    constexpr int n = CONV_VECTOR / (int) sizeof(T);
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (i >= a.total)
        return;
    size_t window = i / (unsigned) a.vectors, line = window / (unsigned) a.across;
    int down = a.conv.height / a.conv.kernel[0];
    size_t image = line / (unsigned) down;
    int top = (int) (line - image * (unsigned) down) * a.conv.kernel[0];
    int left = (int) (window - line * (unsigned) a.across) * a.conv.kernel[1];
    int col = (int) (i % (unsigned) a.vectors) * n, row = col / a.run, right = col - row * a.run;
    const T *from =
        (const T *) a.from +
        ((image * (unsigned) a.conv.height + (unsigned) (top + row)) * (unsigned) a.conv.width +
         (unsigned) left) *
            (unsigned) a.conv.channels;
    size_t next = (size_t) a.conv.width * (unsigned) a.conv.channels;
    union {
        T element[n];
        uint4 words;
    } out;
#pragma unroll
    for (int e = 0; e < n; e++) {
        out.element[e] = col + e < a.window ? from[right] : 0;
        if (++right == a.run)
            right = 0, from += next;
    }
    ((uint4 *) a.to)[i] = out.words;
}

int ft_cuda_conv_frame(const ft_cuda_chip *chip, void *stream, const conv_task *t,
                       const conv_turned *turned, void *to)
{
    frame_args a = {};
    bool cuts = turned->order == CONV_CUT;
    a.from = (const char *) t->x, a.to = (char *) to;
    a.conv = t->conv, a.turned = *turned;
    a.across = t->across;
    a.vectors = (int) (turned->line / CONV_VECTOR);
    a.window = t->window, a.run = t->conv.kernel[1] * t->conv.channels;
    a.total = (size_t) t->images * turned->image / CONV_VECTOR;
    a.pad = t->x_dtype == FT_I8 ? (uint32_t) (uint8_t) t->conv.zero * 0x01010101u : 0;
    auto *kernel = !cuts                 ? frame_kernel
                   : t->x_dtype == FT_I8 ? cut_kernel<uint8_t>
                                         : cut_kernel<uint16_t>;
    return ft_launch(kernel, ft_cover(a.total, THREADS), THREADS, 0, stream, chip->overlaps, 1, a);
}
