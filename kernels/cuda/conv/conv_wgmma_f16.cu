/*
 * conv_wgmma_f16.cu - instances of conv_wgmma.cuh for f16 and bf16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_wgmma_kernel.cuh"

template <ft_dtype DTYPE>
static int launch(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p, int n)
{
    if (p->layout_kind == CONV_LAYOUT_NCHW)
        return n == 128 ? conv_launch<conv_traits<DTYPE, 0, 128, true>>(props, stream, p)
                        : conv_launch<conv_traits<DTYPE, 0, 64, true>>(props, stream, p);
    return n == 192   ? conv_launch<conv_traits<DTYPE, 0, 192, false>>(props, stream, p)
           : n == 128 ? conv_launch<conv_traits<DTYPE, 0, 128, false>>(props, stream, p)
           : n == 96  ? conv_launch<conv_traits<DTYPE, 0, 96, false>>(props, stream, p)
                      : conv_launch<conv_traits<DTYPE, 0, 64, false>>(props, stream, p);
}

int ft_cuda_conv_nchw_f16(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p,
                          int n)
{
    return p->t.x_dtype == FT_F16 ? launch<FT_F16>(props, stream, p, n)
                                  : launch<FT_BF16>(props, stream, p, n);
}
