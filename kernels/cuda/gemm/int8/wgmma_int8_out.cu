/*
 * wgmma_int8_out.cu - kernels of wgmma_gemm.cuh with int8 output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/wgmma_gemm.cuh"
#include "kernels/cuda/gemm/int8/wgmma_kernels.h"

template <class SHAPE>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    if (p->activation == FT_ACT_NONE)
        return wgmma_launch<SHAPE, FT_EPILOGUE_NONE, int8_t>(chip, stream, p);
    return wgmma_launch<SHAPE, FT_EPILOGUE_GELU, int8_t>(chip, stream, p);
}

int ft_cuda_wgmma_codes(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                        const ft_cuda_product *p)
{
    switch (tile) {
    case FT_CUDA_WGMMA_TURNS_64:
        return launch<wgmma_shape<1, 192, 6, WGMMA_IN_TURNS>>(chip, stream, p);
    case FT_CUDA_WGMMA_TURNS_128:
        return launch<wgmma_shape<2, 192, 5, WGMMA_IN_TURNS>>(chip, stream, p);
    case FT_CUDA_WGMMA_TOGETHER:
        return launch<wgmma_shape<1, 192, 5, WGMMA_TOGETHER>>(chip, stream, p);
    case FT_CUDA_WGMMA_GENERAL:
        return wgmma_launch<wgmma_shape<1, 128, 5, WGMMA_IN_TURNS>, FT_EPILOGUE_ANY, int8_t>(
            chip, stream, p);
    default:
        break;
    }
    return (int) cudaErrorInvalidValue;
}
