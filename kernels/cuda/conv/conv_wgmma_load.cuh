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
typedef struct conv_im2col_iterator {
    int image, top, left;
    int byte, row, col;
} conv_im2col_iterator;

__device__ __forceinline__ conv_im2col_iterator conv_im2col_begin(const conv_gemm_params &p,
                                                                  int window)
{
    int image = conv_divide(window, p.out_pixels), position = window - image * p.out_pixels.divisor;
    int down = conv_divide(position, p.per_row), right = position - down * p.per_row.divisor;
    conv_im2col_iterator iterator = { image, down * p.t.conv.stride[0] - p.padding[0],
                                      right * p.t.conv.stride[1] - p.padding[1] };
    return iterator;
}

/* Advances to the next box. */
__device__ __forceinline__ void conv_im2col_next(const conv_gemm_params &p,
                                                 conv_im2col_iterator &iterator)
{
    iterator.byte += p.line;
    if (iterator.byte == p.pixel) {
        iterator.byte = 0;
        if (++iterator.col == p.t.conv.kernel[1]) {
            iterator.col = 0;
            iterator.row++;
        }
    }
}

/* Advances from the first box by `boxes` boxes. */
__device__ __forceinline__ void conv_im2col_seek(const conv_gemm_params &p,
                                                 conv_im2col_iterator &iterator, int boxes)
{
    int bytes = boxes * p.line, tap = bytes / p.pixel;
    iterator.byte = bytes - tap * p.pixel;
    iterator.row = tap / p.t.conv.kernel[1];
    iterator.col = tap - iterator.row * p.t.conv.kernel[1];
}

/*
 * A K block has complete boxes: those after the last tap are zeros, read from an image beyond the
 * last.
 */
__device__ __forceinline__ void conv_load_im2col(char *to, const conv_gemm_params &p,
                                                 conv_im2col_iterator &iterator, uint64_t *full)
{
    const ft_conv &c = p.t.conv;
    bool exists = iterator.row < c.kernel[0];
    ft_tma_load_im2col(to, &p.x, full, iterator.byte, iterator.left, iterator.top,
                       exists ? iterator.image : p.t.images,
                       exists ? iterator.col * c.dilation[1] : 0,
                       exists ? iterator.row * c.dilation[0] : 0);
    conv_im2col_next(p, iterator);
}

template <class FORM>
__device__ __forceinline__ void
conv_load_windows(char *to, const conv_gemm_params &p, const conv_tile_coord &coord,
                  conv_im2col_iterator &iterator, int k_block, uint64_t *full)
{
    if (FORM::planes) {
        for (int i = 0; i < p.boxes; i++)
            ft_tma_load_3d(to + i * CONV_PANEL, &p.x, full, coord.window * 2 + i * 128,
                           k_block * 64, coord.segment);
    } else if (p.layout_kind == CONV_LAYOUT_NHWC) {
        for (int i = 0; i < p.boxes; i++)
            conv_load_im2col(to + i * p.box_bytes, p, iterator, full);
    } else {
        ft_tma_load_3d(to, &p.x, full, k_block * CONV_K_BLOCK, coord.window, coord.segment);
    }
}

/* The packed weights of a stage, and the zero points of both halves of its K block. */
__device__ __forceinline__ char *conv_stage_packed(char *stages_smem, const conv_gemm_params &p,
                                                   int stage_index)
{
    return stages_smem + p.stages * (p.w_bytes + p.x_bytes) + stage_index * p.packed_bytes;
}

__device__ __forceinline__ char *conv_stage_zeros(char *stages_smem, const conv_gemm_params &p,
                                                  int stage_index)
{
    return stages_smem + p.stages * (p.w_bytes + p.x_bytes + p.packed_bytes) +
           stage_index * 2 * p.tile_outputs;
}

/* Zero points of the two halves of a K block, as far as rows exist. */
__device__ __forceinline__ void conv_load_zeros(char *to, const conv_gemm_params &p, int output,
                                                int k_block, unsigned rows, uint64_t *packed_full)
{
    for (int half = 0; half < 2; half++) {
        int column = min(k_block * 64 + half * 32, p.t.window - 1);
        ft_bulk_load(to + half * p.tile_outputs,
                     p.t.groupwise.zero +
                         (size_t) conv_divide(column, p.group) * (unsigned) p.padded_rows + output,
                     rows, packed_full);
    }
}

/* The weights of a stage. Group-wise quantized ones still have to be unpacked. */
template <class FORM>
__device__ __forceinline__ void conv_load_weights(char *stages_smem, const conv_gemm_params &p,
                                                  int output, int k_block, int stage_index,
                                                  uint64_t *packed_full)
{
    char *to = stages_smem + stage_index * (p.w_bytes + p.x_bytes);
    if (FORM::bits > 0)
        ft_tma_load_3d(conv_stage_packed(stages_smem, p, stage_index), &p.w, packed_full, 0,
                       k_block * 2 * FORM::bits, output / 32);
    else if (FORM::dtype == FT_I8)
        ft_tma_load_prepacked(to, &p.w, packed_full, output, k_block);
    else if (p.interleaved)
        ft_tma_load_interleaved(to, &p.w, packed_full, output, k_block * CONV_K_BLOCK);
    else
        ft_tma_load_2d(to, &p.w, packed_full, output, k_block * CONV_K_BLOCK);
}

/* Producer thread of the weights, which depend on no predecessor. */
template <class FORM, class REST>
__device__ __forceinline__ void conv_produce_weights(char *stages_smem, REST &storage,
                                                     const conv_gemm_params &p)
{
    uint64_t *packed_full = FORM::bits > 0 ? storage.packed_full : storage.full;
    ft_pipeline_state state = { 0, 0 };
    bool zeros = FORM::bits > 0 && p.t.groupwise.zero != NULL;
    unsigned bytes = (unsigned) (FORM::bits > 0 ? p.packed_bytes : p.w_bytes);
    for (int tile = (int) blockIdx.x; tile < p.tiles; tile += (int) gridDim.x) {
        int output = conv_tile_coord_of(p, tile).output;
        unsigned rows = zeros ? (unsigned) min(p.tile_outputs, p.padded_rows - output) : 0;
        for (int k_block = 0; k_block < p.k_blocks; k_block++, state.advance(p.stages)) {
            uint64_t *full = &packed_full[state.stage_index];
            ft_pipeline_producer_acquire(storage, state);
            ft_mbarrier_arrive_expect_tx(full, bytes + 2 * rows);
            conv_load_weights<FORM>(stages_smem, p, output, k_block, state.stage_index, full);
            if (zeros)
                conv_load_zeros(conv_stage_zeros(stages_smem, p, state.stage_index), p, output,
                                k_block, rows, full);
        }
    }
}

/* Producer thread of the windows and, without a second producer, of the weights. */
template <class FORM, class REST>
__device__ __forceinline__ void conv_produce_windows(char *stages_smem, REST &storage,
                                                     const conv_gemm_params &p)
{
    uint64_t *packed_full = FORM::bits > 0 ? storage.packed_full : storage.full;
    ft_pipeline_state state = { 0, 0 };
    bool weights = FORM::producers == 1;
    unsigned bytes = (unsigned) (p.x_bytes + (weights ? p.w_bytes : 0));
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    for (int tile = (int) blockIdx.x; tile < p.tiles; tile += (int) gridDim.x) {
        conv_tile_coord coord = conv_tile_coord_of(p, tile);
        conv_im2col_iterator iterator =
            conv_im2col_begin(p, coord.segment * p.segment + coord.window);
        for (int k_block = 0; k_block < p.k_blocks; k_block++, state.advance(p.stages)) {
            uint64_t *full = &packed_full[state.stage_index];
            ft_pipeline_producer_acquire(storage, state);
            ft_mbarrier_arrive_expect_tx(full, bytes);
            if (weights)
                conv_load_weights<FORM>(stages_smem, p, coord.output, k_block, state.stage_index,
                                        full);
            conv_load_windows<FORM>(stages_smem + state.stage_index * (p.w_bytes + p.x_bytes) +
                                        p.w_bytes,
                                    p, coord, iterator, k_block, full);
        }
    }
}

#endif
#endif
