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
    GEMV_THREADS = 32 * GEMV_WARPS,
    GEMV_ACC_PITCH = GROUPWISE_PANEL_ROWS + 4 /* floats, padded to avoid bank conflicts */
};

/* Launch parameters. Shared memory holds pipelines, x, partial sums of a phase, totals. */
typedef struct gemv_params {
    groupwise_shape all;
    int splits_per_block, phase;      /* splits per thread block, and between reductions */
    int n_stages;                     /* stages of a pipeline */
    bool one_block_per_sm;            /* one thread block per SM, using all of its shared memory */
    bool two_blocks_per_sm;           /* two thread blocks of this kernel per SM */
    bool single_phase;                /* whole panels and one phase */
    uint32_t x_stride;                /* bytes per row of x in shared memory */
    uint32_t x_bytes;                 /* bytes of all rows, per term */
    uint32_t x_offset, totals_offset; /* x follows the pipelines */
    uint32_t row_magic,
        token_magic; /* groupwise_div_magic() of 16-byte chunks per row of x, and of rows */
} gemv_params;

/* ---- x -------------------------------------------------------------------------------------- */

/* Eight neighbours; zeros beyond the end of the row. */
template <groupwise_x_type kind>
__device__ __forceinline__ void gemv_load_x8(uint4 (&term)[groupwise_x_terms<kind>], void *x,
                                             size_t row, int k, int column)
{
    constexpr ft_dtype dtype = kind == GROUPWISE_X_F16    ? FT_F16
                               : kind == GROUPWISE_X_BF16 ? FT_BF16
                                                          : FT_F32;
    uint32_t word[4][groupwise_x_terms<kind>];
    ft_raw_vec<8> bits = {};
    bool is_vector = k % 8 == 0 && (uintptr_t) x % 16 == 0;
    if (is_vector && column < k) {
        ft_load_raw_as<dtype, 8>(bits, x, row * k + column);
    } else if (!is_vector) {
        for (int i = 0; i < 8 && column + i < k; i++) {
            ft_raw_vec<1> one;
            ft_load_raw_as<dtype, 1>(one, x, row * k + column + i);
            if constexpr (dtype == FT_F32)
                bits.word[i] = one.word[0];
            else
                bits.word[i / 2] |= one.word[0] << 16 * (i % 2);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (kind == GROUPWISE_X_F32)
            groupwise_split_bf16x3(word[i], __uint_as_float(bits.word[2 * i]),
                                   __uint_as_float(bits.word[2 * i + 1]));
        else
            word[i][0] = bits.word[i];
    }
#pragma unroll
    for (int i = 0; i < groupwise_x_terms<kind>; i++)
        term[i] = make_uint4(word[0][i], word[1][i], word[2][i], word[3][i]);
}

/*
 * Copy all of x to shared memory, zero-padded to whole k tiles. A thread has several loads in
 * flight; they are not cp.async, because those would wait for all earlier copies of the pipelines.
 */
template <groupwise_x_type kind>
__device__ __forceinline__ void gemv_load_x(char *x, const ft_cuda_groupwise_args &p,
                                            const gemv_params &shape)
{
    constexpr int loads_in_flight = 4, terms = groupwise_x_terms<kind>;
    int k = shape.all.k,
        m8_tiles = (k + GROUPWISE_TILE_K - 1) / GROUPWISE_TILE_K * (GROUPWISE_TILE_K / 8);
    int all = m8_tiles * (int) p.m;
    bool is_aligned =
        kind != GROUPWISE_X_F32 && k % GROUPWISE_TILE_K == 0 && (uintptr_t) p.x % 16 == 0;
    if (is_aligned) {
        for (int first = (int) threadIdx.x; first < all; first += loads_in_flight * GEMV_THREADS) {
            uint4 chunk[loads_in_flight];
#pragma unroll
            for (int i = 0; i < loads_in_flight; i++)
                if (first + i * GEMV_THREADS < all)
                    chunk[i] = ((uint4 *) p.x)[first + i * GEMV_THREADS];
#pragma unroll
            for (int i = 0; i < loads_in_flight; i++) {
                int at = first + i * GEMV_THREADS, row = groupwise_fast_div(at, shape.row_magic);
                if (at < all)
                    *(uint4 *) (x + at * 16 + row * (shape.x_stride - m8_tiles * 16)) = chunk[i];
            }
        }
        return;
    }
#pragma unroll 1
    for (int at = (int) threadIdx.x; at < all; at += GEMV_THREADS) {
        int row = groupwise_fast_div(at, shape.row_magic), chunk = at - row * m8_tiles;
        uint4 term[terms];
        gemv_load_x8<kind>(term, p.x, (size_t) row, k, chunk * 8);
#pragma unroll
        for (int i = 0; i < terms; i++)
            *(uint4 *) (x + row * shape.x_stride + chunk * 16 + i * shape.x_bytes) = term[i];
    }
}

/* ---- One split ------------------------------------------------------------------------------ */

/* Four tiles of 8 columns of x, for each term. */
template <groupwise_x_type kind>
__device__ __forceinline__ void gemv_load_x_frag(uint32_t (&x)[groupwise_x_terms<kind>][4],
                                                 const char *at, uint32_t x_bytes)
{
#pragma unroll
    for (int term = 0; term < groupwise_x_terms<kind>; term++)
        ft_ldmatrix_x4(x[term], at + term * x_bytes);
}

/* A lane's weights of a stage with their scales and zero points, in registers. */
template <class CONFIG> struct gemv_weights {
    uint4 block[GEMV_STAGE_LOADS];
    ft_raw_vec<2> scale[CONFIG::scales]; /* f16, of four rows */
    uint32_t zero[CONFIG::scales];

    __device__ __forceinline__ void load(const char *stage, unsigned lane)
    {
#pragma unroll
        for (int i = 0; i < GEMV_STAGE_LOADS; i++)
            block[i] = *(const uint4 *) (stage + i * GROUPWISE_WARP_BYTES +
                                         groupwise_smem_read_offset(lane));
#pragma unroll
        for (int i = 0; i < CONFIG::scales; i++) {
            scale[i] = *(const ft_raw_vec<2> *) (stage + GEMV_STAGE_BYTES + i * 64 + lane / 4 * 8);
            if (CONFIG::zeros)
                zero[i] = *(const uint32_t *) (stage + CONFIG::zeros_at + i * 32 + lane / 4 * 4);
        }
    }
};

/*
 * Sums of a stage's k tiles, unscaled unless every 32 columns have a scale. K tiles are interleaved
 * to hide instruction latency.
 */
template <class CONFIG>
__device__ __forceinline__ void gemv_stage(groupwise_acc (&k_tile_acc)[CONFIG::k_tiles],
                                           const gemv_weights<CONFIG> &weights, const char *x,
                                           uint32_t x_bytes, int k_left)
{
    constexpr int blocks = CONFIG::bits / 4,
                  steps = GROUPWISE_TILE_K / GROUPWISE_STEP_K; /* loads, steps */
    constexpr groupwise_scaling scaling = CONFIG::scaling;
    groupwise_unpacker<CONFIG::bits, CONFIG::kind, scaling == GROUPWISE_SCALE_WEIGHTS>
        unpacker[CONFIG::k_tiles];
#pragma unroll
    for (int i = 0; i < CONFIG::k_tiles; i++) {
        groupwise_zero_acc(k_tile_acc[i]);
        if constexpr (CONFIG::zeros && !CONFIG::step_scales)
            unpacker[i].set(weights.zero[i]);
    }
#pragma unroll
    for (int k_step = 0; k_step < steps; k_step++)
#pragma unroll
        for (int i = 0; i < CONFIG::k_tiles; i++) {
            int own = i * steps + k_step;
            uint32_t w[4][4], tokens[groupwise_x_terms<CONFIG::kind>][4];
            uint4 qweights[blocks];
            if (scaling == GROUPWISE_SCALE_STEPS && own * GROUPWISE_STEP_K >= k_left)
                continue; /* out of bounds; otherwise all zeros */
            gemv_load_x_frag<CONFIG::kind>(tokens, x + own * GROUPWISE_STEP_K * 2, x_bytes);
#pragma unroll
            for (int j = 0; j < blocks; j++)
                qweights[j] = weights.block[own * blocks + j];
            if constexpr (CONFIG::step_scales && CONFIG::zeros)
                unpacker[i].set(weights.zero[own]);
            if constexpr (scaling == GROUPWISE_SCALE_WEIGHTS)
                unpacker[i].set_scales(weights.scale[own]);
            unpacker[i].unpack(w, qweights);
            if constexpr (scaling == GROUPWISE_SCALE_STEPS) {
                groupwise_acc sum;
                float scale[4];
                groupwise_zero_acc(sum);
                groupwise_unpack_scales(scale, weights.scale[own]);
                groupwise_mma_k32<CONFIG::kind>(sum, w, tokens);
                groupwise_add_scaled(k_tile_acc[i], sum, scale);
            } else {
                groupwise_mma_k32<CONFIG::kind>(k_tile_acc[i], w, tokens);
            }
        }
}

/* Sums of the split that starts at `column`. */
template <class CONFIG>
__device__ __forceinline__ void gemv_split(groupwise_acc &sum, gemv_pipeline<CONFIG> &pipeline,
                                           const gemv_params &shape, const char *x, int column)
{
    groupwise_zero_acc(sum);
    x += column * 2;
#pragma unroll 1
    for (int stage_of_split = 0; stage_of_split < CONFIG::stages; stage_of_split++) {
        int k_left = shape.all.k - column;
        gemv_weights<CONFIG> weights;
        groupwise_acc k_tile_acc[CONFIG::k_tiles];
        weights.load(pipeline.wait(), pipeline.lane);
        pipeline.release();
        gemv_stage<CONFIG>(k_tile_acc, weights, x, shape.x_bytes, k_left);
#pragma unroll
        for (int i = 0; i < CONFIG::k_tiles; i++) {
            float scale[4] = { 1.0f, 1.0f, 1.0f, 1.0f };
            if (!CONFIG::step_scales)
                groupwise_unpack_scales(scale, weights.scale[i]);
            if (i * GROUPWISE_TILE_K < k_left)
                groupwise_add_scaled(sum, k_tile_acc[i], scale);
        }
        column += CONFIG::columns;
        x += CONFIG::columns * 2;
    }
}

/* Store the lane's sums to shared memory. */
__device__ __forceinline__ void gemv_store_acc(float *sums, const groupwise_acc &sum, int tokens,
                                               unsigned lane)
{
    int g = (int) lane / 4, t = (int) lane % 4;
#pragma unroll
    for (int c = 0; c < 2; c++)
        if (2 * t + c < tokens)
            *(float4 *) &sums[(2 * t + c) * GEMV_ACC_PITCH + 4 * g] =
                make_float4(sum[0][c], sum[0][c + 2], sum[1][c], sum[1][c + 2]);
}

#endif
