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

typedef struct pad_args {
    const char *from;
    char *to;
    ft_conv conv;
    conv_input_layout layout;
    int per_row;                     /* windows per row */
    int vectors;                     /* per pixel, or per window */
    int window, kernel_row_elements; /* elements of a window, and of what a kernel row covers */
    size_t total;                    /* vectors */
    uint32_t pad;                    /* four padding values */
} pad_args;

/* Pads; the channels of a pixel are complete vectors. */
static __global__ void __launch_bounds__(THREADS) pad_kernel(const __grid_constant__ pad_args a)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (i >= a.total)
        return;
    size_t place = i / (unsigned) a.vectors, line = place / (unsigned) a.layout.width;
    size_t image = line / (unsigned) a.layout.height;
    int row = (int) (line - image * (unsigned) a.layout.height) - a.layout.border[0];
    int col = (int) (place - line * (unsigned) a.layout.width) - a.layout.border[1];
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
static __global__ void __launch_bounds__(THREADS) patches_kernel(const __grid_constant__ pad_args a)
{
    constexpr int n = CONV_VECTOR / (int) sizeof(T);
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (i >= a.total)
        return;
    size_t window = i / (unsigned) a.vectors, line = window / (unsigned) a.per_row;
    int down = a.conv.height / a.conv.kernel[0];
    size_t image = line / (unsigned) down;
    int top = (int) (line - image * (unsigned) down) * a.conv.kernel[0];
    int left = (int) (window - line * (unsigned) a.per_row) * a.conv.kernel[1];
    int col = (int) (i % (unsigned) a.vectors) * n, row = col / a.kernel_row_elements,
        col_in_row = col - row * a.kernel_row_elements;
    const T *from =
        (const T *) a.from +
        ((image * (unsigned) a.conv.height + (unsigned) (top + row)) * (unsigned) a.conv.width +
         (unsigned) left) *
            (unsigned) a.conv.channels;
    size_t image_row_stride = (size_t) a.conv.width * (unsigned) a.conv.channels;
    union {
        T element[n];
        uint4 words;
    } out;
#pragma unroll
    for (int e = 0; e < n; e++) {
        out.element[e] = col + e < a.window ? from[col_in_row] : 0;
        if (++col_in_row == a.kernel_row_elements)
            col_in_row = 0, from += image_row_stride;
    }
    ((uint4 *) a.to)[i] = out.words;
}

int ft_cuda_conv_pad_nhwc(const ft_cuda_device_props *props, void *stream,
                          const conv_problem_args *t, const conv_input_layout *layout, void *to)
{
    pad_args a = {};
    bool is_patches = layout->layout_kind == CONV_LAYOUT_PATCHES;
    a.from = (const char *) t->x, a.to = (char *) to;
    a.conv = t->conv, a.layout = *layout;
    a.per_row = t->per_row;
    a.vectors = (int) (layout->line / CONV_VECTOR);
    a.window = t->window, a.kernel_row_elements = t->conv.kernel[1] * t->conv.channels;
    a.total = (size_t) t->images * layout->image / CONV_VECTOR;
    a.pad = t->x_dtype == FT_I8 ? (uint32_t) (uint8_t) t->conv.zero * 0x01010101u : 0;
    auto *kernel = !is_patches           ? pad_kernel
                   : t->x_dtype == FT_I8 ? patches_kernel<uint8_t>
                                         : patches_kernel<uint16_t>;
    return ft_launch(kernel, ft_ceil_div(a.total, THREADS), THREADS, 0, stream, props->has_pdl, 1,
                     a);
}
