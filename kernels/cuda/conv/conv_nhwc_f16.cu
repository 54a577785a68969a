/*
 * conv_nhwc_f16.cu - instances of conv_nhwc.cuh for f16 and bf16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_nhwc.cuh"

int ft_cuda_conv_nhwc_f16(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p,
                          const conv_nhwc_tile *tile)
{
    return p->t.x_dtype == FT_F16 ? nhwc_launch_tile<FT_F16, 0>(props, stream, p, tile)
                                  : nhwc_launch_tile<FT_BF16, 0>(props, stream, p, tile);
}
