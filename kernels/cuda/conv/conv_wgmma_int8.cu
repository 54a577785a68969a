/*
 * conv_wgmma_int8.cu - instances of conv_wgmma.cuh for int8 activations and weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_wgmma_kernel.cuh"

int ft_cuda_conv_nchw_int8(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p,
                           int n)
{
    return n == 192   ? conv_launch<conv_traits<FT_I8, 0, 192, false>>(props, stream, p)
           : n == 128 ? conv_launch<conv_traits<FT_I8, 0, 128, false>>(props, stream, p)
           : n == 96  ? conv_launch<conv_traits<FT_I8, 0, 96, false>>(props, stream, p)
                      : conv_launch<conv_traits<FT_I8, 0, 64, false>>(props, stream, p);
}
