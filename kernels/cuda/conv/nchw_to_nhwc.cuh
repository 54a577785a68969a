/*
 * nchw_to_nhwc.cuh - input layouts in which the tensor-core kernels read the windows of a
 * convolution.
 *
 *   planes   NCHW as given: for a 1 x 1 kernel, whose windows are consecutive (f16 and bf16 only)
 *   pixels   NHWC: a TMA im2col copy gathers one tap of many windows
 *   rows     NHWC where a window is contiguous: a 1 x 1 kernel, or a one-row kernel on an image of
 *            one row; windows are then rows of a matrix, and may overlap
 *   cut      windows without overlap (patches), each copied to a row of its own
 *
 * The padding is stored around the pixels where the zeros of TMA differ from the zero point, or
 * where the copies do not pad.
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
    CONV_MOST_CUT = 48 << 10 /* maximum bytes of a patch: shared memory */
};

typedef struct conv_turned {
    conv_order order;
    bool made;         /* the layout differs from that of the images */
    int frame[2];      /* rows above, and columns left of an image; the same number after it */
    int height, width; /* including the padding */
    size_t line;       /* bytes of a pixel, or of the row of a patch */
    size_t image;      /* bytes of an image in this layout */
} conv_turned;

/* The input layout for a convolution; CONV_NO_ORDER if none fits. */
conv_turned ft_cuda_conv_order(const conv_task *t);

/* Converts images to this layout, t->images * layout->image bytes; only if layout->converted. */
int ft_cuda_conv_turn(const ft_cuda_chip *chip, void *stream, const conv_task *t,
                      const conv_turned *turned, void *to);

/* The same from NHWC images. */
int ft_cuda_conv_frame(const ft_cuda_chip *chip, void *stream, const conv_task *t,
                       const conv_turned *turned, void *to);

/* The same for CONV_CUT (patches). */
int ft_cuda_conv_cut(const ft_cuda_chip *chip, void *stream, const conv_task *t,
                     const conv_turned *turned, void *to);

#endif
