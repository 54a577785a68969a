/*
 * conv_nhwc_int8.cu - conv_nhwc.cuh with codes times codes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_nhwc.cuh"

int ft_cuda_conv_rows_codes(const ft_cuda_chip *chip, void *stream, conv_product *p,
                            const conv_rows_tile *tile)
{
    return rows_launch_tile<FT_I8, 0>(chip, stream, p, tile);
}
