/*
 * conv.cuh - inside conv: one convolution, and the kernels that share it.
 *
 * conv_simt.cu computes any convolution on any device.  On sm_90a those whose channels lie well
 * are products on the tensor cores: nchw_to_nhwc.cu turns images to rows of pixels, channels side by
 * side, and conv_wgmma.cuh multiplies; windows are never in memory, the copies of the tensor
 * memory accelerator find them among the pixels.
 *
 * Windows are numbered image by image, row by row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_CUH
#define FT_KERNELS_CUDA_CONV_CONV_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/rows.cuh"

typedef struct conv_task {
    ft_blocks blocks;
    const float *bias; /* [outputs], or NULL */
    int images, outputs, window;
    int across, positions; /* windows of a row of them, and of an image */
    ft_conv conv;
    void *x, *y; /* [images, channels * pixels], [images, outputs * positions] */
    ft_dtype x_dtype, y_dtype;
    float x_scale, y_inverse; /* of codes */

    ft_dtype w_dtype;
    const void *w, *tiles; /* as ft_weight has them */
    const float *w_scale;  /* of codes */
    ft_activation activation;
} conv_task;

/* Channels times rows and columns of an image are less than 2^31, and so are all windows. */
static inline int conv_pixels(const ft_conv &c)
{
    return c.height * c.width;
}

/* Result of a sum: activation and range. */
__device__ __forceinline__ float conv_finish(const conv_task &t, float value)
{
    value = ft_activate(t.activation, value);
    if (t.conv.clamps) {
        value = value > t.conv.low ? value : t.conv.low;
        value = value < t.conv.high ? value : t.conv.high;
    }
    return value;
}

/* Any convolution on any device. */
int ft_cuda_conv_plain(const ft_cuda_chip *chip, void *stream, const conv_task *t);

/*
 * By the tensor cores of sm_90a, where they take it; `scratch` holds ft_cuda_conv_wgmma_scratch()
 * bytes for its images.
 */
bool ft_cuda_conv_wgmma_takes(const ft_cuda_chip *chip, const conv_task *t);
size_t ft_cuda_conv_wgmma_scratch(const conv_task *t);
int ft_cuda_conv_wgmma(const ft_cuda_chip *chip, void *stream, const conv_task *t, void *scratch);

#endif
