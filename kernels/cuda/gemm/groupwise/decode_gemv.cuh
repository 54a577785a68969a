/*
 * decode_gemv.cuh - work distribution and weight pipeline of decode_gemv.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"
#include "kernels/cuda/gemm/groupwise/decode_gemv.h"

enum {
    DECODE_MAX_M = 2,
    DECODE_WARPS = 16,
    DECODE_THREADS = 32 * DECODE_WARPS,
    DECODE_STAGES = 2,
    DECODE_K_TILE_BYTES = GROUPWISE_TILE_K * GROUPWISE_PANEL_ROWS / 2, /* bytes of quantized weights
                                                                        * per k tile and panel */
    DECODE_K_TILES_PER_SPLIT = GROUPWISE_SPLIT_K / GROUPWISE_TILE_K,   /* k tiles per split */
    DECODE_SCALE_BYTES = GROUPWISE_PANEL_ROWS * sizeof(uint16_t),      /* bytes per k tile */
    DECODE_ACC_BYTES =
        GROUPWISE_PANEL_ROWS * sizeof(float) /* bytes per k tile or split, and token */
};

/*
 * Scales and zero points. Those that the main loop needs, all but scales of k tiles, arrive with
 * the k tile, in a ring of one slot more than the pipeline has stages: the slot of a k tile is read
 * while that of the next but one is filled.
 */
template <bool STEP_SCALES, bool ZEROS> struct decode_format {
    static constexpr bool step_scales = STEP_SCALES, zeros = ZEROS;
    static constexpr int steps = STEP_SCALES ? GROUPWISE_TILE_K / GROUPWISE_STEP_K : 1;
    static constexpr int scale_bytes = STEP_SCALES ? steps * GROUPWISE_PANEL_ROWS * 2 : 0,
                         zero_bytes = ZEROS ? steps * GROUPWISE_PANEL_ROWS : 0;
    static constexpr int slot_bytes = scale_bytes + zero_bytes, slots = DECODE_STAGES + 1;
};

/* Output of a thread block. */
typedef enum decode_output {
    DECODE_STORE_LINEARS,   /* the linears */
    DECODE_STORE_SILU_GATE, /* the gate of two linears with SiLU ... */
    DECODE_STORE_GATE       /* ... or any other activation */
} decode_output;

/* Launch parameters. Shared memory holds pipelines, scales, x, sums of k tiles, sums of splits. */
typedef struct decode_params {
    int k_tiles, splits;              /* per panel */
    int panels;                       /* per thread block and linear */
    int panels_of[FT_CUDA_MAX_FUSED]; /* panels */
    int first[FT_CUDA_MAX_FUSED];     /* first thread block of each linear; `blocks` beyond the last
                                       * one */
    int blocks;
    bool fuses_gate;        /* a thread block has the same panels of the first two linears */
    bool two_blocks_per_sm; /* two thread blocks per SM */
    bool
        early_dependents; /* launch dependents after the first k tiles, else with the last copies */
    int k;
    int groups, groups_per_advance; /* of a row, and of the k tiles of all warps; 0 for one group */
    uint32_t group_magic, k_tiles_magic,
        k_tile_splits_magic; /* groupwise_div_magic() of k tiles or steps per group, and of the
                              * above */
    uint32_t ring_offset, scales_offset, x_offset, x_stride, acc_offset, totals_offset, bytes;
} decode_params;

/* Work of a thread block: panels of a linear, or the same panels of two linears. */
struct decode_work_range {
    int linear, first, panels;   /* of the first linear */
    int linear_k_tiles, k_tiles; /* k tiles of that linear, and in total */

    __device__ __forceinline__ decode_work_range(const decode_params &s)
    {
        linear = 0;
#pragma unroll
        for (int i = 1; i < FT_CUDA_MAX_FUSED; i++)
            linear = !s.fuses_gate && (int) blockIdx.x >= s.first[i] ? i : linear;
        first = ((int) blockIdx.x - s.first[linear]) * s.panels;
        panels = min(s.panels, s.panels_of[linear] - first);
        linear_k_tiles = panels * s.k_tiles;
        k_tiles = s.fuses_gate ? 2 * linear_k_tiles : linear_k_tiles;
    }
    /* K tiles of a warp: every DECODE_WARPS-th of `count`. */
    __device__ __forceinline__ static int warp_k_tiles(int count, int warp)
    {
        return (count - warp + DECODE_WARPS - 1) / DECODE_WARPS;
    }
};

/* An offset that stays in a register: the compiler would compute it again for each k tile. */
__device__ __forceinline__ unsigned decode_kept(unsigned offset)
{
    asm("" : "+r"(offset));
    return offset;
}

/* ---- Weights -------------------------------------------------------------------------------- */

/* A warp's cp.async pipeline over its k tiles. */
struct decode_pipeline {
    const char *qweights;  /* the lane's address of the next k tile */
    int64_t linear_stride; /* from the end of the first linear's panels to those of the second */
    int k_tiles_left;      /* remaining k tiles of the first linear */
    char *lane_offset;     /* the lane's offset in the first stage */

    __device__ __forceinline__ decode_pipeline(const ft_cuda_groupwise_args &p,
                                               const decode_params &s,
                                               const decode_work_range &range, char *slots,
                                               int warp)
    {
        unsigned lane = threadIdx.x % 32;
        const ft_cuda_groupwise_linear &linear = p.linear[range.linear];
        qweights = linear.w +
                   ((size_t) range.first * s.k_tiles + (unsigned) warp) * DECODE_K_TILE_BYTES +
                   lane * sizeof(uint4);
        linear_stride = s.fuses_gate ? p.linear[1].w - linear.w -
                                           (int64_t) range.linear_k_tiles * DECODE_K_TILE_BYTES
                                     : 0;
        k_tiles_left = decode_work_range::warp_k_tiles(range.linear_k_tiles, warp);
        lane_offset = slots + decode_kept(groupwise_smem_write_offset(lane));
    }
    /* Request a k tile. */
    __device__ __forceinline__ void request(int stage, bool any)
    {
        if (any)
#pragma unroll
            for (int i = 0; i < DECODE_K_TILE_BYTES; i += GROUPWISE_WARP_BYTES)
                ft_cp_async_16(lane_offset + stage * DECODE_K_TILE_BYTES + i, qweights + i, true);
        qweights += DECODE_WARPS * DECODE_K_TILE_BYTES;
        if (--k_tiles_left == 0)
            qweights += linear_stride;
    }
};

/* ---- Scales --------------------------------------------------------------------------------- */

/*
 * The scales and zero points of a warp's k tiles: each of the first lanes copies 16 bytes of the
 * scales or zero points of a step, or of the zero points of the k tile.
 */
template <class FORMAT> struct decode_ring {
    static constexpr int scale_lanes = FORMAT::scale_bytes / 16, lanes = FORMAT::slot_bytes / 16;
    const char *from;        /* the lane's address in the next k tile */
    int64_t linear_stride;   /* from the end of the first linear's panels to those of the second */
    int k_tile, panels_left; /* of the panel; panels left of the first linear */
    char *slots;             /* the lane's address in the first slot */
    int advance, wrap; /* bytes to the warp's next k tile, and to the next panel in addition */

    __device__ __forceinline__ decode_ring(const ft_cuda_groupwise_args &p, const decode_params &s,
                                           const decode_work_range &range, char *slots, int warp)
        : k_tile(warp), panels_left(range.panels), slots(slots + decode_kept(threadIdx.x % 32 * 16))
    {
        const ft_cuda_groupwise_linear &linear = p.linear[range.linear];
        int lane = (int) threadIdx.x % 32;
        bool is_scale = FORMAT::zero_bytes == 0 || lane < scale_lanes;
        int own = is_scale ? lane : lane - scale_lanes, size = is_scale ? 2 : 1;
        int step = is_scale ? own / 4 : own / 2, chunk = is_scale ? own % 4 : own % 2;
        int rows = s.panels_of[range.linear] * GROUPWISE_PANEL_ROWS;
        const char *base = is_scale ? (const char *) linear.scale : (const char *) linear.zero;
        const char *next =
            is_scale ? (const char *) p.linear[1].scale : (const char *) p.linear[1].zero;
        int group = groupwise_fast_div(warp * FORMAT::steps + step, s.group_magic);
        from =
            base + ((size_t) group * rows + range.first * GROUPWISE_PANEL_ROWS) * size + chunk * 16;
        linear_stride = s.fuses_gate ? next - base - range.panels * GROUPWISE_PANEL_ROWS * size : 0;
        advance = s.groups_per_advance * rows * size;
        wrap = (GROUPWISE_PANEL_ROWS - s.groups * rows) * size;
    }
    /* Request those of a k tile. */
    __device__ __forceinline__ void request(const decode_params &s, int slot, bool any)
    {
        if (any && (int) threadIdx.x % 32 < lanes)
            ft_cp_async_16(slots + slot, from, true);
        from += advance;
        k_tile += DECODE_WARPS;
        if (k_tile < s.k_tiles)
            return;
        k_tile -= s.k_tiles; /* there are at least as many as warps */
        from += wrap;
        if (--panels_left == 0)
            from += linear_stride;
    }
};

/* Scales of k tiles of the thread block; they arrive with the first weights. */
__device__ __forceinline__ void decode_load_scales(char *scales, const ft_cuda_groupwise_args &p,
                                                   const decode_params &s,
                                                   const decode_work_range &range)
{
    constexpr int chunks = DECODE_SCALE_BYTES / sizeof(uint4);
#pragma unroll 1
    for (int i = (int) threadIdx.x; i < range.k_tiles * chunks; i += DECODE_THREADS) {
        int panel = groupwise_fast_div(i / chunks, s.k_tiles_magic),
            run = i / chunks - panel * s.k_tiles;
        bool second = panel >= range.panels;
        int linear = range.linear + second;
        size_t row =
            (size_t) (range.first + panel - (second ? range.panels : 0)) * GROUPWISE_PANEL_ROWS;
        size_t group = (size_t) groupwise_fast_div(run, s.group_magic) * s.panels_of[linear] *
                       GROUPWISE_PANEL_ROWS;
        ft_cp_async_16(scales + i * sizeof(uint4),
                       (const char *) (p.linear[linear].scale + group + row) +
                           i % chunks * sizeof(uint4),
                       true);
    }
}

#endif
