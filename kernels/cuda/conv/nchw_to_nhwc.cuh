/*
 * nchw_to_nhwc.cuh - where the tensor cores find the windows of a convolution.
 *
 *   planes   images as they are: a kernel of one pixel multiplies channels, whose pixels are
 *            neighbours (floats of 16 bits only)
 *   pixels   channels of a pixel side by side: a copy gathers one tap of many windows
 *   rows     the same, where a window is one run of pixels: a kernel of one pixel, or of one row
 *            in an image of one row; windows are then the rows of a matrix, which may overlap
 *   cut      windows that share no pixel, as rows of their own
 *
 * Pixels may have a frame around them, the padding, where zeros that copies make are not what a
 * code of 0 stands for, or where copies make none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_NCHW_TO_NHWC_CUH
#define FT_KERNELS_CUDA_CONV_NCHW_TO_NHWC_CUH

#include "kernels/cuda/conv/conv.cuh"

typedef enum conv_order {
    CONV_NO_ORDER,
    CONV_PLANES,
    CONV_PIXELS,
    CONV_ROWS,
    CONV_CUT,
} conv_order;

enum {
    CONV_VECTOR = 16,        /* bytes that a thread writes at once */
    CONV_MOST_CUT = 48 << 10 /* bytes of a window that is cut: of shared memory */
};

typedef struct conv_turned {
    conv_order order;
    bool made;         /* it is not how the images lie */
    int frame[2];      /* rows above, and columns left of an image; as many behind */
    int height, width; /* with the frame */
    size_t line;       /* bytes of a pixel, or from row to row that was cut */
    size_t image;      /* bytes of an image in this order */
} conv_turned;

/* The order for a convolution; CONV_NO_ORDER where none fits. */
conv_turned ft_cuda_conv_order(const conv_task *t);

/* Images in that order, t->images * turned->image bytes; only where it is made. */
int ft_cuda_conv_turn(const ft_cuda_chip *chip, void *stream, const conv_task *t,
                      const conv_turned *turned, void *to);

/* From images by pixels. */
int ft_cuda_conv_frame(const ft_cuda_chip *chip, void *stream, const conv_task *t,
                       const conv_turned *turned, void *to);

/* Those of CONV_CUT. */
int ft_cuda_conv_cut(const ft_cuda_chip *chip, void *stream, const conv_task *t,
                     const conv_turned *turned, void *to);

#endif
