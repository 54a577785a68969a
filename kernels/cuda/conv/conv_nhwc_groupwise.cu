/*
 * conv_nhwc_groupwise.cu - instances of conv_nhwc.cuh for group-wise quantized weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_nhwc.cuh"

int ft_cuda_conv_nhwc_groupwise(const ft_cuda_device_props *props, void *stream,
                                conv_gemm_params *p, const conv_nhwc_tile *tile)
{
    bool bf16 = p->t.x_dtype == FT_BF16;
    return p->t.w_dtype == FT_U4 ? bf16 ? nhwc_launch_tile<FT_BF16, 4>(props, stream, p, tile)
                                        : nhwc_launch_tile<FT_F16, 4>(props, stream, p, tile)
           : bf16 ? nhwc_launch_tile<FT_BF16, 8>(props, stream, p, tile)
                                 : nhwc_launch_tile<FT_F16, 8>(props, stream, p, tile);
}
