/*
 * conv_wgmma_groupwise.cu - instances of conv_wgmma.cuh for group-wise quantized weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_wgmma_kernel.cuh"

template <ft_dtype DTYPE, int BITS>
static int launch(const ft_cuda_chip *chip, void *stream, conv_product *p, int n)
{
    if (p->order == CONV_PLANES)
        return conv_launch<conv_form<DTYPE, BITS, 64, true>>(chip, stream, p);
    return n == 96 ? conv_launch<conv_form<DTYPE, BITS, 96, false>>(chip, stream, p)
                   : conv_launch<conv_form<DTYPE, BITS, 64, false>>(chip, stream, p);
}

int ft_cuda_conv_blocks(const ft_cuda_chip *chip, void *stream, conv_product *p, int n)
{
    bool bf16 = p->t.x_dtype == FT_BF16;
    return p->t.w_dtype == FT_U4 ? bf16 ? launch<FT_BF16, 4>(chip, stream, p, n)
                                        : launch<FT_F16, 4>(chip, stream, p, n)
           : bf16 ? launch<FT_BF16, 8>(chip, stream, p, n)
                                 : launch<FT_F16, 8>(chip, stream, p, n);
}
