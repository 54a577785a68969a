/*
 * blocks_codes_few.cuh - the operands of blocks_codes_few.cu: what tokens become, and how runs of
 * both come to shared memory.
 *
 * A run is 128 columns of a panel.  What tokens have of it, codes, scales and sums of codes, lies
 * together in memory as a record, in the order in which shared memory wants it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_BLOCKS_CODES_FEW_CUH
#define FT_KERNELS_CUDA_BLOCKS_CODES_FEW_CUH

#include "kernels/cuda/blocks_codes.cuh"

enum {
    CODES_WARPS = 8,
    CODES_THREADS = 32 * CODES_WARPS,
    CODES_STEPS = BLOCKS_RUN / BLOCKS_STEP,
    CODES_SUMS_ROW = BLOCKS_PANEL + 4 /* floats, so that the lanes of a store meet in no bank */
};

/* A block has 8 * EIGHTS tokens.  A stage has codes of weights, a record, scales and zeros. */
template <int BITS, int EIGHTS> struct codes_few_form {
    static constexpr int bits = BITS, eights = EIGHTS, tokens = 8 * EIGHTS;
    static constexpr int weights = BLOCKS_RUN * BLOCKS_PANEL * BITS / 8;
    static constexpr int x_scale = tokens * BLOCKS_RUN;           /* in a record */
    static constexpr int sum_scale = tokens * CODES_SUMS_ROW * 4; /* in a group's sums: */
    static constexpr int sum_x_scale = sum_scale + BLOCKS_PANEL * 2;
    static constexpr int sum = sum_x_scale + tokens * 4;
};

/* Of a launch; offsets and sizes in bytes. */
typedef struct codes_few_shape {
    blocks_shape all;
    char *records;            /* [tiles of tokens, runs] */
    int runs, groups, of_run; /* of_run: groups of a run */
    int tokens, panels;       /* of a tile; of a block */
    int phase;                /* runs between additions */
    int slots;                /* of a ring */
    bool has_zeros;
    bool alone; /* a block has all of a multiprocessor */
    int record, scales_at, zeros_at, stage;
    int sums_at, sums; /* two times the sums of a phase */
} codes_few_shape;

/* ---- From numbers to codes ------------------------------------------------------------------ */

/* Four neighbouring numbers of a row, zeros beyond its end. */
__device__ __forceinline__ void codes_fetch(float (&value)[4], const ft_cuda_blocks &p, size_t row,
                                            int column)
{
    if (p.k % 4 == 0 && (uintptr_t) p.x % 16 == 0) {
        ft_bits<4> bits = {};
        if (column < (int) p.k)
            ft_fetch<4>(bits, p.x, p.x_dtype, row * p.k + column);
        ft_unpack<4>(value, bits, p.x_dtype);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        value[i] = 0.0f;
        if (column + i < (int) p.k)
            ft_load<1>(value + i, p.x, p.x_dtype, row * p.k + column + i);
    }
}

/* Of the lanes that have a group. */
__device__ __forceinline__ float codes_amax(const float (&value)[4], int group)
{
    float amax = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++)
        amax = fmaxf(amax, fabsf(value[i]));
    for (int apart = group / 8; apart > 0; apart /= 2)
        amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, apart));
    return amax;
}

/* A warp makes a token's codes of a run.  grid = (runs, cover of m), block = (32, tokens) */
template <int bits>
static __global__ void codes_record_kernel(const __grid_constant__ ft_cuda_blocks p,
                                           const __grid_constant__ codes_few_shape shape)
{
    int run = (int) blockIdx.x, lane = (int) threadIdx.x, group = shape.all.group;
    int row = (int) (blockIdx.y * blockDim.y + threadIdx.y), token = row % shape.tokens;
    float value[4];
    int32_t sum = 0;
    /*
     * The product begins as multiprocessors become free, and fills its rings; it reads nothing but
     * weights before it has waited in its turn.
     */
    if (shape.alone)
        ft_let_successor_begin();
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (row >= (int) p.m)
        return;
    char *record =
        shape.records + ((size_t) (row / shape.tokens) * shape.runs + run) * shape.record;
    codes_fetch(value, p, (size_t) row, run * BLOCKS_RUN + lane * 4);
    float scale = ft_scale_from_amax(codes_amax(value, group)), inverse = ft_inverse_scale(scale);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int8_t code = ft_quantize(value[i], inverse);
        int at = lane / 8 * BLOCKS_STEP + codes_place<bits>(lane % 8 * 4 + i);
        record[token * BLOCKS_RUN + (at / 16 ^ token % 8) * 16 + at % 16] = (char) code;
        sum += code;
    }
    for (int apart = group / 8; apart > 0; apart /= 2)
        sum += __shfl_xor_sync(~0u, sum, apart);
    if (lane % (group / 4) != 0)
        return;
    char *scales = record + shape.tokens * BLOCKS_RUN;
    int at = lane / (group / 4) * shape.tokens + token;
    ((float *) scales)[at] = scale;
    ((int32_t *) scales)[shape.of_run * shape.tokens + at] = sum;
}

/* ---- Runs ----------------------------------------------------------------------------------- */

/*
 * A warp's ring: every lane copies its share of the warp's runs, one of every CODES_WARPS of a
 * panel.  Weights come first, for tokens are made by the predecessor.
 */
template <class FORM> struct codes_few_ring {
    const ft_cuda_blocks &p;
    const codes_few_shape &shape;
    char *ring;
    int warp, lane, at;   /* at: of the slot to read */
    int panel, last, run; /* of the weights to ask for next; last: the one behind the block's */
    int tokens, x_run;    /* panels whose tokens are still to be asked for, and the run of these */
    const char *codes, *scales, *zeros; /* the lane's, of the run */
    const char *records;                /* the lane's, of the first run */
    int apart;                          /* scales from a run to the warp's next */

    __device__ __forceinline__ codes_few_ring(const ft_cuda_blocks &p, const codes_few_shape &shape,
                                              char *shared)
        : p(p), shape(shape), warp((int) threadIdx.x / 32), lane((int) threadIdx.x % 32), at(0),
          panel((int) blockIdx.x * shape.panels), last(panel + shape.panels), run(warp), x_run(warp)
    {
        ring = shared + warp * shape.slots * shape.stage;
        records = shape.records + (size_t) blockIdx.y * shape.runs * shape.record + lane * 16;
        last = last < shape.all.panels ? last : shape.all.panels;
        tokens = warp < shape.runs ? last - panel : 0;
        panel = warp < shape.runs ? panel : last;
        find();
    }
    __device__ __forceinline__ bool has_weights() const
    {
        return panel < last;
    }
    /* The warp's first run of the panel.  Four lanes copy scales that belong together, two copy
     * zeros. */
    __device__ __forceinline__ void find()
    {
        if (!has_weights())
            return;
        int own = panel, which = blocks_part_of(shape.all, own);
        const ft_cuda_blocks_part &part = p.part[which];
        int rows = shape.all.padded_rows[which], group = run * shape.of_run;
        codes = part.w + (size_t) own * shape.all.panel_bytes + run * FORM::weights + lane * 16;
        scales = (const char *) part.scale +
                 ((size_t) (group + lane / 4) * rows + own * BLOCKS_PANEL + lane % 4 * 8) * 2;
        zeros = (const char *) part.zero + (size_t) (group + lane / 2) * rows + own * BLOCKS_PANEL +
                lane % 2 * 16;
        apart = CODES_WARPS * shape.of_run * rows;
    }
    __device__ __forceinline__ void ask_weights(char *to)
    {
        if (!has_weights())
            return;
        char *own = to + blocks_copied((unsigned) lane);
        int groups = shape.groups - run * shape.of_run;
        groups = groups < shape.of_run ? groups : shape.of_run;
        if (run + 1 < shape.runs)
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
        if (run < shape.runs)
            return;
        run = warp;
        panel++;
        find();
    }
    /* A group of copies, even if there is nothing to copy. */
    __device__ __forceinline__ void ask_tokens(char *to)
    {
        if (tokens > 0) {
            const char *record = records + (size_t) (x_run * shape.record);
            char *own = to + FORM::weights + lane * 16;
#pragma unroll
            for (int i = 0; i < FORM::x_scale; i += BLOCKS_BLOCK)
                ft_copy_16(own + i, record + i, true);
            for (int i = FORM::x_scale; i + lane * 16 < shape.record; i += BLOCKS_BLOCK)
                ft_copy_16(own + i, record + i, true);
            x_run += CODES_WARPS;
            if (x_run >= shape.runs) {
                x_run = warp;
                tokens--;
            }
        }
        ft_copy_commit();
    }
    __device__ __forceinline__ void open_weights()
    {
#pragma unroll 1
        for (int i = 0; i < shape.slots; i++)
            ask_weights(ring + i * shape.stage);
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
    /* It has been read. */
    __device__ __forceinline__ void release()
    {
        __syncwarp();
        ask_weights(ring + at);
        ask_tokens(ring + at);
        at = at + shape.stage == shape.slots * shape.stage ? 0 : at + shape.stage;
    }
};

#endif
