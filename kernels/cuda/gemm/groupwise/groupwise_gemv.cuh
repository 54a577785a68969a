/*
 * groupwise_gemv.cuh - weight pipeline of groupwise_gemv.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_GEMV_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_GEMV_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"

enum {
    GEMV_MAX_M = 8,
    GEMV_WARPS = 8,
    GEMV_STAGE_LOADS = 8, /* 16-byte loads per lane and stage */
    GEMV_STAGE_BYTES = GEMV_STAGE_LOADS * GROUPWISE_WARP_BYTES,
    GEMV_MAX_BLOCKS_PER_SM = 2 /* thread blocks per SM, at most */
};

/*
 * Compile-time configuration; fine: a scale per 32 columns, else per k tile. A stage holds
 * quantized weights and the scales and zero points of 32 rows that belong to them.
 */
template <int BITS, groupwise_x_type KIND, bool STEP_SCALES, bool ZEROS> struct gemv_config {
    static constexpr int bits = BITS;
    static constexpr groupwise_x_type kind = KIND;
    static constexpr bool step_scales = STEP_SCALES, zeros = ZEROS;
    static constexpr groupwise_scaling scaling = groupwise_scaling_of<KIND, STEP_SCALES>;
    static constexpr int columns = GEMV_STAGE_LOADS * 128 / bits,
                         k_tiles = columns / GROUPWISE_TILE_K;
    static constexpr int stages = GROUPWISE_SPLIT_K / columns;
    static constexpr int columns_per_scale =
        step_scales ? GROUPWISE_STEP_K : GROUPWISE_TILE_K; /* columns per scale */
    static constexpr int scales = columns / columns_per_scale;
    static constexpr int zeros_at = GEMV_STAGE_BYTES + scales * 64;
    static constexpr int stage = zeros_at + (zeros ? scales * 32 : 0);
};

/* One split of a thread block's range. */
struct gemv_work_item {
    int unit, panel, split;

    __device__ __forceinline__ gemv_work_item(const groupwise_shape &shape,
                                              const groupwise_work_range &range, int i)
        : unit(range.at(i)), panel(groupwise_fast_div(unit, shape.splits_magic)),
          split(unit - panel * shape.splits)
    {
    }
};

/* ---- Weights ------------------------------------------------------------------------------- */

/*
 * A warp's cp.async pipeline: every lane copies its part and requests stage after stage of the
 * warp's splits, every GEMV_WARPS-th of the thread block's range.
 */
template <class CONFIG> struct gemv_pipeline {
    const ft_cuda_groupwise_args &p;
    const groupwise_shape &shape;
    const groupwise_work_range &range;
    char *pipeline;
    unsigned lane;
    int n_stages;
    int at, next, column, end;  /* at: stage offset; next: split of the range; column of the
                                 * stage; end of the split */
    bool pdl_waited;            /* for the predecessor */
    const char *qweights;       /* the lane's address in the stage */
    const char *scales, *zeros; /* the lane's addresses in the panel's first group */
    int rows;                   /* between consecutive groups */

    __device__ __forceinline__ gemv_pipeline(const ft_cuda_groupwise_args &p,
                                             const groupwise_shape &shape,
                                             const groupwise_work_range &range, char *pipelines,
                                             int n_stages, int warp, unsigned lane)
        : p(p), shape(shape), range(range), pipeline(pipelines + warp * n_stages * CONFIG::stage),
          lane(lane), n_stages(n_stages), at(0), next(warp - GEMV_WARPS), column(0), end(0),
          pdl_waited(false)
    {
    }
    /* Move on to the warp's next split. */
    __device__ __forceinline__ void next_split()
    {
        next += GEMV_WARPS;
        if (next >= range.count)
            return;
        gemv_work_item unit(shape, range, next);
        int panel = unit.panel, which = groupwise_linear_of(shape, panel);
        const ft_cuda_groupwise_linear &linear = p.linear[which];
        column = unit.split * GROUPWISE_SPLIT_K;
        end = column + GROUPWISE_SPLIT_K;
        qweights =
            linear.w + (size_t) panel * shape.panel_bytes + column * (4 * CONFIG::bits) + lane * 16;
        rows = shape.padded_n[which];
        scales = (const char *) (linear.scale + panel * GROUPWISE_PANEL_ROWS) + lane % 4 * 16;
        if constexpr (CONFIG::zeros)
            zeros = (const char *) (linear.zero + panel * GROUPWISE_PANEL_ROWS) + lane % 2 * 16;
    }
    /* Four lanes copy the scales of a group, two its zero points; scales out of bounds are 0. */
    __device__ __forceinline__ void copy(char *to) const
    {
        int with_scales = column + (int) (lane / 4) * CONFIG::columns_per_scale;
        int with_zeros = column + (int) (lane / 2) * CONFIG::columns_per_scale;
        char *own = to + groupwise_smem_write_offset(lane);
        if (column + CONFIG::columns <= shape.k)
#pragma unroll
            for (int i = 0; i < GEMV_STAGE_BYTES; i += GROUPWISE_WARP_BYTES)
                ft_cp_async_16(own + i, qweights + i, true);
        else
#pragma unroll 1
            for (int i = 0; i < GEMV_STAGE_BYTES; i += GROUPWISE_WARP_BYTES)
                ft_cp_async_16(own + i, qweights + i,
                               column * (4 * CONFIG::bits) + i < shape.panel_bytes);
        if (lane / 4 < CONFIG::scales)
            ft_cp_async_16(to + GEMV_STAGE_BYTES + lane * 16,
                           scales + (unsigned) (groupwise_group_of(shape, with_scales) * rows * 2),
                           with_scales < shape.k);
        if (CONFIG::zeros && lane / 2 < CONFIG::scales && with_zeros < shape.k)
            ft_cp_async_16(to + CONFIG::zeros_at + lane * 16,
                           zeros + (unsigned) (groupwise_group_of(shape, with_zeros) * rows), true);
    }
    /* The last copies are in flight: let dependents launch. */
    __device__ __forceinline__ void trigger_dependents() const
    {
        if (pdl_waited && column == end && next >= range.count - 1)
            ft_pdl_launch_dependents();
    }
    /* Request a stage; commits a group even if there is nothing to copy. */
    __device__ __forceinline__ void request_stage(char *into)
    {
        if (column == end)
            next_split();
        if (next < range.count) {
            copy(into);
            column += CONFIG::columns;
            qweights += GEMV_STAGE_BYTES;
            trigger_dependents();
        }
        ft_cp_async_commit();
    }
    __device__ __forceinline__ void open()
    {
#pragma unroll 1
        for (int i = 0; i < n_stages; i++)
            request_stage(pipeline + i * CONFIG::stage);
    }
    /* Wait for the oldest stage. */
    __device__ __forceinline__ const char *wait()
    {
        groupwise_wait_stage(n_stages);
        __syncwarp();
        return pipeline + at;
    }
    /* The stage has been read: refill it. */
    __device__ __forceinline__ void release()
    {
        __syncwarp();
        request_stage(pipeline + at);
        at = at + CONFIG::stage == n_stages * CONFIG::stage ? 0 : at + CONFIG::stage;
    }
};

#endif
