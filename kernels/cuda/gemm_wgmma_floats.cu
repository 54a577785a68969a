/*
 * gemm_wgmma_floats.cu - the kernels of gemm_wgmma.cuh whose results are float32 or float16.
 *
 * Their fast kernels add the residual from registers, and so have at most 64 rows a team.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm_wgmma.cuh"
#include "kernels/cuda/gemm_wgmma_kernels.h"

template <typename Y>
static int launch(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                  const ft_cuda_product *p)
{
    switch (tile) {
    case FT_CUDA_WGMMA_TURNS_64:
    case FT_CUDA_WGMMA_TURNS_128:
        return wgmma_launch<wgmma_shape<64, 192, 6, WGMMA_IN_TURNS>, FT_EPILOGUE_NONE, Y>(
            chip, stream, p);
    case FT_CUDA_WGMMA_TOGETHER:
        return wgmma_launch<wgmma_shape<64, 192, 5, WGMMA_TOGETHER>, FT_EPILOGUE_NONE, Y>(
            chip, stream, p);
    case FT_CUDA_WGMMA_GENERAL:
        return wgmma_launch<wgmma_shape<64, 128, 5, WGMMA_IN_TURNS>, FT_EPILOGUE_ANY, Y>(chip,
                                                                                         stream, p);
    default:
        break;
    }
    return (int) cudaErrorInvalidValue;
}

int ft_cuda_wgmma_floats(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                         const ft_cuda_product *p)
{
    if (p->y_dtype == FT_F16)
        return launch<__half>(tile, chip, stream, p);
    return launch<float>(tile, chip, stream, p);
}
