/*
 * groupwise_gemv.cuh - weight pipeline of groupwise_gemv.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_GEMV_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_GEMV_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"

enum {
    FEW_TOKENS = 8,
    FEW_WARPS = 8,
    FEW_BLOCKS = 8, /* 16-byte loads per lane and stage */
    FEW_STAGE = FEW_BLOCKS * BLOCKS_BLOCK,
    FEW_BESIDE = 2 /* thread blocks per SM, at most */
};

/*
 * Compile-time configuration; fine: a scale per 32 columns, else per k tile. A stage holds
 * quantized weights and the scales and zero points of 32 rows that belong to them.
 */
template <int BITS, blocks_kind KIND, bool FINE, bool ZEROS> struct few_form {
    static constexpr int bits = BITS;
    static constexpr blocks_kind kind = KIND;
    static constexpr bool fine = FINE, zeros = ZEROS;
    static constexpr int columns = FEW_BLOCKS * 128 / bits, runs = columns / BLOCKS_RUN;
    static constexpr int stages = BLOCKS_STRETCH / columns;
    static constexpr int apart = fine ? BLOCKS_STEP : BLOCKS_RUN; /* columns per scale */
    static constexpr int scales = columns / apart;
    static constexpr int zeros_at = FEW_STAGE + scales * 64;
    static constexpr int stage = zeros_at + (zeros ? scales * 32 : 0);
};

/* One split of a thread block's range. */
struct few_unit {
    int unit, panel, stretch;

    __device__ __forceinline__ few_unit(const blocks_shape &shape, const blocks_range &range, int i)
        : unit(range.at(i)), panel(blocks_divide(unit, shape.per_panel)),
          stretch(unit - panel * shape.stretches)
    {
    }
};

/* ---- Weights ------------------------------------------------------------------------------- */

/*
 * A warp's cp.async pipeline: every lane copies its part and requests stage after stage of the
 * warp's splits, every FEW_WARPS-th of the thread block's range.
 */
template <class FORM> struct few_ring {
    const ft_cuda_blocks &p;
    const blocks_shape &shape;
    const blocks_range &range;
    char *ring;
    unsigned lane;
    int slots;
    int at, next, column, end;  /* at: stage offset; next: split of the range; column of the
                                 * stage; end of the split */
    bool waited;                /* for the predecessor */
    const char *codes;          /* the lane's address in the stage */
    const char *scales, *zeros; /* the lane's addresses in the panel's first group */
    int rows;                   /* between consecutive groups */

    __device__ __forceinline__ few_ring(const ft_cuda_blocks &p, const blocks_shape &shape,
                                        const blocks_range &range, char *rings, int slots, int warp,
                                        unsigned lane)
        : p(p), shape(shape), range(range), ring(rings + warp * slots * FORM::stage), lane(lane),
          slots(slots), at(0), next(warp - FEW_WARPS), column(0), end(0), waited(false)
    {
    }
    /* Move on to the warp's next split. */
    __device__ __forceinline__ void go_on()
    {
        next += FEW_WARPS;
        if (next >= range.count)
            return;
        few_unit unit(shape, range, next);
        int panel = unit.panel, which = blocks_part_of(shape, panel);
        const ft_cuda_blocks_part &part = p.part[which];
        column = unit.stretch * BLOCKS_STRETCH;
        end = column + BLOCKS_STRETCH;
        codes = part.w + (size_t) panel * shape.panel_bytes + column * (4 * FORM::bits) + lane * 16;
        rows = shape.padded_rows[which];
        scales = (const char *) (part.scale + panel * BLOCKS_PANEL) + lane % 4 * 16;
        if constexpr (FORM::zeros)
            zeros = (const char *) (part.zero + panel * BLOCKS_PANEL) + lane % 2 * 16;
    }
    /* Four lanes copy the scales of a group, two its zero points. */
    __device__ __forceinline__ void copy(char *to) const
    {
        int with_scales = column + (int) (lane / 4) * FORM::apart;
        int with_zeros = column + (int) (lane / 2) * FORM::apart;
        char *own = to + blocks_copied(lane);
        if (column + FORM::columns <= shape.k)
#pragma unroll
            for (int i = 0; i < FEW_STAGE; i += BLOCKS_BLOCK)
                ft_copy_16(own + i, codes + i, true);
        else
#pragma unroll 1
            for (int i = 0; i < FEW_STAGE; i += BLOCKS_BLOCK)
                ft_copy_16(own + i, codes + i, column * (4 * FORM::bits) + i < shape.panel_bytes);
        if (lane / 4 < FORM::scales && with_scales < shape.k)
            ft_copy_16(to + FEW_STAGE + lane * 16,
                       scales + (unsigned) (blocks_group_of(shape, with_scales) * rows * 2), true);
        if (FORM::zeros && lane / 2 < FORM::scales && with_zeros < shape.k)
            ft_copy_16(to + FORM::zeros_at + lane * 16,
                       zeros + (unsigned) (blocks_group_of(shape, with_zeros) * rows), true);
    }
    /* The last copies are in flight: let dependents launch. */
    __device__ __forceinline__ void tell() const
    {
        if (waited && column == end && next >= range.count - 1)
            ft_let_successor_begin();
    }
    /* Request a stage; commits a group even if there is nothing to copy. */
    __device__ __forceinline__ void ask(char *into)
    {
        if (column == end)
            go_on();
        if (next < range.count) {
            copy(into);
            column += FORM::columns;
            codes += FEW_STAGE;
            tell();
        }
        ft_copy_commit();
    }
    __device__ __forceinline__ void open()
    {
#pragma unroll 1
        for (int i = 0; i < slots; i++)
            ask(ring + i * FORM::stage);
    }
    /* Wait for the oldest stage. */
    __device__ __forceinline__ const char *wait()
    {
        blocks_wait_slots(slots);
        __syncwarp();
        return ring + at;
    }
    /* The stage has been read: refill it. */
    __device__ __forceinline__ void release()
    {
        __syncwarp();
        ask(ring + at);
        at = at + FORM::stage == slots * FORM::stage ? 0 : at + FORM::stage;
    }
};

#endif
