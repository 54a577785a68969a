/*
 * groupwise_gemv_multiply.cuh - mainloop of groupwise_gemv.cu: x in shared memory, and one split of
 * the weights times x.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_GEMV_MULTIPLY_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_GEMV_MULTIPLY_CUH

#include "kernels/cuda/gemm/groupwise/groupwise_gemv.cuh"

enum {
    FEW_THREADS = 32 * FEW_WARPS,
    FEW_SUMS_ROW = BLOCKS_PANEL + 4 /* floats, padded to avoid bank conflicts */
};

/* Launch parameters. Shared memory holds pipelines, x, partial sums of a phase, totals. */
typedef struct few_shape {
    blocks_shape all;
    int share, phase;            /* splits per thread block, and between reductions */
    int slots;                   /* stages of a pipeline */
    bool alone;                  /* one thread block per SM, using all of its shared memory */
    bool beside;                 /* two thread blocks of this kernel per SM */
    bool simple;                 /* whole panels and one phase */
    uint32_t x_stride;           /* bytes per row of x in shared memory */
    uint32_t x_bytes;            /* bytes of all rows, per term */
    uint32_t x_at, totals_at;    /* x follows the pipelines */
    uint32_t per_row, per_token; /* blocks_inverse() of 16-byte chunks per row of x, and of rows */
} few_shape;

/* ---- x -------------------------------------------------------------------------------------- */

/* Eight neighbours; zeros beyond the end of the row. */
template <blocks_kind kind>
__device__ __forceinline__ void few_fetch_eight(uint4 (&term)[blocks_terms<kind>], void *x,
                                                size_t row, int k, int column)
{
    constexpr ft_dtype dtype = kind == BLOCKS_F16 ? FT_F16 : kind == BLOCKS_BF16 ? FT_BF16 : FT_F32;
    uint32_t word[4][blocks_terms<kind>];
    ft_bits<8> bits = {};
    bool whole = k % 8 == 0 && (uintptr_t) x % 16 == 0;
    if (whole && column < k) {
        ft_fetch_as<dtype, 8>(bits, x, row * k + column);
    } else if (!whole) {
        for (int i = 0; i < 8 && column + i < k; i++) {
            ft_bits<1> one;
            ft_fetch_as<dtype, 1>(one, x, row * k + column + i);
            if constexpr (dtype == FT_F32)
                bits.word[i] = one.word[0];
            else
                bits.word[i / 2] |= one.word[0] << 16 * (i % 2);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (kind == BLOCKS_F32)
            blocks_split(word[i], __uint_as_float(bits.word[2 * i]),
                         __uint_as_float(bits.word[2 * i + 1]));
        else
            word[i][0] = bits.word[i];
    }
#pragma unroll
    for (int i = 0; i < blocks_terms<kind>; i++)
        term[i] = make_uint4(word[0][i], word[1][i], word[2][i], word[3][i]);
}

/*
 * Copy all of x to shared memory, zero-padded to whole k tiles. A thread has several loads in
 * flight; they are not cp.async, because those would wait for all earlier copies of the pipelines.
 */
template <blocks_kind kind>
__device__ __forceinline__ void few_fetch_tokens(char *x, const ft_cuda_blocks &p,
                                                 const few_shape &shape)
{
    constexpr int batch = 4, terms = blocks_terms<kind>;
    int k = shape.all.k, eights = (k + BLOCKS_RUN - 1) / BLOCKS_RUN * (BLOCKS_RUN / 8);
    int all = eights * (int) p.m;
    bool usual = kind != BLOCKS_F32 && k % BLOCKS_RUN == 0 && (uintptr_t) p.x % 16 == 0;
    if (usual) {
        for (int first = (int) threadIdx.x; first < all; first += batch * FEW_THREADS) {
            uint4 chunk[batch];
#pragma unroll
            for (int i = 0; i < batch; i++)
                if (first + i * FEW_THREADS < all)
                    chunk[i] = ((uint4 *) p.x)[first + i * FEW_THREADS];
#pragma unroll
            for (int i = 0; i < batch; i++) {
                int at = first + i * FEW_THREADS, row = blocks_divide(at, shape.per_row);
                if (at < all)
                    *(uint4 *) (x + at * 16 + row * (shape.x_stride - eights * 16)) = chunk[i];
            }
        }
        return;
    }
#pragma unroll 1
    for (int at = (int) threadIdx.x; at < all; at += FEW_THREADS) {
        int row = blocks_divide(at, shape.per_row), chunk = at - row * eights;
        uint4 term[terms];
        few_fetch_eight<kind>(term, p.x, (size_t) row, k, chunk * 8);
#pragma unroll
        for (int i = 0; i < terms; i++)
            *(uint4 *) (x + row * shape.x_stride + chunk * 16 + i * shape.x_bytes) = term[i];
    }
}

/* ---- One split ------------------------------------------------------------------------------ */

/* Four tiles of 8 columns of x, for each term. */
template <blocks_kind kind>
__device__ __forceinline__ void few_load_tokens(uint32_t (&x)[blocks_terms<kind>][4],
                                                const char *at, uint32_t x_bytes)
{
#pragma unroll
    for (int term = 0; term < blocks_terms<kind>; term++)
        ft_load_tiles(x[term], at + term * x_bytes);
}

/*
 * Sums of a stage's k tiles, unscaled unless every 32 columns have a scale. K tiles are interleaved
 * to hide instruction latency.
 */
template <class FORM>
__device__ __forceinline__ void
few_multiply_stage(blocks_sums (&run)[FORM::runs], const uint4 (&block)[FEW_BLOCKS],
                   const char *stage, const char *x, uint32_t x_bytes, int left, unsigned lane)
{
    constexpr int blocks = FORM::bits / 4, steps = BLOCKS_RUN / BLOCKS_STEP; /* loads, steps */
    blocks_unpacker<FORM::bits, FORM::kind> unpacker[FORM::runs];
#pragma unroll
    for (int i = 0; i < FORM::runs; i++) {
        blocks_clear(run[i]);
        if constexpr (FORM::zeros && !FORM::fine)
            unpacker[i].set(*(const uint32_t *) (stage + FORM::zeros_at + i * 32 + lane / 4 * 4));
    }
#pragma unroll
    for (int step = 0; step < steps; step++)
#pragma unroll
        for (int i = 0; i < FORM::runs; i++) {
            int own = i * steps + step;
            uint32_t w[4][4], tokens[blocks_terms<FORM::kind>][4];
            uint4 codes[blocks];
            if (FORM::fine && own * BLOCKS_STEP >= left)
                continue; /* out of bounds: no scale; otherwise all zeros */
            few_load_tokens<FORM::kind>(tokens, x + own * BLOCKS_STEP * 2, x_bytes);
#pragma unroll
            for (int j = 0; j < blocks; j++)
                codes[j] = block[own * blocks + j];
            if constexpr (FORM::fine) {
                blocks_sums sum;
                float scale[4];
                blocks_clear(sum);
                blocks_scales(scale, stage + FEW_STAGE + own * 64 + lane / 4 * 8);
                if constexpr (FORM::zeros)
                    unpacker[i].set(
                        *(const uint32_t *) (stage + FORM::zeros_at + own * 32 + lane / 4 * 4));
                unpacker[i].unpack(w, codes);
                blocks_multiply<FORM::kind>(sum, w, tokens);
                blocks_scale(run[i], sum, scale);
            } else {
                unpacker[i].unpack(w, codes);
                blocks_multiply<FORM::kind>(run[i], w, tokens);
            }
        }
}

/* Sums of the split that starts at `column`. */
template <class FORM>
__device__ __forceinline__ void few_multiply(blocks_sums &sum, few_ring<FORM> &ring,
                                             const few_shape &shape, const char *x, int column)
{
    blocks_clear(sum);
    x += column * 2;
#pragma unroll 1
    for (int piece = 0; piece < FORM::stages; piece++) {
        const char *stage = ring.wait();
        int left = shape.all.k - column;
        uint4 block[FEW_BLOCKS];
        blocks_sums run[FORM::runs];
        float scale[FORM::runs][4];
#pragma unroll
        for (int i = 0; i < FEW_BLOCKS; i++)
            block[i] = *(const uint4 *) (stage + i * BLOCKS_BLOCK + blocks_wanted(ring.lane));
#pragma unroll
        for (int i = 0; i < FORM::runs; i++)
            if constexpr (FORM::fine)
                scale[i][0] = scale[i][1] = scale[i][2] = scale[i][3] = 1.0f;
            else
                blocks_scales(scale[i], stage + FEW_STAGE + i * 64 + ring.lane / 4 * 8);
        if constexpr (FORM::fine || FORM::zeros) {
            few_multiply_stage<FORM>(run, block, stage, x, shape.x_bytes, left, ring.lane);
            ring.release();
        } else {
            ring.release();
            few_multiply_stage<FORM>(run, block, stage, x, shape.x_bytes, left, ring.lane);
        }
#pragma unroll
        for (int i = 0; i < FORM::runs; i++)
            if (i * BLOCKS_RUN < left)
                blocks_scale(sum, run[i], scale[i]);
        column += FORM::columns;
        x += FORM::columns * 2;
    }
}

/* Store the lane's sums to shared memory. */
__device__ __forceinline__ void few_lay_down(float *sums, const blocks_sums &sum, int tokens,
                                             unsigned lane)
{
    int g = (int) lane / 4, t = (int) lane % 4;
#pragma unroll
    for (int c = 0; c < 2; c++)
        if (2 * t + c < tokens)
            *(float4 *) &sums[(2 * t + c) * FEW_SUMS_ROW + 4 * g] =
                make_float4(sum[0][c], sum[0][c + 2], sum[1][c], sum[1][c + 2]);
}

#endif
