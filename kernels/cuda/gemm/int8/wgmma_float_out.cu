/*
 * wgmma_float_out.cu - kernels of wgmma_gemm.cuh with float32 or f16 output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/wgmma_gemm.cuh"
#include "kernels/cuda/gemm/int8/wgmma_kernels.h"

/*
 * GELU is for the float16 input of a QUANTIZE with row scales. The 128-token ping-pong tile has no
 * registers left for row scales with float32 output.
 */
template <class SHAPE, typename Y>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p)
{
    if constexpr (sizeof(Y) == 2)
        if (p->activation == FT_ACT_GELU_APPROX)
            return p->x_scales != NULL
                       ? wgmma_launch<SHAPE, FT_EPILOGUE_ROW_SCALES_GELU, Y>(props, stream, p)
                       : wgmma_launch<SHAPE, FT_EPILOGUE_GELU, Y>(props, stream, p);
    if constexpr (SHAPE::m64_blocks == 1 || sizeof(Y) == 2)
        if (p->x_scales != NULL)
            return wgmma_launch<SHAPE, FT_EPILOGUE_ROW_SCALES, Y>(props, stream, p);
    return wgmma_launch<SHAPE, FT_EPILOGUE_NONE, Y>(props, stream, p);
}

template <typename Y>
static int launch_tile(ft_cuda_wgmma_tile tile, const ft_cuda_device_props *props, void *stream,
                       const ft_cuda_gemm_args *p)
{
    switch (tile) {
    case FT_CUDA_WGMMA_PINGPONG_64:
        return launch<wgmma_tile_config<1, 192, 6, WGMMA_PINGPONG>, Y>(props, stream, p);
    case FT_CUDA_WGMMA_PINGPONG_128:
        return launch<wgmma_tile_config<2, 192, 5, WGMMA_PINGPONG>, Y>(props, stream, p);
    case FT_CUDA_WGMMA_COOPERATIVE_128:
        return launch<wgmma_tile_config<1, 192, 5, WGMMA_COOPERATIVE>, Y>(props, stream, p);
    case FT_CUDA_WGMMA_ANY_EPILOGUE:
        return wgmma_launch<wgmma_tile_config<1, 128, 5, WGMMA_PINGPONG>, FT_EPILOGUE_ANY, Y>(
            props, stream, p);
    default:
        break;
    }
    return (int) cudaErrorInvalidValue;
}

int ft_cuda_wgmma_float_out(ft_cuda_wgmma_tile tile, const ft_cuda_device_props *props,
                            void *stream, const ft_cuda_gemm_args *p)
{
    if (p->y_dtype == FT_F16)
        return launch_tile<__half>(tile, props, stream, p);
    return launch_tile<float>(tile, props, stream, p);
}
