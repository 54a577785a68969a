/*
 * groupwise_int8_small_m.cuh - operand pipeline of groupwise_int8_small_m.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_INT8_SMALL_M_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_INT8_SMALL_M_CUH

#include "kernels/cuda/gemm/groupwise/groupwise_int8_records.cuh"

enum {
    CODES_WARPS = 8,
    CODES_THREADS = 32 * CODES_WARPS,
    CODES_STEPS = BLOCKS_RUN / BLOCKS_STEP,
    CODES_SUMS_ROW = BLOCKS_PANEL + 4 /* floats, padded to avoid bank conflicts */
};

/*
 * A thread block has 8 * EIGHTS tokens. A stage has quantized weights, a record, scales and zero
 * points.
 */
template <int BITS, int EIGHTS> struct codes_few_form {
    static constexpr int bits = BITS, eights = EIGHTS, tokens = 8 * EIGHTS;
    static constexpr int weights = BLOCKS_RUN * BLOCKS_PANEL * BITS / 8;
    static constexpr int x_scale = tokens * BLOCKS_RUN;           /* offset in a record */
    static constexpr int sum_scale = tokens * CODES_SUMS_ROW * 4; /* offsets in a group's sums: */
    static constexpr int sum_x_scale = sum_scale + BLOCKS_PANEL * 2;
    static constexpr int sum = sum_x_scale + tokens * 4;
};

/* Launch parameters; offsets and sizes in bytes. */
typedef struct codes_few_shape {
    blocks_shape all;
    codes_records x;
    int groups, panels; /* panels: per thread block */
    int phase;          /* k tiles between reductions */
    int slots;          /* pipeline stages */
    bool has_zeros;
    int scales_at, zeros_at, stage;
    int sums_at, sums; /* size of one of two buffers for the sums of a phase */
} codes_few_shape;

/* ---- K tiles -------------------------------------------------------------------------------- */

/*
 * A warp's cp.async pipeline: every lane copies its part of the warp's k tiles, every
 * CODES_WARPS-th of a panel. Weights come first, because tokens are computed by the predecessor.
 */
template <class FORM> struct codes_few_ring {
    const ft_cuda_blocks &p;
    const codes_few_shape &shape;
    char *ring, *x;       /* x: resident records, or NULL: each is copied with its k tile */
    int warp, lane, at;   /* at: offset of the stage to read */
    int panel, last, run; /* next weights to request; end of the block's panels */
    int tokens, x_run;    /* panels whose tokens are still to be requested, and their next k tile */
    int here;             /* tokens from the block's first */
    const char *codes, *scales, *zeros; /* the lane's addresses in the k tile */
    const char *records;                /* the lane's address in the first k tile */
    int apart;                          /* scales between consecutive k tiles of the warp */

    __device__ __forceinline__ codes_few_ring(const ft_cuda_blocks &p, const codes_few_shape &shape,
                                              char *shared, char *x)
        : p(p), shape(shape), x(x), warp((int) threadIdx.x / 32), lane((int) threadIdx.x % 32),
          at(0), panel((int) blockIdx.x * shape.panels), last(panel + shape.panels), run(warp),
          x_run(warp)
    {
        ring = shared + warp * shape.slots * shape.stage;
        records = shape.x.at + (size_t) blockIdx.y * shape.x.runs * shape.x.bytes + lane * 16;
        last = last < shape.all.panels ? last : shape.all.panels;
        tokens = warp < shape.x.runs ? (x != NULL ? 1 : last - panel) : 0;
        here = (int) p.m - (int) blockIdx.y * FORM::tokens;
        panel = warp < shape.x.runs ? panel : last;
        find();
    }
    __device__ __forceinline__ bool has_weights() const
    {
        return panel < last;
    }
    /*
     * The warp's first k tile of the panel. Four lanes copy the scales of a group, two its zero
     * points.
     */
    __device__ __forceinline__ void find()
    {
        if (!has_weights())
            return;
        int own = panel, which = blocks_part_of(shape.all, own);
        const ft_cuda_blocks_part &part = p.part[which];
        int rows = shape.all.padded_rows[which], group = run * shape.x.of_run;
        codes = part.w + (size_t) own * shape.all.panel_bytes + run * FORM::weights + lane * 16;
        scales = (const char *) part.scale +
                 ((size_t) (group + lane / 4) * rows + own * BLOCKS_PANEL + lane % 4 * 8) * 2;
        zeros = (const char *) part.zero + (size_t) (group + lane / 2) * rows + own * BLOCKS_PANEL +
                lane % 2 * 16;
        apart = CODES_WARPS * shape.x.of_run * rows;
    }
    __device__ __forceinline__ void ask_weights(char *to)
    {
        if (!has_weights())
            return;
        char *own = to + blocks_copied((unsigned) lane);
        int groups = shape.groups - run * shape.x.of_run;
        groups = groups < shape.x.of_run ? groups : shape.x.of_run;
        if (run + 1 < shape.x.runs)
#pragma unroll
            for (int i = 0; i < FORM::weights; i += BLOCKS_BLOCK)
                ft_copy_16(own + i, codes + i, true);
        else
#pragma unroll
            for (int i = 0; i < FORM::weights; i += BLOCKS_BLOCK)
                ft_copy_16(own + i, codes + i, run * FORM::weights + i < shape.all.panel_bytes);
        if (lane < 4 * groups)
            ft_copy_16(to + shape.scales_at + lane * 16, scales, true);
        if (shape.has_zeros && lane < 2 * groups)
            ft_copy_16(to + shape.zeros_at + lane * 16, zeros, true);
        run += CODES_WARPS;
        codes += CODES_WARPS * FORM::weights;
        scales += (size_t) apart * 2;
        zeros += apart;
        if (run < shape.x.runs)
            return;
        run = warp;
        panel++;
        find();
    }
    /* Request the tokens that are in bounds; commits a group even if there is nothing to copy. */
    __device__ __forceinline__ void ask_tokens(char *to)
    {
        if (tokens > 0) {
            const char *record = records + (size_t) (x_run * shape.x.bytes);
            char *own = (x != NULL ? x + x_run * shape.x.bytes : to + FORM::weights) + lane * 16;
#pragma unroll
            for (int i = 0; i < FORM::x_scale; i += BLOCKS_BLOCK)
                if (i / BLOCKS_RUN + lane / 8 < here)
                    ft_copy_16(own + i, record + i, true);
            for (int i = FORM::x_scale; i + lane * 16 < shape.x.bytes; i += BLOCKS_BLOCK)
                ft_copy_16(own + i, record + i, true);
            x_run += CODES_WARPS;
            if (x_run >= shape.x.runs) {
                x_run = warp;
                tokens--;
            }
        }
        ft_copy_commit();
    }
    __device__ __forceinline__ void open_weights()
    {
#pragma unroll 1
        for (int i = 0; i < shape.slots; i++) {
            ask_weights(ring + i * shape.stage);
            ft_copy_commit();
        }
    }
    __device__ __forceinline__ void open_tokens()
    {
#pragma unroll 1
        for (int i = 0; i < shape.slots; i++)
            ask_tokens(ring + i * shape.stage);
    }
    __device__ __forceinline__ const char *wait()
    {
        blocks_wait_slots(shape.slots);
        __syncwarp();
        return ring + at;
    }
    /* The stage has been read: refill it. */
    __device__ __forceinline__ void release()
    {
        __syncwarp();
        ask_weights(ring + at);
        ask_tokens(ring + at);
        at = at + shape.stage == shape.slots * shape.stage ? 0 : at + shape.stage;
    }
};

#endif
