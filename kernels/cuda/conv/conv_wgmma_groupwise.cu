/*
 * conv_wgmma_groupwise.cu - instances of conv_wgmma.cuh for group-wise quantized weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_wgmma_kernel.cuh"

template <ft_dtype DTYPE, int BITS>
static int launch(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p, int n)
{
    if (p->layout_kind == CONV_LAYOUT_NCHW)
        return conv_launch<conv_traits<DTYPE, BITS, 64, true>>(props, stream, p);
    return n == 96 ? conv_launch<conv_traits<DTYPE, BITS, 96, false>>(props, stream, p)
                   : conv_launch<conv_traits<DTYPE, BITS, 64, false>>(props, stream, p);
}

int ft_cuda_conv_nchw_groupwise(const ft_cuda_device_props *props, void *stream,
                                conv_gemm_params *p, int n)
{
    bool bf16 = p->t.x_dtype == FT_BF16;
    return p->t.w_dtype == FT_U4 ? bf16 ? launch<FT_BF16, 4>(props, stream, p, n)
                                        : launch<FT_F16, 4>(props, stream, p, n)
           : bf16 ? launch<FT_BF16, 8>(props, stream, p, n)
                                 : launch<FT_F16, 8>(props, stream, p, n);
}
