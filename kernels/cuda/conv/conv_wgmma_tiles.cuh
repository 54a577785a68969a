/*
 * conv_wgmma_tiles.cuh - tile coordinates, pipeline state and operand layouts of conv_wgmma.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_WGMMA_TILES_CUH
#define FT_KERNELS_CUDA_CONV_CONV_WGMMA_TILES_CUH

#include "kernels/cuda/conv/conv_wgmma.cuh"
#include "kernels/cuda/ptx/pipeline.cuh"
#include "kernels/cuda/ptx/wgmma_f16.cuh"

#ifdef FT_HAS_WGMMA

/* Shared memory after the stages. */
typedef struct conv_storage {
    uint32_t staging[CONV_CONSUMERS / 32][16][CONV_STAGED_WINDOWS];
    uint64_t full[CONV_MAX_STAGES], empty[CONV_MAX_STAGES];
    uint64_t packed_full[CONV_MAX_STAGES]; /* group-wise: packed weights have arrived */
} conv_storage;

/* A tile: its first output channel, its segment of windows, and the first window there. */
typedef struct conv_tile_coord {
    int output, segment, window;
} conv_tile_coord;

__device__ __forceinline__ conv_tile_coord conv_tile_coord_of(const conv_gemm_params &p, int tile)
{
    int tile_row = conv_divide(tile, p.out_tiles), segment = conv_divide(tile_row, p.segment_tiles);
    conv_tile_coord coord = { (tile - tile_row * p.out_tiles.divisor) * p.tile_outputs, segment,
                              (tile_row - segment * p.segment_tiles.divisor) * p.tile_windows };
    return coord;
}

/*
 * The output channel, among 32, of row `m` of the GEMM. int8 weights are prepacked in the order of
 * ft_cuda_prepacked_offset(). Group-wise weights are unpacked without bank conflicts, and
 * register-A weights so that a lane has consecutive channels.
 */
template <class FORM> __device__ __forceinline__ int conv_row_output(int m)
{
    int row_in_32 = m % 32;
    if (FORM::register_a)
        return m - row_in_32 % 16 + row_in_32 % 8 * 2 + row_in_32 % 16 / 8;
    if (FORM::dtype == FT_I8)
        return m - row_in_32 + row_in_32 % 8 / 2 * 8 + row_in_32 / 8 * 2 + row_in_32 % 2;
    return FORM::bits > 0 ? m - row_in_32 + row_in_32 % 8 * 4 + row_in_32 / 8 : m;
}

/* Descriptor of an operand with rows of `line` bytes and the swizzle of that width. */
__device__ __forceinline__ uint64_t conv_operand_descriptor(const void *shared, int line)
{
    uint64_t address = (uint64_t) __cvta_generic_to_shared(shared);
    uint64_t swizzle = line == 128 ? 1 : line == 64 ? 2 : 3;
    return (address & 0x3ffff) >> 4 | (uint64_t) (8 * line >> 4) << 32 | swizzle << 62;
}

/* Epilogue parameters of an output channel. */
typedef struct conv_epilogue_params {
    float scale, bias;
    int32_t zp_correction;
} conv_epilogue_params;

template <class FORM>
__device__ __forceinline__ conv_epilogue_params conv_epilogue_params_of(const conv_gemm_params &p,
                                                                        int output)
{
    conv_epilogue_params params = { 1.0f, 0.0f, 0 };
    if (output >= p.t.out_channels)
        return params;
    if (p.t.bias != NULL)
        params.bias = __ldg(&p.t.bias[output]);
    if (FORM::dtype == FT_I8)
        params.scale = p.t.x_scale * __ldg(&p.t.w_scale[output]);
    if (FORM::dtype == FT_I8 && p.zp_correction != NULL)
        params.zp_correction = p.zp_correction[output];
    return params;
}

/* Clamps results to the range, if there is one. */
template <int N>
__device__ __forceinline__ void conv_clamp(const conv_gemm_params &p, float (&value)[N])
{
    if (!p.clamps_output)
        return;
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] = fminf(fmaxf(value[i], p.low), p.high);
}

#endif
#endif
