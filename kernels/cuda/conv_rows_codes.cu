/*
 * conv_rows_codes.cu - conv_rows.cuh with codes times codes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv_rows.cuh"

int ft_cuda_conv_rows_codes(const ft_cuda_chip *chip, void *stream, conv_product *p,
                            const conv_rows_tile *tile)
{
    return rows_launch_tile<FT_I8, 0>(chip, stream, p, tile);
}
