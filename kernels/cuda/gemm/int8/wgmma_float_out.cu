/*
 * wgmma_float_out.cu - kernels of wgmma_gemm.cuh with float32 or f16 output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/wgmma_gemm.cuh"
#include "kernels/cuda/gemm/int8/wgmma_kernels.h"

/* The 128-token ping-pong tile has no registers left for row scales with float32 output. */
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
