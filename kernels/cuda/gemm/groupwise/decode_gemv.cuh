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
    STEP_TOKENS = 2,
    STEP_WARPS = 16,
    STEP_THREADS = 32 * STEP_WARPS,
    STEP_SLOTS = 2,
    STEP_RUN = BLOCKS_RUN * BLOCKS_PANEL / 2,      /* bytes of quantized weights per k tile and
                                                    * panel */
    STEP_RUNS = BLOCKS_STRETCH / BLOCKS_RUN,       /* k tiles per split */
    STEP_SCALES = BLOCKS_PANEL * sizeof(uint16_t), /* bytes per k tile */
    STEP_SUMS = BLOCKS_PANEL * sizeof(float)       /* bytes per k tile or split, and token */
};

/* Output of a thread block. */
typedef enum step_end {
    STEP_PARTS, /* the linears */
    STEP_SILU,  /* the gate of two linears with SiLU ... */
    STEP_GATE   /* ... or any other activation */
} step_end;

/* Launch parameters. Shared memory holds pipelines, scales, x, sums of k tiles, sums of splits. */
typedef struct step_shape {
    int runs, stretches;        /* per panel */
    int panels;                 /* per thread block and linear */
    int of_part[FT_CUDA_PARTS]; /* panels */
    int first[FT_CUDA_PARTS];   /* first thread block of each linear; `blocks` beyond the last
                                 * one */
    int blocks;
    bool gates;  /* a thread block has the same panels of the first two linears */
    bool beside; /* two thread blocks per SM */
    bool soon;   /* launch dependents after the first k tiles, else with the last copies */
    int k;
    uint32_t per_group, per_run,
        per_stretch; /* blocks_inverse() of k tiles per group, and of the above */
    uint32_t scales_at, x_at, x_stride, sums_at, totals_at, bytes;
} step_shape;

/* Work of a thread block: panels of a linear, or the same panels of two linears. */
struct step_range {
    int part, first, panels; /* of the first linear */
    int half, runs;          /* k tiles of that linear, and in total */

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
    /* K tiles of a warp: every STEP_WARPS-th of `count`. */
    __device__ __forceinline__ static int share(int count, int warp)
    {
        return (count - warp + STEP_WARPS - 1) / STEP_WARPS;
    }
};

/* ---- Weights -------------------------------------------------------------------------------- */

/* A warp's cp.async pipeline over its k tiles. */
struct step_ring {
    const char *codes; /* the lane's address of the next k tile */
    int64_t jump;      /* from the end of the first linear's panels to those of the second */
    int until;         /* remaining k tiles of the first linear */
    char *own;         /* the lane's offset in the first stage */

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
    /* Request a k tile; commits a group even if there is nothing to copy. */
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

/* Scales of all k tiles of the thread block; they arrive with the first weights. */
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
