/*
 * conv_wgmma_load.cuh - TMA loads of conv_wgmma.cuh: windows and weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_WGMMA_LOAD_CUH
#define FT_KERNELS_CUDA_CONV_CONV_WGMMA_LOAD_CUH

#include "kernels/cuda/conv/conv_wgmma_tiles.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Copies --------------------------------------------------------------------------------- */

/* Iterator of im2col loads: the first tap of the first window, and the current tap. */
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

/* Advances to the next box. */
__device__ __forceinline__ void conv_walk_on(const conv_product &p, conv_walk &walk)
{
    walk.byte += p.line;
    if (walk.byte == p.pixel) {
        walk.byte = 0;
        if (++walk.col == p.t.conv.kernel[1]) {
            walk.col = 0;
            walk.row++;
        }
    }
}

/* Advances from the first box by `boxes` boxes. */
__device__ __forceinline__ void conv_walk_to(const conv_product &p, conv_walk &walk, int boxes)
{
    int bytes = boxes * p.line, tap = bytes / p.pixel;
    walk.byte = bytes - tap * p.pixel;
    walk.row = tap / p.t.conv.kernel[1];
    walk.col = tap - walk.row * p.t.conv.kernel[1];
}

/*
 * A K block has complete boxes: those after the last tap are zeros, read from an image beyond the
 * last.
 */
__device__ __forceinline__ void conv_load_tap(char *to, const conv_product &p, conv_walk &walk,
                                              uint64_t *full)
{
    const ft_conv &c = p.t.conv;
    bool exists = walk.row < c.kernel[0];
    ft_load_taps(to, &p.x, full, walk.byte, walk.left, walk.top, exists ? walk.image : p.t.images,
                 exists ? walk.col * c.dilation[1] : 0, exists ? walk.row * c.dilation[0] : 0);
    conv_walk_on(p, walk);
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

/* The packed weights of a stage, and the zero points of both halves of its K block. */
__device__ __forceinline__ char *conv_packed_at(char *ring, const conv_product &p, int slot)
{
    return ring + p.stages * (p.w_bytes + p.x_bytes) + slot * p.packed_bytes;
}

__device__ __forceinline__ char *conv_zeros_at(char *ring, const conv_product &p, int slot)
{
    return ring + p.stages * (p.w_bytes + p.x_bytes + p.packed_bytes) + slot * 2 * p.tile_outputs;
}

/* Zero points of the two halves of a K block, as far as rows exist. */
__device__ __forceinline__ void conv_load_zeros(char *to, const conv_product &p, int output,
                                                int step, unsigned rows, uint64_t *arrived)
{
    for (int half = 0; half < 2; half++) {
        int column = min(step * 64 + half * 32, p.t.window - 1);
        ft_load_bulk(to + half * p.tile_outputs,
                     p.t.blocks.zero + (size_t) conv_divide(column, p.group) * (unsigned) p.padded +
                         output,
                     rows, arrived);
    }
}

/* The weights of a stage. Group-wise quantized ones still have to be unpacked. */
template <class FORM>
__device__ __forceinline__ void conv_load_weights(char *ring, const conv_product &p, int output,
                                                  int step, int slot, uint64_t *arrived)
{
    char *to = ring + slot * (p.w_bytes + p.x_bytes);
    if (FORM::bits > 0)
        ft_load_cube(conv_packed_at(ring, p, slot), &p.w, arrived, 0, step * 2 * FORM::bits,
                     output / 32);
    else if (FORM::dtype == FT_I8)
        ft_load_weights(to, &p.w, arrived, output, step);
    else if (p.woven)
        ft_load_woven(to, &p.w, arrived, output, step * CONV_STEP);
    else
        ft_load_box(to, &p.w, arrived, output, step * CONV_STEP);
}

/* Producer thread of the weights, which depend on no predecessor. */
template <class FORM, class REST>
__device__ __forceinline__ void conv_load_all_weights(char *ring, REST &rest, const conv_product &p)
{
    uint64_t *arrived = FORM::bits > 0 ? rest.arrived : rest.full;
    conv_at at = { 0, 0 };
    bool zeros = FORM::bits > 0 && p.t.blocks.zero != NULL;
    unsigned bytes = (unsigned) (FORM::bits > 0 ? p.packed_bytes : p.w_bytes);
    for (int tile = (int) blockIdx.x; tile < p.tiles; tile += (int) gridDim.x) {
        int output = conv_place_of(p, tile).output;
        unsigned rows = zeros ? (unsigned) min(p.tile_outputs, p.padded - output) : 0;
        for (int step = 0; step < p.steps; step++, conv_advance(at, p.stages)) {
            uint64_t *full = &arrived[at.slot];
            ft_barrier_wait(&rest.empty[at.slot], at.parity ^ 1);
            ft_barrier_expect(full, bytes + 2 * rows);
            conv_load_weights<FORM>(ring, p, output, step, at.slot, full);
            if (zeros)
                conv_load_zeros(conv_zeros_at(ring, p, at.slot), p, output, step, rows, full);
        }
    }
}

/* Producer thread of the windows and, without a second producer, of the weights. */
template <class FORM, class REST>
__device__ __forceinline__ void conv_load_all_windows(char *ring, REST &rest, const conv_product &p)
{
    uint64_t *arrived = FORM::bits > 0 ? rest.arrived : rest.full;
    conv_at at = { 0, 0 };
    bool weights = FORM::loaders == 1;
    unsigned bytes = (unsigned) (p.x_bytes + (weights ? p.w_bytes : 0));
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    for (int tile = (int) blockIdx.x; tile < p.tiles; tile += (int) gridDim.x) {
        conv_place place = conv_place_of(p, tile);
        conv_walk walk = conv_walk_of(p, place.run * p.run + place.window);
        for (int step = 0; step < p.steps; step++, conv_advance(at, p.stages)) {
            uint64_t *full = &arrived[at.slot];
            ft_barrier_wait(&rest.empty[at.slot], at.parity ^ 1);
            ft_barrier_expect(full, bytes);
            if (weights)
                conv_load_weights<FORM>(ring, p, place.output, step, at.slot, full);
            conv_load_windows<FORM>(ring + at.slot * (p.w_bytes + p.x_bytes) + p.w_bytes, p, place,
                                    walk, step, full);
        }
    }
}

#endif
#endif
