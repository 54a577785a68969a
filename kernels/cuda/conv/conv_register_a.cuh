/*
 * conv_register_a.cuh - implicit-GEMM convolution with group-wise quantized weights on sm_90a,
 * where the weights are the A operand in registers: y^T = w . windows^T.
 *
 * As in groupwise_wgmma.cu, quantized weights go from a pipeline to registers and are dequantized
 * there. conv_wgmma.cuh dequantizes them to shared memory instead, which costs one write and two
 * more reads. Windows are the B operand and are loaded as in conv_wgmma.cuh. Each of two consumer
 * warpgroups has 64 output channels of a tile; both use the same windows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_CUH
#define FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"
#include "kernels/cuda/conv/conv_register_a_split_k.cuh"
#include "kernels/cuda/conv/conv_wgmma_load.cuh"

/*
 * Pipelines have few stages. All CTAs start at the same time, and with long pipelines the first
 * loads of one CTA queue behind later loads of others: 8 stages took up to a tenth longer than 3 or
 * 4.
 */
enum {
    REGISTER_A_SMEM = 227 << 10,   /* maximum shared memory of a CTA */
    K_TILE_BLOCKS = 2,             /* K blocks per K tile of 128 columns */
    REGISTER_A_STAGES = 4,         /* maximum stages, ... */
    REGISTER_A_SPLIT_K_STAGES = 3, /* ... and with split-K */
};

/*
 * Epilogues: NHWC with any activation or any number of output channels takes longer.
 * REGISTER_A_SPLIT_K: NHWC with split-K, conv_register_a_split_k.cuh.
 */
typedef enum register_a_epilogue {
    REGISTER_A_NHWC,
    REGISTER_A_NHWC_GENERAL,
    REGISTER_A_NCHW,
    REGISTER_A_SPLIT_K
} register_a_epilogue;

/* Kernel traits: bits of the weights, dtype of the windows, windows of a tile. */
template <int BITS, ft_dtype DTYPE, int WINDOWS, register_a_epilogue TO> struct register_a_traits {
    static constexpr int bits = BITS, windows = WINDOWS;
    static constexpr ft_dtype dtype = DTYPE;
    static constexpr register_a_epilogue to = TO;
    static constexpr bool planes = false, register_a = true, split_k = TO == REGISTER_A_SPLIT_K;
    static constexpr bool prefetches_weights = BITS == 4; /* weights are loaded one K tile ahead */
    static constexpr groupwise_x_type kind = DTYPE == FT_F16 ? GROUPWISE_X_F16 : GROUPWISE_X_BF16;
    static constexpr int threads = CONV_CONSUMERS + CONV_WARPGROUP;
    static constexpr int panel = GROUPWISE_TILE_K * GROUPWISE_PANEL_ROWS * bits / 8;
    static constexpr int x_k_block = WINDOWS * CONV_K_BLOCK, x_k_tile = K_TILE_BLOCKS * x_k_block;
    static constexpr int packed = CONV_REGISTER_A_OUTPUTS / GROUPWISE_PANEL_ROWS * panel;
    static constexpr int scale_bytes = CONV_REGISTER_A_OUTPUTS * 4; /* scales and zero points */
    static constexpr int out_tile = TO == REGISTER_A_NHWC ? WINDOWS * 128
                                    : TO == REGISTER_A_SPLIT_K
                                        ? WINDOWS * 256          /* sums, then results */
                                        : 4 * CONV_STAGED_BYTES; /* per warpgroup */
    static constexpr int barriers = 32;                          /* per K tile */
    static constexpr int exchange_bytes = split_k ? 32 : 0;      /* barriers of split-K */
    static constexpr int max_stages = (REGISTER_A_SMEM - 2 * out_tile - exchange_bytes) /
                                      (x_k_tile + packed + scale_bytes + barriers);
    static constexpr int stage_limit = split_k ? REGISTER_A_SPLIT_K_STAGES : REGISTER_A_STAGES;
    static constexpr int k_tiles = max_stages < stage_limit ? max_stages : stage_limit;
    static constexpr int packed_offset = k_tiles * x_k_tile,
                         out_tile_offset = packed_offset + k_tiles * packed;
    static constexpr int scales_offset = out_tile_offset + 2 * out_tile;
    static constexpr int barriers_offset = scales_offset + k_tiles * scale_bytes;
    static constexpr int exchange_offset = barriers_offset + k_tiles * barriers;
    static constexpr int shared = exchange_offset + exchange_bytes;
};

#ifdef FT_HAS_WGMMA

__device__ __forceinline__ int k_tile_count(const conv_gemm_params &p)
{
    return (p.k_blocks + K_TILE_BLOCKS - 1) / K_TILE_BLOCKS;
}

/* ---- Shared memory -------------------------------------------------------------------------- */

/* Shared memory of a CTA. */
template <class FORM> struct register_a_smem {
    char *at;

    __device__ __forceinline__ ft_pipeline x() const
    {
        return ft_pipeline(at + FORM::barriers_offset, FORM::k_tiles);
    }
    __device__ __forceinline__ ft_pipeline packed() const
    {
        return ft_pipeline(at + FORM::barriers_offset + FORM::k_tiles * 16, FORM::k_tiles);
    }
    __device__ __forceinline__ char *x_of(const ft_pipeline &pipeline) const
    {
        return at + pipeline.stage_index * FORM::x_k_tile;
    }
    __device__ __forceinline__ char *packed_of(const ft_pipeline &pipeline) const
    {
        return at + FORM::packed_offset + pipeline.stage_index * FORM::packed;
    }
    __device__ __forceinline__ char *scales_of(const ft_pipeline &pipeline) const
    {
        return at + FORM::scales_offset + pipeline.stage_index * FORM::scale_bytes;
    }
    __device__ __forceinline__ char *zeros_of(const ft_pipeline &pipeline) const
    {
        return scales_of(pipeline) + 2 * CONV_REGISTER_A_OUTPUTS;
    }
    __device__ __forceinline__ char *out_tile_of(int consumer) const
    {
        return at + FORM::out_tile_offset + consumer * FORM::out_tile;
    }
    __device__ __forceinline__ split_k_barriers *barriers() const
    {
        return (split_k_barriers *) (at + FORM::exchange_offset);
    }
};

/* ---- Producers: two warps ------------------------------------------------------------------- */

/*
 * A producer is a warp of which one elected lane issues the copies: values that are uniform in the
 * warp stay in uniform registers, where TMA instructions need them. A single thread took as long
 * per box as the tensor cores.
 */
__device__ __forceinline__ bool elect_one()
{
    uint32_t elected;
    asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(elected));
    return elected != 0;
}

/* Weights depend on no predecessor. */
template <class FORM>
__device__ __forceinline__ void register_a_produce_weights(const register_a_smem<FORM> &s,
                                                           const conv_gemm_params &p)
{
    auto pipeline = s.packed();
    int k_tiles = k_tile_count(p);
    for (register_a_work<FORM::split_k> work(p, k_tiles); work.tile < p.tiles;
         work.advance(p, k_tiles)) {
        int output = conv_tile_coord_of(p, work.tile).output, group_k_tile = 0;
        unsigned rows = (unsigned) min(CONV_REGISTER_A_OUTPUTS, p.padded_rows - output);
        unsigned zeros = p.t.groupwise.zero != NULL ? rows : 0;
        size_t index = (size_t) output; /* index of the group's scales */
        if (work.first > 0) {
            group_k_tile = work.first % p.group_k_tiles;
            index += (size_t) (work.first / p.group_k_tiles) * (unsigned) p.padded_rows;
        }
        for (int k_tile = work.first; k_tile < work.end; k_tile++, pipeline.advance()) {
            pipeline.producer_acquire();
            if (elect_one()) {
                uint64_t *full = pipeline.producer_expect(FORM::packed + 2 * rows + zeros);
                ft_tma_load_3d(s.packed_of(pipeline), &p.w, full, 0, k_tile * (FORM::panel / 128),
                               output / GROUPWISE_PANEL_ROWS);
                ft_bulk_load(s.scales_of(pipeline), p.t.groupwise.scale + index, 2 * rows, full);
                if (zeros > 0)
                    ft_bulk_load(s.zeros_of(pipeline), p.t.groupwise.zero + index, zeros, full);
            }
            if (++group_k_tile == p.group_k_tiles) {
                group_k_tile = 0;
                index += (unsigned) p.padded_rows;
            }
        }
    }
}

/* Loads the two K blocks of a K tile. */
template <class FORM>
__device__ __forceinline__ void
register_a_load_k_tile(char *to, const conv_gemm_params &p, const conv_tile_coord &coord,
                       conv_im2col_iterator &iterator, int k_tile, uint64_t *full)
{
    if (p.layout_kind != CONV_LAYOUT_NHWC) {
        if (elect_one())
#pragma unroll
            for (int i = 0; i < K_TILE_BLOCKS; i++)
                ft_tma_load_3d(to + i * FORM::x_k_block, &p.x, full,
                               (k_tile * K_TILE_BLOCKS + i) * CONV_K_BLOCK, coord.window,
                               coord.segment);
        return;
    }
    for (int i = 0; i < K_TILE_BLOCKS * p.boxes; i++) {
        conv_im2col_iterator at = iterator;
        if (elect_one())
            conv_load_im2col(to + i * p.box_bytes, p, at, full);
        conv_im2col_next(p, iterator);
    }
}

template <class FORM>
__device__ __forceinline__ void register_a_produce_windows(const register_a_smem<FORM> &s,
                                                           const conv_gemm_params &p)
{
    auto pipeline = s.x();
    int k_tiles = k_tile_count(p);
    ft_pdl_wait();
    for (register_a_work<FORM::split_k> work(p, k_tiles); work.tile < p.tiles;
         work.advance(p, k_tiles)) {
        conv_tile_coord coord = conv_tile_coord_of(p, work.tile);
        conv_im2col_iterator iterator = {};
        if (p.layout_kind == CONV_LAYOUT_NHWC) {
            iterator = conv_im2col_begin(p, coord.segment * p.segment + coord.window);
            if (work.first > 0)
                conv_im2col_seek(p, iterator, work.first * K_TILE_BLOCKS * p.boxes);
        }
        for (int k_tile = work.first; k_tile < work.end; k_tile++, pipeline.advance()) {
            pipeline.producer_acquire();
            if (elect_one())
                pipeline.producer_expect(FORM::x_k_tile);
            register_a_load_k_tile<FORM>(s.x_of(pipeline), p, coord, iterator, k_tile,
                                         &pipeline.full[pipeline.stage_index]);
        }
    }
    ft_pdl_launch_dependents();
}

#endif
#endif
