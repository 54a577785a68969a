/*
 * wgmma_int8_out.cu - kernels of wgmma_gemm.cuh with int8 output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/wgmma_gemm.cuh"
#include "kernels/cuda/gemm/int8/wgmma_kernels.h"

template <class SHAPE>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p)
{
    bool gelu = p->activation != FT_ACT_NONE;
    if (p->x_scales != NULL)
        return gelu ? wgmma_launch<SHAPE, FT_EPILOGUE_ROW_SCALES_GELU, int8_t>(props, stream, p)
                    : wgmma_launch<SHAPE, FT_EPILOGUE_ROW_SCALES, int8_t>(props, stream, p);
    return gelu ? wgmma_launch<SHAPE, FT_EPILOGUE_GELU, int8_t>(props, stream, p)
                : wgmma_launch<SHAPE, FT_EPILOGUE_NONE, int8_t>(props, stream, p);
}

int ft_cuda_wgmma_int8_out(ft_cuda_wgmma_tile tile, const ft_cuda_device_props *props, void *stream,
                           const ft_cuda_gemm_args *p)
{
    switch (tile) {
    case FT_CUDA_WGMMA_PINGPONG_64:
        return launch<wgmma_tile_config<1, 192, 6, WGMMA_PINGPONG>>(props, stream, p);
    case FT_CUDA_WGMMA_PINGPONG_128:
        return launch<wgmma_tile_config<2, 192, 5, WGMMA_PINGPONG>>(props, stream, p);
    case FT_CUDA_WGMMA_COOPERATIVE_128:
        return launch<wgmma_tile_config<1, 192, 5, WGMMA_COOPERATIVE>>(props, stream, p);
    case FT_CUDA_WGMMA_ANY_EPILOGUE:
        return wgmma_launch<wgmma_tile_config<1, 128, 5, WGMMA_PINGPONG>, FT_EPILOGUE_ANY, int8_t>(
            props, stream, p);
    default:
        break;
    }
    return (int) cudaErrorInvalidValue;
}
