/*
 * conv_wgmma_tiles.cuh - tile coordinates, pipeline state and operand layouts of conv_wgmma.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_WGMMA_TILES_CUH
#define FT_KERNELS_CUDA_CONV_CONV_WGMMA_TILES_CUH

#include "kernels/cuda/conv/conv_wgmma.cuh"
#include "kernels/cuda/ptx/wgmma_f16.cuh"

#ifdef FT_HAS_WGMMA

/* Shared memory after the stages. */
typedef struct conv_rest {
    uint32_t laid[CONV_WORKERS / 32][16][CONV_LAID];
    uint64_t full[CONV_STAGES], empty[CONV_STAGES];
    uint64_t arrived[CONV_STAGES]; /* group-wise: packed weights have arrived */
} conv_rest;

/* Pipeline state: the stage, and its phase. */
typedef struct conv_at {
    int slot;
    unsigned parity;
} conv_at;

__device__ __forceinline__ void conv_advance(conv_at &at, int stages)
{
    if (++at.slot == stages) {
        at.slot = 0;
        at.parity ^= 1;
    }
}

/* A tile: its first output channel, its segment of windows, and the first window there. */
typedef struct conv_place {
    int output, run, window;
} conv_place;

__device__ __forceinline__ conv_place conv_place_of(const conv_product &p, int tile)
{
    int rest = conv_divide(tile, p.out_tiles), run = conv_divide(rest, p.run_tiles);
    conv_place place = { (tile - rest * p.out_tiles.by) * p.tile_outputs, run,
                         (rest - run * p.run_tiles.by) * p.tile_windows };
    return place;
}

/*
 * The output channel, among 32, of row `m` of the GEMM. int8 weights are prepacked in the order of
 * ft_cuda_tiles_offset(). Group-wise weights are unpacked without bank conflicts, and register-A
 * weights so that a lane has consecutive channels.
 */
template <class FORM> __device__ __forceinline__ int conv_output_of(int m)
{
    int in = m % 32;
    if (FORM::held)
        return m - in % 16 + in % 8 * 2 + in % 16 / 8;
    if (FORM::dtype == FT_I8)
        return m - in + in % 8 / 2 * 8 + in / 8 * 2 + in % 2;
    return FORM::bits > 0 ? m - in + in % 8 * 4 + in / 8 : m;
}

/* Descriptor of an operand with rows of `line` bytes and the swizzle of that width. */
__device__ __forceinline__ uint64_t conv_operand(const void *shared, int line)
{
    uint64_t address = (uint64_t) __cvta_generic_to_shared(shared);
    uint64_t swizzle = line == 128 ? 1 : line == 64 ? 2 : 3;
    return (address & 0x3ffff) >> 4 | (uint64_t) (8 * line >> 4) << 32 | swizzle << 62;
}

/* Epilogue parameters of an output channel. */
typedef struct conv_numbers {
    float scale, bias;
    int32_t excess;
} conv_numbers;

template <class FORM>
__device__ __forceinline__ conv_numbers conv_numbers_of(const conv_product &p, int output)
{
    conv_numbers numbers = { 1.0f, 0.0f, 0 };
    if (output >= p.t.outputs)
        return numbers;
    if (p.t.bias != NULL)
        numbers.bias = __ldg(&p.t.bias[output]);
    if (FORM::dtype == FT_I8)
        numbers.scale = p.t.x_scale * __ldg(&p.t.w_scale[output]);
    if (FORM::dtype == FT_I8 && p.excess != NULL)
        numbers.excess = p.excess[output];
    return numbers;
}

/* Clamps results to the range, if there is one. */
template <int N>
__device__ __forceinline__ void conv_to_range(const conv_product &p, float (&value)[N])
{
    if (!p.ranged)
        return;
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] = fminf(fmaxf(value[i], p.low), p.high);
}

#endif
#endif
