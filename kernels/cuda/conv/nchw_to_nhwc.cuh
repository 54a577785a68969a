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

typedef enum conv_layout {
    CONV_LAYOUT_NONE,
    CONV_LAYOUT_NCHW,
    CONV_LAYOUT_NHWC,
    CONV_LAYOUT_ROWS,
    CONV_LAYOUT_PATCHES,
} conv_layout;

enum {
    CONV_VECTOR = 16,         /* bytes that a thread writes at once */
    CONV_MAX_PATCH = 48 << 10 /* maximum bytes of a patch: shared memory */
};

typedef struct conv_input_layout {
    conv_layout layout_kind;
    bool converted;    /* the layout differs from that of the images */
    int border[2];     /* rows above, and columns left of an image; the same number after it */
    int height, width; /* including the padding */
    size_t line;       /* bytes of a pixel, or of the row of a patch */
    size_t image;      /* bytes of an image in this layout */
} conv_input_layout;

/* The input layout for a convolution; CONV_LAYOUT_NONE if none fits. */
conv_input_layout ft_cuda_conv_input_layout_of(const conv_problem_args *t);

/* Converts images to this layout, t->images * layout->image bytes; only if layout->converted. */
int ft_cuda_conv_convert_input(const ft_cuda_device_props *props, void *stream,
                               const conv_problem_args *t, const conv_input_layout *layout,
                               void *to);

/* The same from NHWC images. */
int ft_cuda_conv_pad_nhwc(const ft_cuda_device_props *props, void *stream,
                          const conv_problem_args *t, const conv_input_layout *layout, void *to);

/* The same for CONV_LAYOUT_PATCHES (patches). */
int ft_cuda_conv_space_to_depth(const ft_cuda_device_props *props, void *stream,
                                const conv_problem_args *t, const conv_input_layout *layout,
                                void *to);

#endif
