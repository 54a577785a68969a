/*
 * blocks_few.cuh - the weights of blocks_few.cu: what a block has of them, and their way there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_BLOCKS_FEW_CUH
#define FT_KERNELS_CUDA_BLOCKS_FEW_CUH

#include "kernels/cuda/blocks.cuh"

enum {
    TEAMS = 2, /* of warps, each with a stretch of its own */
    TEAM = 8,  /* runs of a stretch, and tokens */
    WARPS = TEAM * TEAMS,
    THREADS = 32 * WARPS,
    TOKENS = 8,
    SLOTS = 2,  /* of a warp's ring */
    BLOCKS = 4, /* of a stage */
    STAGE = BLOCKS * BLOCKS_BLOCK
};

/* A stage: codes, and the scales and zeros of 32 rows that belong to them, of each step if fine. */
template <int bits, bool fine> struct few_stage {
    static constexpr int columns = BLOCKS * 128 / bits;
    static constexpr int stages = BLOCKS_RUN / columns; /* of a run */
    static constexpr int scales = fine ? columns / BLOCKS_STEP : 1;
    static constexpr int zeros_at = STAGE + scales * 64, bytes = zeros_at + scales * 32;
};

/* ---- Ranges ----------------------------------------------------------------------------- */

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

/* ---- Weights -------------------------------------------------------------------------------- */

/* A warp's ring: every lane copies its share, and asks for stage after stage of the block's range.
 */
template <int bits, bool fine> struct few_ring {
    using stage = few_stage<bits, fine>;
    const ft_cuda_blocks &p;
    const blocks_shape &shape;
    const few_range &range;
    char *slots;
    unsigned warp, lane;
    int slot, next, piece; /* next: of the range; piece: stage of the run */

    __device__ __forceinline__ few_ring(const ft_cuda_blocks &p, const blocks_shape &shape,
                                        const few_range &range, char *rings)
        : p(p), shape(shape), range(range), warp(threadIdx.x / 32), lane(threadIdx.x % 32), slot(0),
          next((int) warp / TEAM), piece(0)
    {
        slots = rings + warp * (SLOTS * stage::bytes);
    }
    __device__ __forceinline__ void copy(char *to)
    {
        int unit = range.at(next), panel = blocks_divide(unit, shape.per_panel);
        int column = (unit - panel * shape.stretches) * BLOCKS_STRETCH +
                     (int) warp % TEAM * BLOCKS_RUN + piece * stage::columns;
        int which = blocks_part_of(shape, panel), at = column * (4 * bits);
        const ft_cuda_blocks_part &part = p.part[which];
        const char *from = part.w + (size_t) panel * shape.panel_bytes + at + lane * 16;
#pragma unroll
        for (int i = 0; i < BLOCKS; i++)
            ft_copy_16(to + i * BLOCKS_BLOCK + blocks_copied(lane), from + i * BLOCKS_BLOCK,
                       at + i * BLOCKS_BLOCK < shape.panel_bytes);
        /* lanes 0 .. 15: 64 bytes of scales each four; 16 .. 23: 32 of zeros each two */
        bool scales = lane < 16;
        int step = (int) (scales ? lane / 4 : lane / 2 % 4), place = scales ? lane % 4 : lane % 2;
        int own = column + step * BLOCKS_STEP;
        uint32_t index = (uint32_t) blocks_group_of(shape, own) * shape.padded_rows[which] +
                         panel * BLOCKS_PANEL + place * 8;
        const char *of = scales ? (const char *) (part.scale + index)
                                : (const char *) (part.zero + index + place * 8);
        if (step < stage::scales && own < shape.k && (scales || (lane < 24 && part.zero != NULL)))
            ft_copy_16(to + (scales ? STAGE + step * 64 : stage::zeros_at + step * 32) + place * 16,
                       of, true);
    }
    /* A group of copies, even if there is nothing to copy. */
    __device__ __forceinline__ void ask(int into)
    {
        if (next < range.count) {
            copy(slots + into * stage::bytes);
            piece = (piece + 1) % stage::stages;
            next += piece == 0 ? TEAMS : 0;
        }
        ft_copy_commit();
    }
    __device__ __forceinline__ void open()
    {
#pragma unroll 1
        for (int i = 0; i < SLOTS; i++)
            ask(i);
    }
    /* The stage that was asked for first, once it is here. */
    __device__ __forceinline__ const char *wait()
    {
        ft_copy_wait<SLOTS - 1>();
        __syncwarp();
        return slots + slot * stage::bytes;
    }
    /* It has been read. */
    __device__ __forceinline__ void release()
    {
        __syncwarp();
        ask(slot);
        slot = (slot + 1) % SLOTS;
    }
};

/* What a lane reads of a stage. */
template <int bits, bool fine> struct few_bits {
    using stage = few_stage<bits, fine>;
    uint4 block[BLOCKS];
    uint32_t zeros[stage::scales];
    float scale[stage::scales][4]; /* fine: of the lane's four rows; else the first is of row `lane`
                                    */

    __device__ __forceinline__ void read(const char *from, unsigned lane, bool has_zeros)
    {
#pragma unroll
        for (int i = 0; i < BLOCKS; i++)
            block[i] = *(const uint4 *) (from + i * BLOCKS_BLOCK + blocks_wanted(lane));
#pragma unroll
        for (int i = 0; i < stage::scales; i++) {
            zeros[i] = bits == 4 ? 0x08080808 : 0x80808080;
            if (has_zeros)
                zeros[i] = *(const uint32_t *) (from + stage::zeros_at + i * 32 + lane / 4 * 4);
            if constexpr (fine)
                blocks_scales(scale[i], from + STAGE + i * 64 + lane / 4 * 8);
        }
        if constexpr (!fine)
            scale[0][0] = __half2float(((const __half *) (from + STAGE))[lane]);
    }
};

#endif
