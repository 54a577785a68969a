/*
 * decode_gemv.cuh - the weights of decode_gemv.cu: what a block has of them, and their way there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"
#include "kernels/cuda/gemm/groupwise/decode_gemv.h"

enum {
    STEP_TOKENS = 2,
    STEP_WARPS = 16,
    STEP_THREADS = 32 * STEP_WARPS,
    STEP_SLOTS = 2,
    STEP_RUN = BLOCKS_RUN * BLOCKS_PANEL / 2,      /* bytes of codes of a run and a panel */
    STEP_RUNS = BLOCKS_STRETCH / BLOCKS_RUN,       /* of a stretch */
    STEP_SCALES = BLOCKS_PANEL * sizeof(uint16_t), /* bytes of a run */
    STEP_SUMS = BLOCKS_PANEL * sizeof(float)       /* bytes of a run or stretch, and of a token */
};

/* What becomes of the sums of a block. */
typedef enum step_end {
    STEP_PARTS, /* rows of the parts */
    STEP_SILU,  /* rows of the gate of two parts, by silu as most have it ... */
    STEP_GATE   /* ... and by anything */
} step_end;

/* Of a launch.  In shared memory: rings, scales, x, sums of runs, sums of stretches. */
typedef struct step_shape {
    int runs, stretches;        /* of a panel */
    int panels;                 /* of a block and a part */
    int of_part[FT_CUDA_PARTS]; /* panels */
    int first[FT_CUDA_PARTS];   /* block of each part, beyond the last one: blocks */
    int blocks;
    bool gates;  /* a block has the same panels of the first two parts */
    bool beside; /* two blocks on a multiprocessor */
    bool soon;   /* the next kernel may begin after the first runs, else with the last copies */
    int k;
    uint32_t per_group, per_run,
        per_stretch; /* blocks_inverse() of runs of a group, of the above */
    uint32_t scales_at, x_at, x_stride, sums_at, totals_at, bytes;
} step_shape;

/* What a block has: panels of a part, or the same ones of two parts one after the other. */
struct step_range {
    int part, first, panels; /* of the part that it begins with */
    int half, runs;          /* runs of that part, and of all */

    __device__ __forceinline__ step_range(const step_shape &s)
    {
        part = 0;
#pragma unroll
        for (int i = 1; i < FT_CUDA_PARTS; i++)
            part = !s.gates && (int) blockIdx.x >= s.first[i] ? i : part;
        first = ((int) blockIdx.x - s.first[part]) * s.panels;
        panels = min(s.panels, s.of_part[part] - first);
        half = panels * s.runs;
        runs = s.gates ? 2 * half : half;
    }
    /* The runs of a warp, which are every STEP_WARPS-th of `count`. */
    __device__ __forceinline__ static int share(int count, int warp)
    {
        return (count - warp + STEP_WARPS - 1) / STEP_WARPS;
    }
};

/* ---- Codes ---------------------------------------------------------------------------------- */

/* A warp's ring: its lanes ask for one of its runs after the other. */
struct step_ring {
    const char *codes; /* the lane's, of the next run */
    int64_t jump;      /* from behind the first part's panels to those of the second */
    int until;         /* runs that are left of the first part */
    char *own;         /* the lane's place in the first slot */

    __device__ __forceinline__ step_ring(const ft_cuda_blocks &p, const step_shape &s,
                                         const step_range &range, char *slots, int warp)
    {
        unsigned lane = threadIdx.x % 32;
        const ft_cuda_blocks_part &part = p.part[range.part];
        codes = part.w + ((size_t) range.first * s.runs + (unsigned) warp) * STEP_RUN +
                lane * sizeof(uint4);
        jump = s.gates ? p.part[1].w - part.w - (int64_t) range.half * STEP_RUN : 0;
        until = step_range::share(range.half, warp);
        own = slots + blocks_copied(lane);
    }
    /* A group of copies, even if there is nothing to copy. */
    __device__ __forceinline__ void ask(int slot, bool any)
    {
        if (any)
#pragma unroll
            for (int i = 0; i < STEP_RUN; i += BLOCKS_BLOCK)
                ft_copy_16(own + slot * STEP_RUN + i, codes + i, true);
        codes += STEP_WARPS * STEP_RUN;
        if (--until == 0)
            codes += jump;
        ft_copy_commit();
    }
};

/* ---- Scales --------------------------------------------------------------------------------- */

/* Those of all runs of the block; they arrive with the first codes. */
__device__ __forceinline__ void step_ask_for_scales(char *scales, const ft_cuda_blocks &p,
                                                    const step_shape &s, const step_range &range)
{
    constexpr int chunks = STEP_SCALES / sizeof(uint4);
#pragma unroll 1
    for (int i = (int) threadIdx.x; i < range.runs * chunks; i += STEP_THREADS) {
        int panel = blocks_divide(i / chunks, s.per_run), run = i / chunks - panel * s.runs;
        bool second = panel >= range.panels;
        int part = range.part + second;
        size_t row = (size_t) (range.first + panel - (second ? range.panels : 0)) * BLOCKS_PANEL;
        size_t group = (size_t) blocks_divide(run, s.per_group) * s.of_part[part] * BLOCKS_PANEL;
        ft_copy_16(scales + i * sizeof(uint4),
                   (const char *) (p.part[part].scale + group + row) + i % chunks * sizeof(uint4),
                   true);
    }
}

#endif
