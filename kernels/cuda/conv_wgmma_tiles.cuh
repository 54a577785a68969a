/*
 * conv_wgmma_tiles.cuh - where the blocks of conv_wgmma.cuh are: their tiles, and the ring of
 * stages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_WGMMA_TILES_CUH
#define FT_KERNELS_CUDA_CONV_WGMMA_TILES_CUH

#include "kernels/cuda/conv_wgmma.cuh"
#include "kernels/cuda/wgmma_halves.cuh"

#ifdef FT_HAS_WGMMA

/* Behind the stages. */
typedef struct conv_rest {
    uint32_t laid[CONV_WORKERS / 32][16][CONV_LAID];
    uint64_t full[CONV_STAGES], empty[CONV_STAGES];
} conv_rest;

/* A position in the ring of stages: its slot, and the parity of the round. */
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

/* A tile: its first output, run of windows, and first window there. */
typedef struct conv_place {
    int output, run, window;
} conv_place;

__device__ __forceinline__ conv_place conv_place_of(const conv_product &p, int tile, int n)
{
    int rest = conv_divide(tile, p.out_tiles), run = conv_divide(rest, p.run_tiles);
    conv_place place = { (tile - rest * p.out_tiles.by) * (p.beside ? 64 : 128), run,
                         (rest - run * p.run_tiles.by) * (p.beside ? 2 * n : n) };
    return place;
}

/*
 * The output, among its 32 neighbours, that row `m` of a product is.  Codes lie in tiles as
 * ft_cuda_tiles_offset() has them; blocks are unpacked so that lanes meet in no bank.
 */
template <class FORM> __device__ __forceinline__ int conv_output_of(int m)
{
    int in = m % 32;
    if (FORM::dtype == FT_I8)
        return m - in + in % 8 / 2 * 8 + in / 8 * 2 + in % 2;
    return FORM::bits > 0 ? m - in + in % 8 * 4 + in / 8 : m;
}

#endif
#endif
