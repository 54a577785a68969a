/*
 * conv.h - the parts of a convolution on the CPU: images turned, windows gathered, results laid
 * out.
 *
 * Images become rows of pixels with their channels side by side, [rows * columns, channels], unless
 * they are; then what a row of a kernel covers lies in one run.  Windows become rows of a matrix, a
 * block of them at a time, and a product of matrices does the rest.  What it gives, a row a window,
 * is turned back where results are planes.  Windows are numbered image by image, row by row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_CONV_CONV_H
#define FT_KERNELS_CPU_CONV_CONV_H

#include "kernels/cpu/base/cpu.h"

/*
 * How a run is cut.  A few images are turned at once, as many as fill a block with their windows,
 * or one; a block of windows stays in the caches of the threads that multiply it.  Where windows
 * are the pixels themselves, a block of these is turned at once.  Images that lie by pixels, of
 * what is multiplied, are not turned but read where they are.
 */
typedef struct ft_conv_cut {
    size_t channels, pixels;  /* of an image */
    size_t positions, window; /* of an image; elements of one */
    size_t outputs;
    size_t images, rows; /* of a turn; windows of a block */
    size_t size;         /* bytes of an element of pixels and of windows: 4 or 1 */
    bool direct;         /* windows are the pixels themselves, in their order */
    bool turned;         /* pixels must be made: images are planes, or halves */
} ft_conv_cut;

ft_conv_cut ft_conv_cut_of(const ft_conv *conv, const ft_weight *weight, ft_dtype x, size_t images,
                           int threads);

/*
 * Turn pixels first .. first + count - 1, numbered image by image, to `pixels`; real values become
 * floats.
 */
void ft_conv_turn(const ft_args *args, const ft_conv_cut *cut, size_t first, size_t count,
                  void *pixels);

/* Gather windows first .. first + count - 1 of the images that `pixels` begins with into rows. */
void ft_conv_gather(const ft_args *args, const ft_conv_cut *cut, const void *pixels, size_t first,
                    size_t count, void *rows);

/* Lay out results [count, outputs] of the windows from `first` on: cut to the range, rounded. */
void ft_conv_lay_out(const ft_args *args, const ft_conv_cut *cut, size_t first, size_t count,
                     const float *results);

#endif
