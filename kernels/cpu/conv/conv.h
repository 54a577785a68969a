/*
 * conv.h - the stages of a convolution on the CPU: NCHW to NHWC, im2col, and storing the outputs.
 *
 * Images are converted to NHWC, [rows * columns, channels], unless they already are; then the
 * pixels under a row of the kernel are contiguous. im2col turns windows into rows of a matrix, a
 * block of them at a time, and a GEMM multiplies these with the weights. Its output, one row per
 * window, is transposed back if the output is NCHW. Windows are numbered image by image, row by
 * row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_CONV_CONV_H
#define FT_KERNELS_CPU_CONV_CONV_H

#include "kernels/cpu/base/cpu.h"

/*
 * How a batch is divided. The images of one im2col block, at least one, are transposed together; a
 * block of windows stays in the caches of the threads that multiply it. In a pointwise convolution
 * windows are the pixels themselves, and a block of these is transposed. NHWC images of the dtype
 * that is multiplied are read in place.
 */
typedef struct ft_conv_tiling {
    size_t channels, pixels;       /* per image */
    size_t positions, window_size; /* windows of an image; elements of a window */
    size_t out_channels;
    size_t images, rows; /* images per transposition; windows per block */
    size_t size;         /* bytes of an element of pixels and windows: 4 or 1 */
    bool direct;         /* pointwise: windows are the pixels themselves, in order */
    bool transposed;     /* pixels must be converted: from NCHW, or from F16 or BF16 */
} ft_conv_tiling;

ft_conv_tiling ft_conv_tiling_for(const ft_conv *conv, const ft_weight *weight, ft_dtype x,
                                  size_t images, int threads);

/*
 * Converts pixels first .. first + count - 1, numbered image by image, to NHWC in `pixels`; F16 and
 * BF16 become float.
 */
void ft_conv_nchw_to_nhwc(const ft_args *args, const ft_conv_tiling *tiling, size_t first,
                          size_t count, void *pixels);

/*
 * im2col of windows first .. first + count - 1 of the images at `pixels`, into `rows`.
 */
void ft_conv_im2col(const ft_args *args, const ft_conv_tiling *tiling, const void *pixels,
                    size_t first, size_t count, void *rows);

/*
 * Stores outputs [count, out_channels] of the windows from `first` on: clamped, then rounded or
 * quantized.
 */
void ft_conv_store_output(const ft_args *args, const ft_conv_tiling *tiling, size_t first,
                          size_t count, const float *outputs);

#endif
