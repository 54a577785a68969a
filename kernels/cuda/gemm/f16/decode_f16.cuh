/*
 * decode_f16.cuh - work distribution, weight pipelines and norm of decode_f16.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_DECODE_F16_CUH
#define FT_KERNELS_CUDA_GEMM_F16_DECODE_F16_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/f16/decode_f16.h"
#include "kernels/cuda/ptx/pipeline.cuh"
#include "kernels/cuda/ptx/wgmma_f16.cuh"
#include "kernels/cuda/rowwise/norm.cuh"

enum {
    DECODE_F16_ROWS = 64,                                  /* weight rows of a tile */
    DECODE_F16_K = 64,                                     /* k of a stage */
    DECODE_F16_STAGE = DECODE_F16_ROWS * DECODE_F16_K * 2, /* bytes */
    DECODE_F16_X_STRIDE = 8 * DECODE_F16_K * 2, /* bytes of x per k tile, of which a row is used */
    DECODE_F16_WARPGROUPS = 2,
    DECODE_F16_CONSUMERS = 128 * DECODE_F16_WARPGROUPS,
    DECODE_F16_THREADS = DECODE_F16_CONSUMERS + 32 * DECODE_F16_WARPGROUPS,
    DECODE_F16_MAX_STAGES = 12, /* of a warpgroup */
    DECODE_F16_MAX_SPLITS = 4,
    DECODE_F16_VECTORS = 2, /* of a thread, in a norm */
    DECODE_F16_MAX_K = DECODE_F16_VECTORS * DECODE_F16_CONSUMERS * FT_NORM_VECTOR
};
static_assert((int) DECODE_F16_CONSUMERS == (int) FT_NORM_PARTIALS, "a thread adds a partial sum");

/*
 * A unit is what a thread block computes at a time, half of it each warpgroup: the same tile of
 * both linears of a gate, two tiles of a linear, or, where k is split, one tile.
 */
typedef struct decode_f16_params {
    CUtensorMap w[FT_CUDA_MAX_FUSED];
    const float *bias[FT_CUDA_MAX_FUSED]; /* NULL: none */
    void *y[FT_CUDA_MAX_FUSED];
    int n[FT_CUDA_MAX_FUSED], splits[FT_CUDA_MAX_FUSED];
    int end[FT_CUDA_MAX_FUSED]; /* units of this linear and those before */
    int units, k, k_tiles, stages;
    ft_decode_f16_norm norm;
    ft_decode_f16_gate gate;
} decode_f16_params;

/* Shared memory before the pipelines and x. */
struct decode_f16_smem {
    float sums[2][DECODE_F16_MAX_SPLITS][DECODE_F16_ROWS]; /* of every other unit */
    float vector_sums[FT_NORM_VECTORS];
    uint64_t full[DECODE_F16_WARPGROUPS][DECODE_F16_MAX_STAGES],
        empty[DECODE_F16_WARPGROUPS][DECODE_F16_MAX_STAGES];
};

enum { DECODE_F16_PIPELINES = (sizeof(decode_f16_smem) + 1023) / 1024 * 1024 };

#ifdef FT_HAS_WGMMA

/* ---- Work ----------------------------------------------------------------------------------- */

template <typename T>
__device__ __forceinline__ T decode_f16_of(const T (&each)[FT_CUDA_MAX_FUSED], int linear)
{
    return linear == 0 ? each[0] : linear == 1 ? each[1] : each[2]; /* parameters have no address */
}

/* The half of a unit that a warpgroup computes: splits `split` .. `end` - 1 of a tile. */
template <bool gates> struct decode_f16_half {
    int linear, n, row; /* its rows, and the first one of the tile; from n on: none */
    int splits;         /* of the linear */
    int split, end;
    int slot; /* of the first split's sums */

    __device__ __forceinline__ decode_f16_half(const decode_f16_params &a, int unit, int half)
    {
        linear = gates ? half : (unit >= a.end[0]) + (unit >= a.end[1]);
        int of_linear = gates || linear == 0 ? unit : unit - (linear == 1 ? a.end[0] : a.end[1]);
        n = decode_f16_of(a.n, linear);
        splits = decode_f16_of(a.splits, linear);
        bool shared = splits > 1;
        row = (gates || shared ? of_linear : 2 * of_linear + half) * DECODE_F16_ROWS;
        split = shared ? half * splits / 2 : 0;
        end = shared ? (half + 1) * splits / 2 : 1;
        slot = shared ? split : half;
    }
    __device__ __forceinline__ bool any() const
    {
        return row < n;
    }
    /* The first k tile of a split. */
    __device__ __forceinline__ int begin(const decode_f16_params &a, int split) const
    {
        return a.k_tiles * split / splits;
    }
};

/* ---- Weights -------------------------------------------------------------------------------- */

/* The producer of a warpgroup, one thread: its k tiles in order. */
template <bool gates> struct decode_f16_producer {
    uint64_t *full, *empty;
    char *stages;
    int warpgroup, unit, k_tile, end; /* k tiles of this half are consecutive */
    ft_pipeline_state state;
    decode_f16_half<gates> half;

    __device__ __forceinline__ decode_f16_producer(decode_f16_smem &s, char *pipelines,
                                                   const decode_f16_params &a, int warpgroup)
        : full(s.full[warpgroup]), empty(s.empty[warpgroup]),
          stages(pipelines + warpgroup * a.stages * DECODE_F16_STAGE), warpgroup(warpgroup),
          unit(blockIdx.x), state{ 0, 0 }, half(a, blockIdx.x, warpgroup)
    {
        open_half(a);
    }
    __device__ __forceinline__ void open_half(const decode_f16_params &a)
    {
        k_tile = half.begin(a, half.split);
        end = half.any() ? half.begin(a, half.end) : k_tile;
    }
    /* Move on to a half that has k tiles; false: there is none. */
    __device__ __forceinline__ bool any(const decode_f16_params &a)
    {
        while (k_tile == end) {
            unit += gridDim.x;
            if (unit >= a.units)
                return false;
            half = decode_f16_half<gates>(a, unit, warpgroup);
            open_half(a);
        }
        return true;
    }
    __device__ __forceinline__ void request(const decode_f16_params &a)
    {
        const CUtensorMap *map = half.linear == 0 ? &a.w[0] : half.linear == 1 ? &a.w[1] : &a.w[2];
        ft_mbarrier_wait(&empty[state.stage_index], state.phase ^ 1);
        ft_mbarrier_arrive_expect_tx(&full[state.stage_index], DECODE_F16_STAGE);
        ft_tma_load_2d(stages + state.stage_index * DECODE_F16_STAGE, map, &full[state.stage_index],
                       half.row, k_tile * (2 * DECODE_F16_K));
        k_tile++;
        state.advance(a.stages);
    }
};

/* ---- x -------------------------------------------------------------------------------------- */

/* Where element `at` of x is: row 0 of the k tiles of the wgmma operand, which has no swizzle. */
__device__ __forceinline__ char *decode_f16_x(char *x, int at)
{
    return x + at / DECODE_F16_K * DECODE_F16_X_STRIDE + at % DECODE_F16_K * 2;
}

/* Normalize the row into shared memory; each thread block repeats this. */
template <ft_dtype dtype>
__device__ __forceinline__ void decode_f16_norm(char *x, decode_f16_smem &s,
                                                const decode_f16_params &a,
                                                const float4 (&weight)[DECODE_F16_VECTORS][2])
{
    const ft_decode_f16_norm &norm = a.norm;
    float v[DECODE_F16_VECTORS][FT_NORM_VECTOR], part = 0.0f;
    ft_raw_vec<FT_NORM_VECTOR> from[DECODE_F16_VECTORS] = {}, residual[DECODE_F16_VECTORS] = {};
    bool consumer = threadIdx.x < DECODE_F16_CONSUMERS;
#pragma unroll
    for (int i = 0; i < DECODE_F16_VECTORS; i++) {
        int at = (i * DECODE_F16_CONSUMERS + (int) threadIdx.x) * FT_NORM_VECTOR;
        if (!consumer || at >= a.k)
            continue;
        ft_load_raw_as<dtype, FT_NORM_VECTOR>(from[i], (void *) norm.x, at);
        if (norm.residual != NULL)
            ft_load_raw_as<dtype, FT_NORM_VECTOR>(residual[i], (void *) norm.residual, at);
    }
#pragma unroll
    for (int i = 0; i < DECODE_F16_VECTORS; i++) {
        float more[FT_NORM_VECTOR];
        int at = (i * DECODE_F16_CONSUMERS + (int) threadIdx.x) * FT_NORM_VECTOR;
        ft_unpack_as<dtype, FT_NORM_VECTOR>(v[i], from[i]);
        ft_unpack_as<dtype, FT_NORM_VECTOR>(more, residual[i]);
#pragma unroll
        for (int e = 0; e < FT_NORM_VECTOR; e++)
            v[i][e] = norm.residual != NULL ? v[i][e] + more[e] : v[i][e];
        if (consumer && at < a.k) /* v becomes the rounded values that other kernels read */
            ft_store_as<dtype, FT_NORM_VECTOR>(decode_f16_x(x, at), 0, v[i]);
    }
    __syncthreads();
    if (consumer)
#pragma unroll 8
        for (int at = (int) threadIdx.x; at < a.k; at += FT_NORM_PARTIALS) {
            ft_raw_vec<1> bits;
            float value;
            bits.word[0] = *(const uint16_t *) decode_f16_x(x, at);
            ft_unpack_as<dtype, 1>(&value, bits);
            part = fmaf(value, value, part);
        }
    float cols = (float) a.k;
    float square = ft_norm_mean(ft_block_sum_parts(part, s.vector_sums), cols, 1.0f / cols);
    float factor = ft_norm_factor(square, norm.eps);
#pragma unroll
    for (int i = 0; i < DECODE_F16_VECTORS; i++) {
        int at = (i * DECODE_F16_CONSUMERS + (int) threadIdx.x) * FT_NORM_VECTOR;
        if (!consumer || at >= a.k)
            continue;
        if (norm.sum != NULL && blockIdx.x == 0)
            ft_store_as<dtype, FT_NORM_VECTOR>(norm.sum, at, v[i]);
        const float w[FT_NORM_VECTOR] = { weight[i][0].x, weight[i][0].y, weight[i][0].z,
                                          weight[i][0].w, weight[i][1].x, weight[i][1].y,
                                          weight[i][1].z, weight[i][1].w };
#pragma unroll
        for (int e = 0; e < FT_NORM_VECTOR; e++)
            v[i][e] = v[i][e] * factor * w[e];
        ft_store_as<dtype, FT_NORM_VECTOR>(decode_f16_x(x, at), 0, v[i]);
    }
    ft_fence_proxy_async(); /* before wgmma reads it */
}

#endif
#endif
