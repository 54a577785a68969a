/*
 * groupwise_int8_small_m.cuh - operand pipeline of groupwise_int8_small_m.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_INT8_SMALL_M_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_INT8_SMALL_M_CUH

#include "kernels/cuda/gemm/groupwise/groupwise_int8_records.cuh"

enum {
    INT8_WARPS = 8,
    INT8_THREADS = 32 * INT8_WARPS,
    INT8_STEPS = GROUPWISE_TILE_K / GROUPWISE_STEP_K,
    INT8_ACC_PITCH = GROUPWISE_PANEL_ROWS + 4 /* floats, padded to avoid bank conflicts */
};

/*
 * A thread block has 8 * M8_TILES tokens. A stage has quantized weights, a record, scales and zero
 * points.
 */
template <int BITS, int M8_TILES> struct int8_small_m_config {
    static constexpr int bits = BITS, m8_tiles = M8_TILES, tokens = 8 * M8_TILES;
    static constexpr int weights = GROUPWISE_TILE_K * GROUPWISE_PANEL_ROWS * BITS / 8;
    static constexpr int x_scale = tokens * GROUPWISE_TILE_K;     /* offset in a record */
    static constexpr int sum_scale = tokens * INT8_ACC_PITCH * 4; /* offsets in a group's sums: */
    static constexpr int sum_x_scale = sum_scale + GROUPWISE_PANEL_ROWS * 2;
    static constexpr int sum = sum_x_scale + tokens * 4;
};

/* Launch parameters; offsets and sizes in bytes. */
typedef struct int8_small_m_params {
    groupwise_shape all;
    int8_x_records x;
    int groups, panels; /* panels: per thread block */
    int phase;          /* k tiles between reductions */
    int n_stages;       /* pipeline stages */
    bool has_zeros;
    int scales_at, zeros_at, stage;
    int sums_at, sums; /* size of one of two buffers for the sums of a phase */
} int8_small_m_params;

/* ---- K tiles -------------------------------------------------------------------------------- */

/*
 * A warp's cp.async pipeline: every lane copies its part of the warp's k tiles, every
 * INT8_WARPS-th of a panel. Weights come first, because tokens are computed by the predecessor.
 */
template <class CONFIG> struct int8_small_m_pipeline {
    const ft_cuda_groupwise_args &p;
    const int8_small_m_params &shape;
    char *pipeline, *x;           /* x: resident records, or NULL: each is copied with its k tile */
    int warp, lane, at;           /* at: offset of the stage to read */
    int panel, end_panel, k_tile; /* next weights to request; end of the block's panels */
    int tokens, x_k_tile; /* panels whose tokens are still to be requested, and their next k tile */
    int tokens_left;      /* tokens from the block's first */
    const char *qweights, *scales, *zeros; /* the lane's addresses in the k tile */
    const char *records;                   /* the lane's address in the first k tile */
    int group_stride;                      /* scales between consecutive k tiles of the warp */

    __device__ __forceinline__ int8_small_m_pipeline(const ft_cuda_groupwise_args &p,
                                                     const int8_small_m_params &shape, char *shared,
                                                     char *x)
        : p(p), shape(shape), x(x), warp((int) threadIdx.x / 32), lane((int) threadIdx.x % 32),
          at(0), panel((int) blockIdx.x * shape.panels), end_panel(panel + shape.panels),
          k_tile(warp), x_k_tile(warp)
    {
        pipeline = shared + warp * shape.n_stages * shape.stage;
        records = shape.x.at + (size_t) blockIdx.y * shape.x.k_tiles * shape.x.bytes + lane * 16;
        end_panel = end_panel < shape.all.panels ? end_panel : shape.all.panels;
        tokens = warp < shape.x.k_tiles ? (x != NULL ? 1 : end_panel - panel) : 0;
        tokens_left = (int) p.m - (int) blockIdx.y * CONFIG::tokens;
        panel = warp < shape.x.k_tiles ? panel : end_panel;
        locate();
    }
    __device__ __forceinline__ bool has_weights() const
    {
        return panel < end_panel;
    }
    /*
     * The warp's first k tile of the panel. Four lanes copy the scales of a group, two its zero
     * points.
     */
    __device__ __forceinline__ void locate()
    {
        if (!has_weights())
            return;
        int own = panel, which = groupwise_linear_of(shape.all, own);
        const ft_cuda_groupwise_linear &linear = p.linear[which];
        int rows = shape.all.padded_n[which], group = k_tile * shape.x.groups_per_k_tile;
        qweights =
            linear.w + (size_t) own * shape.all.panel_bytes + k_tile * CONFIG::weights + lane * 16;
        scales =
            (const char *) linear.scale +
            ((size_t) (group + lane / 4) * rows + own * GROUPWISE_PANEL_ROWS + lane % 4 * 8) * 2;
        zeros = (const char *) linear.zero + (size_t) (group + lane / 2) * rows +
                own * GROUPWISE_PANEL_ROWS + lane % 2 * 16;
        group_stride = INT8_WARPS * shape.x.groups_per_k_tile * rows;
    }
    __device__ __forceinline__ void request_weights(char *to)
    {
        if (!has_weights())
            return;
        char *own = to + groupwise_smem_write_offset((unsigned) lane);
        int groups = shape.groups - k_tile * shape.x.groups_per_k_tile;
        groups = groups < shape.x.groups_per_k_tile ? groups : shape.x.groups_per_k_tile;
        if (k_tile + 1 < shape.x.k_tiles)
#pragma unroll
            for (int i = 0; i < CONFIG::weights; i += GROUPWISE_WARP_BYTES)
                ft_cp_async_16(own + i, qweights + i, true);
        else
#pragma unroll
            for (int i = 0; i < CONFIG::weights; i += GROUPWISE_WARP_BYTES)
                ft_cp_async_16(own + i, qweights + i,
                               k_tile * CONFIG::weights + i < shape.all.panel_bytes);
        if (lane < 4 * groups)
            ft_cp_async_16(to + shape.scales_at + lane * 16, scales, true);
        if (shape.has_zeros && lane < 2 * groups)
            ft_cp_async_16(to + shape.zeros_at + lane * 16, zeros, true);
        k_tile += INT8_WARPS;
        qweights += INT8_WARPS * CONFIG::weights;
        scales += (size_t) group_stride * 2;
        zeros += group_stride;
        if (k_tile < shape.x.k_tiles)
            return;
        k_tile = warp;
        panel++;
        locate();
    }
    /* Request the tokens that are in bounds; commits a group even if there is nothing to copy. */
    __device__ __forceinline__ void request_tokens(char *to)
    {
        if (tokens > 0) {
            const char *record = records + (size_t) (x_k_tile * shape.x.bytes);
            char *own =
                (x != NULL ? x + x_k_tile * shape.x.bytes : to + CONFIG::weights) + lane * 16;
#pragma unroll
            for (int i = 0; i < CONFIG::x_scale; i += GROUPWISE_WARP_BYTES)
                if (i / GROUPWISE_TILE_K + lane / 8 < tokens_left)
                    ft_cp_async_16(own + i, record + i, true);
            for (int i = CONFIG::x_scale; i + lane * 16 < shape.x.bytes; i += GROUPWISE_WARP_BYTES)
                ft_cp_async_16(own + i, record + i, true);
            x_k_tile += INT8_WARPS;
            if (x_k_tile >= shape.x.k_tiles) {
                x_k_tile = warp;
                tokens--;
            }
        }
        ft_cp_async_commit();
    }
    __device__ __forceinline__ void prefetch_weights()
    {
#pragma unroll 1
        for (int i = 0; i < shape.n_stages; i++) {
            request_weights(pipeline + i * shape.stage);
            ft_cp_async_commit();
        }
    }
    __device__ __forceinline__ void prefetch_tokens()
    {
#pragma unroll 1
        for (int i = 0; i < shape.n_stages; i++)
            request_tokens(pipeline + i * shape.stage);
    }
    __device__ __forceinline__ const char *wait()
    {
        groupwise_wait_stage(shape.n_stages);
        __syncwarp();
        return pipeline + at;
    }
    /* The stage has been read: refill it. */
    __device__ __forceinline__ void release()
    {
        __syncwarp();
        request_weights(pipeline + at);
        request_tokens(pipeline + at);
        at = at + shape.stage == shape.n_stages * shape.stage ? 0 : at + shape.stage;
    }
};

#endif
