/*
 * blocks_few.cuh - the weights of blocks_few.cu: what a block has of them, and their way there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_BLOCKS_FEW_CUH
#define FT_KERNELS_CUDA_BLOCKS_FEW_CUH

#include "kernels/cuda/blocks.cuh"

enum {
    FEW_TOKENS = 8,
    FEW_TEAM = 8, /* warps that share a stretch */
    FEW_TEAMS = 2,
    FEW_BLOCKS = 4, /* of a stage */
    FEW_STAGE = FEW_BLOCKS * BLOCKS_BLOCK,
    FEW_SLOTS = 2 /* of a warp's ring */
};

/* A stage: codes, and the scales and zeros of 32 rows that belong to them, of each step if fine. */
template <int bits, bool fine> struct few_stage {
    static constexpr int columns = FEW_BLOCKS * 128 / bits;
    static constexpr int stages = BLOCKS_RUN / columns; /* of a run */
    static constexpr int scales = fine ? columns / BLOCKS_STEP : 1;
    static constexpr int zeros_at = FEW_STAGE + scales * 64, bytes = zeros_at + scales * 32;
};

/* ---- Ranges --------------------------------------------------------------------------------- */

/* What a block computes, of all stretches of all panels: the end of its range first. */
struct few_range {
    int begin, count, head, tail; /* head, tail: stretches of panels that it shares */

    __device__ __forceinline__ few_range(const blocks_shape &shape)
    {
        long long all = (long long) shape.panels * shape.stretches;
        begin = (int) (all * blockIdx.x / gridDim.x);
        count = (int) (all * (blockIdx.x + 1) / gridDim.x) - begin;
        head = (shape.stretches - begin % shape.stretches) % shape.stretches;
        tail = (begin + count) % shape.stretches;
    }
    __device__ __forceinline__ int at(int i) const
    {
        return begin + (i < tail           ? count - tail + i
                        : i < count - head ? head + i - tail
                                           : i - (count - head));
    }
};

/* One stretch of it. */
struct few_unit {
    int unit, panel, stretch;

    __device__ __forceinline__ few_unit(const blocks_shape &shape, const few_range &range, int i)
        : unit(range.at(i)), panel(blocks_divide(unit, shape.per_panel)),
          stretch(unit - panel * shape.stretches)
    {
    }
};

/* ---- Weights -------------------------------------------------------------------------------- */

/*
 * A warp's ring: every lane copies its share, and asks for stage after stage of the block's range.
 * What it asks for next is one addition further, but where a panel ends.
 */
template <int bits, bool fine> struct few_ring {
    using stage = few_stage<bits, fine>;
    const ft_cuda_blocks &p;
    const blocks_shape &shape;
    const few_range &range;
    char *ring;
    int warp, lane, slot, piece; /* piece: stage of the run */
    int next, until, first;      /* of the range; until where the panel goes on, since when */
    const char *codes, *beside;  /* the lane's: of the panel; scales or zeros of its first group */
    int rows;                    /* bytes from one group to the next */

    __device__ __forceinline__ few_ring(const ft_cuda_blocks &p, const blocks_shape &shape,
                                        const few_range &range, char *rings, int warp, int lane)
        : p(p), shape(shape), range(range), ring(rings + warp * (FEW_SLOTS * stage::bytes)),
          warp(warp), lane(lane), slot(0), piece(0), next(warp / FEW_TEAM), until(0)
    {
    }
    /* Lanes 0 .. 15 copy scales, four for each step; 16 .. 23 zeros, two for each. */
    __device__ __forceinline__ bool has_scales() const
    {
        return lane < 16;
    }
    __device__ __forceinline__ int step() const
    {
        return has_scales() ? lane / 4 : lane / 2 % 4;
    }
    __device__ __forceinline__ int place() const
    {
        return has_scales() ? lane % 4 : lane % 2;
    }
    __device__ __forceinline__ void settle()
    {
        few_unit unit(shape, range, next);
        int panel = unit.panel, which = blocks_part_of(shape, panel);
        const ft_cuda_blocks_part &part = p.part[which];
        first = next - unit.stretch;
        until = next < range.tail ? range.tail : first + shape.stretches;
        codes = part.w + (size_t) panel * shape.panel_bytes + lane * 16;
        rows = shape.padded_rows[which] * (has_scales() ? 2 : 1);
        beside = has_scales() ? (const char *) (part.scale + panel * BLOCKS_PANEL)
                              : (const char *) (part.zero + panel * BLOCKS_PANEL);
        beside += place() * 16;
    }
    __device__ __forceinline__ void copy(char *to) const
    {
        int column =
            (next - first) * BLOCKS_STRETCH + warp % FEW_TEAM * BLOCKS_RUN + piece * stage::columns;
        int at = column * (4 * bits), own = column + step() * BLOCKS_STEP;
#pragma unroll
        for (int i = 0; i < FEW_BLOCKS; i++)
            ft_copy_16(to + i * BLOCKS_BLOCK + blocks_copied(lane), codes + at + i * BLOCKS_BLOCK,
                       at + i * BLOCKS_BLOCK < shape.panel_bytes);
        if (step() < stage::scales && own < shape.k &&
            (has_scales() || (lane < 24 && p.part[0].zero != NULL)))
            ft_copy_16(
                to + (has_scales() ? FEW_STAGE + step() * 64 : stage::zeros_at + step() * 32) +
                    place() * 16,
                beside + (size_t) blocks_group_of(shape, own) * rows, true);
    }
    /* A group of copies, even if there is nothing to copy. */
    __device__ __forceinline__ void ask(int into)
    {
        if (next < range.count) {
            if (next >= until)
                settle();
            copy(ring + into * stage::bytes);
            piece = (piece + 1) % stage::stages;
            next += piece == 0 ? FEW_TEAMS : 0;
        }
        ft_copy_commit();
    }
    __device__ __forceinline__ void open()
    {
#pragma unroll 1
        for (int i = 0; i < FEW_SLOTS; i++)
            ask(i);
    }
    /* The stage that was asked for first, once it is here. */
    __device__ __forceinline__ const char *wait()
    {
        ft_copy_wait<FEW_SLOTS - 1>();
        __syncwarp();
        return ring + slot * stage::bytes;
    }
    /* It has been read. */
    __device__ __forceinline__ void release()
    {
        __syncwarp();
        ask(slot);
        slot = (slot + 1) % FEW_SLOTS;
    }
};

/* What a lane reads of a stage. */
template <int bits, bool fine> struct few_bits {
    using stage = few_stage<bits, fine>;
    uint4 block[FEW_BLOCKS];
    uint32_t zeros[stage::scales];
    float scale[stage::scales][4]; /* fine: of the lane's four rows; else the first is of row `lane`
                                    */

    __device__ __forceinline__ void read(const char *from, int lane, bool has_zeros)
    {
#pragma unroll
        for (int i = 0; i < FEW_BLOCKS; i++)
            block[i] = *(const uint4 *) (from + i * BLOCKS_BLOCK + blocks_wanted(lane));
#pragma unroll
        for (int i = 0; i < stage::scales; i++) {
            if (has_zeros)
                zeros[i] = *(const uint32_t *) (from + stage::zeros_at + i * 32 + lane / 4 * 4);
            if constexpr (fine)
                blocks_scales(scale[i], from + FEW_STAGE + i * 64 + lane / 4 * 8);
        }
        if constexpr (!fine)
            scale[0][0] = __half2float(((const __half *) (from + FEW_STAGE))[lane]);
    }
};

#endif
