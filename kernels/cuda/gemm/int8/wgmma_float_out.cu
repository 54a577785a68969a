/*
 * wgmma_float_out.cu - the kernels of wgmma_gemm.cuh whose results are float32 or float16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/wgmma_gemm.cuh"
#include "kernels/cuda/gemm/int8/wgmma_kernels.h"

/* Of 128 tokens in turns there are no registers for scales of rows beside float32. */
template <class SHAPE, typename Y>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    if constexpr (SHAPE::halves == 1 || sizeof(Y) == 2)
        if (p->x_scales != NULL)
            return wgmma_launch<SHAPE, FT_EPILOGUE_ROWS, Y>(chip, stream, p);
    return wgmma_launch<SHAPE, FT_EPILOGUE_NONE, Y>(chip, stream, p);
}

template <typename Y>
static int launch_tile(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                       const ft_cuda_product *p)
{
    switch (tile) {
    case FT_CUDA_WGMMA_TURNS_64:
        return launch<wgmma_shape<1, 192, 6, WGMMA_IN_TURNS>, Y>(chip, stream, p);
    case FT_CUDA_WGMMA_TURNS_128:
        return launch<wgmma_shape<2, 192, 5, WGMMA_IN_TURNS>, Y>(chip, stream, p);
    case FT_CUDA_WGMMA_TOGETHER:
        return launch<wgmma_shape<1, 192, 5, WGMMA_TOGETHER>, Y>(chip, stream, p);
    case FT_CUDA_WGMMA_GENERAL:
        return wgmma_launch<wgmma_shape<1, 128, 5, WGMMA_IN_TURNS>, FT_EPILOGUE_ANY, Y>(chip,
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
        return launch_tile<__half>(tile, chip, stream, p);
    return launch_tile<float>(tile, chip, stream, p);
}
