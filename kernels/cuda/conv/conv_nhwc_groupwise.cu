/*
 * conv_nhwc_groupwise.cu - instances of conv_nhwc.cuh for group-wise quantized weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_nhwc.cuh"

int ft_cuda_conv_rows_blocks(const ft_cuda_chip *chip, void *stream, conv_product *p,
                             const conv_rows_tile *tile)
{
    bool bf16 = p->t.x_dtype == FT_BF16;
    return p->t.w_dtype == FT_U4 ? bf16 ? rows_launch_tile<FT_BF16, 4>(chip, stream, p, tile)
                                        : rows_launch_tile<FT_F16, 4>(chip, stream, p, tile)
           : bf16 ? rows_launch_tile<FT_BF16, 8>(chip, stream, p, tile)
                                 : rows_launch_tile<FT_F16, 8>(chip, stream, p, tile);
}
