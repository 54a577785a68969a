/*
 * conv_wgmma_load.cuh - copies of conv_wgmma.cuh: windows, weights, and weights that are unpacked.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_WGMMA_LOAD_CUH
#define FT_KERNELS_CUDA_CONV_WGMMA_LOAD_CUH

#include "kernels/cuda/blocks.cuh"
#include "kernels/cuda/conv_wgmma_tiles.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Copies --------------------------------------------------------------------------------- */

/* Where the copies of taps are: the first tap of the first window, and the tap. */
typedef struct conv_walk {
    int image, top, left;
    int byte, row, col;
} conv_walk;

__device__ __forceinline__ conv_walk conv_walk_of(const conv_product &p, int window)
{
    int image = conv_divide(window, p.positions), position = window - image * p.positions.by;
    int down = conv_divide(position, p.across), right = position - down * p.across.by;
    conv_walk walk = { image, down * p.t.conv.stride[0] - p.padding[0],
                       right * p.t.conv.stride[1] - p.padding[1] };
    return walk;
}

/* A step has whole boxes: those behind the last tap are zeros, as of an image beyond the last. */
__device__ __forceinline__ void conv_load_tap(char *to, const conv_product &p, conv_walk &walk,
                                              uint64_t *full)
{
    const ft_conv &c = p.t.conv;
    bool exists = walk.row < c.kernel[0];
    ft_load_taps(to, &p.x, full, walk.byte, walk.left, walk.top, exists ? walk.image : p.t.images,
                 exists ? walk.col * c.dilation[1] : 0, exists ? walk.row * c.dilation[0] : 0);
    walk.byte += p.line;
    if (walk.byte == p.pixel) {
        walk.byte = 0;
        if (++walk.col == c.kernel[1]) {
            walk.col = 0;
            walk.row++;
        }
    }
}

template <class FORM>
__device__ __forceinline__ void conv_load_windows(char *to, const conv_product &p,
                                                  const conv_place &place, conv_walk &walk,
                                                  int step, uint64_t *full)
{
    if (FORM::planes) {
        for (int i = 0; i < p.boxes; i++)
            ft_load_cube(to + i * CONV_PANEL, &p.x, full, place.window * 2 + i * 128, step * 64,
                         place.run);
    } else if (p.order == CONV_PIXELS) {
        for (int i = 0; i < p.boxes; i++)
            conv_load_tap(to + i * p.box_bytes, p, walk, full);
    } else {
        ft_load_cube(to, &p.x, full, step * CONV_STEP, place.window, place.run);
    }
}

template <class FORM>
__device__ __forceinline__ void conv_load_weights(char *to, const conv_product &p, int output,
                                                  int step, uint64_t *full)
{
    if (FORM::dtype == FT_I8)
        ft_load_weights(to, &p.w, full, output, step);
    else
        ft_load_box(to, &p.w, full, output, step * CONV_STEP);
}

/* One thread keeps the ring full. */
template <class FORM>
__device__ __forceinline__ void conv_load(char *ring, conv_rest &rest, const conv_product &p)
{
    conv_at at = { 0, 0 };
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    for (int tile = (int) blockIdx.x; tile < p.tiles; tile += (int) gridDim.x) {
        conv_place place = conv_place_of(p, tile, FORM::windows);
        conv_walk walk = conv_walk_of(p, place.run * p.run + place.window);
        for (int step = 0; step < p.steps; step++, conv_advance(at, p.stages)) {
            char *stage = ring + at.slot * (p.w_bytes + p.x_bytes);
            uint64_t *full = &rest.full[at.slot];
            ft_barrier_wait(&rest.empty[at.slot], at.parity ^ 1);
            ft_barrier_expect(full, (unsigned) (p.w_bytes + p.x_bytes));
            conv_load_weights<FORM>(stage, p, place.output, step, full);
            conv_load_windows<FORM>(stage + p.w_bytes, p, place, walk, step, full);
        }
    }
}

/* ---- Unpacking weights in blocks ------------------------------------------------------------ */

/* What a lane fetched of 32 columns of a panel, and the zeros of its four rows. */
template <int bits> struct conv_packed {
    uint4 block[bits / 4];
    uint32_t zeros;
};

/* Of a step of 64 columns a warp unpacks both halves of its panel; beside each other, one half. */
template <int bits>
__device__ __forceinline__ void conv_fetch(conv_packed<bits> &to, const conv_product &p, int panel,
                                           int half, int step)
{
    int lane = threadIdx.x % 32, last = (p.t.window + 31) / 32 - 1;
    int column = min(step * 2 + half, last) * 32; /* behind the last columns x is 0 */
    panel = min(panel, p.padded / 32 - 1);
    const char *from = (const char *) p.t.w + (size_t) panel * (size_t) ((last + 1) * 128 * bits) +
                       column * (4 * bits) + lane % 4 * 128 + lane / 4 * 16;
#pragma unroll
    for (int i = 0; i < bits / 4; i++)
        to.block[i] = __ldg((const uint4 *) (from + i * BLOCKS_BLOCK));
    to.zeros = bits == 4 ? 0x08080808 : 0x80808080;
    if (p.t.blocks.zero != NULL)
        to.zeros = __ldg(
            (const uint32_t *) (p.t.blocks.zero +
                                (size_t) (conv_divide(column, p.group)) * (unsigned) p.padded +
                                panel * 32 + lane / 4 * 4));
}

/* Row 4 g + i of a panel becomes row 8 i + g: then its chunks of 16 bytes are g apart. */
template <int bits, blocks_kind kind>
__device__ __forceinline__ void conv_unpack(char *panel, const conv_packed<bits> &packed, int half)
{
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const uint4 &first = packed.block[0], &last = packed.block[bits / 4 - 1];
    const uint32_t word[4] = { first.x, first.y, first.z, first.w };
    const uint32_t more[4] = { last.x, last.y, last.z, last.w };
    blocks_unpacker<bits, kind> unpacker;
    unpacker.set(packed.zeros);
    panel += g * CONV_STEP + t * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t pair[4];
        if constexpr (bits == 4) {
            unpacker.nibbles(pair, word[i], i);
        } else {
            unpacker.bytes(pair, word[i], i);
            unpacker.bytes(pair + 2, more[i], i);
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
            *(uint32_t *) (panel + i * 8 * CONV_STEP + ((half * 4 + j) ^ g) * 16) = pair[j];
    }
}

/* How many steps ahead weights are fetched: as many as registers hold. */
template <int bits> static constexpr int conv_ahead = bits == 4 ? 4 : 2;

/* What a warp unpacks: one half of a panel, of every step, or of every second one. */
typedef struct conv_share {
    int panel, half; /* the panel among those of a tile */
    int turn, turns;
} conv_share;

__device__ __forceinline__ conv_share conv_share_of(const conv_product &p, int warp)
{
    conv_share share = { warp % 4, warp / 4, 0, 1 };
    if (p.beside) /* there are only two panels */
        share = { warp % 2, warp / 2 % 2, warp / 4, 2 };
    return share;
}

/* Eight warps unpack; the first thread copies windows, too. */
template <class FORM>
__device__ __forceinline__ void conv_load_blocks(char *ring, conv_rest &rest, const conv_product &p)
{
    constexpr blocks_kind kind = FORM::dtype == FT_F16 ? BLOCKS_F16 : BLOCKS_BF16;
    constexpr int bits = FORM::bits, ahead = conv_ahead<bits>;
    int warp = (int) threadIdx.x / 32 - CONV_WORKERS / 32;
    bool copies = threadIdx.x == CONV_WORKERS;
    conv_share share = conv_share_of(p, warp);
    conv_at at = { 0, 0 };
    conv_packed<bits> packed[ahead];
    if (copies) {
        ft_wait_for_predecessor();
        ft_let_successor_begin();
    }
    __syncwarp();
    for (int tile = (int) blockIdx.x; tile < p.tiles; tile += (int) gridDim.x) {
        conv_place place = conv_place_of(p, tile, FORM::windows);
        conv_walk walk = conv_walk_of(p, place.run * p.run + place.window);
        int panel = place.output / 32 + share.panel;
#pragma unroll
        for (int i = 0; i < ahead; i++)
            conv_fetch(packed[i], p, panel, share.half, i);
        for (int first = 0; first < p.steps; first += ahead) {
#pragma unroll
            for (int i = 0; i < ahead; i++) {
                int step = first + i;
                bool mine = step % share.turns == share.turn && step < p.steps;
                char *stage = ring + at.slot * (p.w_bytes + p.x_bytes);
                uint64_t *full = &rest.full[at.slot];
                if (mine || (warp == 0 && step < p.steps))
                    ft_barrier_wait(&rest.empty[at.slot], at.parity ^ 1);
                if (copies && step < p.steps) {
                    ft_barrier_expect(full, (unsigned) p.x_bytes);
                    conv_load_windows<FORM>(stage + p.w_bytes, p, place, walk, step, full);
                }
                __syncwarp();
                if (mine) {
                    conv_unpack<bits, kind>(stage + share.panel * 32 * CONV_STEP, packed[i],
                                            share.half);
                    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                    __syncwarp();
                    if (threadIdx.x % 32 == 0)
                        ft_barrier_arrive(full);
                    conv_fetch(packed[i], p, panel, share.half, step + ahead);
                }
                if (step < p.steps)
                    conv_advance(at, p.stages);
            }
        }
    }
}

#endif
#endif
