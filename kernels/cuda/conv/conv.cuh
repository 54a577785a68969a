/*
 * conv.cuh - one convolution problem, and the kernels for it.
 *
 * conv_simt.cu computes any convolution on any device. On sm_90a, convolutions with suitable
 * channel counts are implicit GEMMs on the tensor cores: nchw_to_nhwc.cu converts images to NHWC,
 * and conv_wgmma.cuh multiplies. The im2col windows are never materialized; TMA gathers them from
 * the pixels.
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

typedef struct conv_problem_args {
    ft_groupwise groupwise;
    const float *bias; /* [out_channels], or NULL */
    int images, out_channels, window;
    int per_row, out_pixels; /* output columns, and output pixels of an image */
    ft_conv conv;
    void *x, *y; /* [images, channels * pixels], [images, out_channels * out_pixels] */
    ft_dtype x_dtype, y_dtype;
    float x_scale, y_inv_scale; /* int8: scale of x, 1 / scale of y */

    ft_dtype w_dtype;
    const void *w, *prepacked; /* as in ft_weight */
    const float *w_scale;      /* int8: [out_channels] */
    ft_activation activation;
} conv_problem_args;

/*
 * Pixels of an input image. Channels times pixels are less than 2^31, and so is the number of
 * windows.
 */
static inline int conv_pixels(const ft_conv &c)
{
    return c.height * c.width;
}

/* Epilogue of one sum: activation and clamp. */
__device__ __forceinline__ float conv_activate_clamp(const conv_problem_args &t, float value)
{
    value = ft_activate(t.activation, value);
    if (t.conv.clamps) {
        value = value > t.conv.low ? value : t.conv.low;
        value = value < t.conv.high ? value : t.conv.high;
    }
    return value;
}

/* Any convolution on any device. */
int ft_cuda_conv_simt(const ft_cuda_device_props *props, void *stream, const conv_problem_args *t);

/*
 * Implicit GEMM on the tensor cores of sm_90a, for supported problems. `scratch` holds
 * ft_cuda_conv_wgmma_scratch() bytes for the images of the problem.
 */
bool ft_cuda_conv_wgmma_supports(const ft_cuda_device_props *props, const conv_problem_args *t);
size_t ft_cuda_conv_wgmma_scratch(const conv_problem_args *t);
int ft_cuda_conv_wgmma(const ft_cuda_device_props *props, void *stream, const conv_problem_args *t,
                       void *scratch);

#endif
