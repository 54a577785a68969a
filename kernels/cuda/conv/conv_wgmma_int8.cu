/*
 * conv_wgmma_int8.cu - instances of conv_wgmma.cuh for int8 activations and weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_wgmma_kernel.cuh"

int ft_cuda_conv_codes(const ft_cuda_chip *chip, void *stream, conv_product *p, int n)
{
    return n == 192   ? conv_launch<conv_form<FT_I8, 0, 192, false>>(chip, stream, p)
           : n == 128 ? conv_launch<conv_form<FT_I8, 0, 128, false>>(chip, stream, p)
           : n == 96  ? conv_launch<conv_form<FT_I8, 0, 96, false>>(chip, stream, p)
                      : conv_launch<conv_form<FT_I8, 0, 64, false>>(chip, stream, p);
}
