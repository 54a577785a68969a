/*
 * conv_nhwc_int8.cu - instances of conv_nhwc.cuh for int8 activations and weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_nhwc.cuh"

int ft_cuda_conv_rows_codes(const ft_cuda_chip *chip, void *stream, conv_product *p,
                            const conv_rows_tile *tile)
{
    return rows_launch_tile<FT_I8, 0>(chip, stream, p, tile);
}
