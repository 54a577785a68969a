/*
 * conv_wgmma_f16.cu - instances of conv_wgmma.cuh for f16 and bf16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_wgmma_kernel.cuh"

template <ft_dtype DTYPE>
static int launch(const ft_cuda_chip *chip, void *stream, conv_product *p, int n)
{
    if (p->order == CONV_PLANES)
        return n == 128 ? conv_launch<conv_form<DTYPE, 0, 128, true>>(chip, stream, p)
                        : conv_launch<conv_form<DTYPE, 0, 64, true>>(chip, stream, p);
    return n == 192   ? conv_launch<conv_form<DTYPE, 0, 192, false>>(chip, stream, p)
           : n == 128 ? conv_launch<conv_form<DTYPE, 0, 128, false>>(chip, stream, p)
           : n == 96  ? conv_launch<conv_form<DTYPE, 0, 96, false>>(chip, stream, p)
                      : conv_launch<conv_form<DTYPE, 0, 64, false>>(chip, stream, p);
}

int ft_cuda_conv_halves(const ft_cuda_chip *chip, void *stream, conv_product *p, int n)
{
    return p->t.x_dtype == FT_F16 ? launch<FT_F16>(chip, stream, p, n)
                                  : launch<FT_BF16>(chip, stream, p, n);
}
