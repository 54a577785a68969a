/*
 * conv_nhwc_f16.cu - instances of conv_nhwc.cuh for f16 and bf16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_nhwc.cuh"

int ft_cuda_conv_rows_halves(const ft_cuda_chip *chip, void *stream, conv_product *p,
                             const conv_rows_tile *tile)
{
    return p->t.x_dtype == FT_F16 ? rows_launch_tile<FT_F16, 0>(chip, stream, p, tile)
                                  : rows_launch_tile<FT_BF16, 0>(chip, stream, p, tile);
}
