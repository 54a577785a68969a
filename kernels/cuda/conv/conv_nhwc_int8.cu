/*
 * conv_nhwc_int8.cu - instances of conv_nhwc.cuh for int8 activations and weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_nhwc.cuh"

int ft_cuda_conv_nhwc_int8(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p,
                           const conv_nhwc_tile *tile)
{
    return nhwc_launch_tile<FT_I8, 0>(props, stream, p, tile);
}
