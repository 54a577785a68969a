/*
 * logits_row.cuh - one row of logits in the shared memory of a CTA or of a cluster of CTAs: loads,
 * iteration, and reductions over the row.
 *
 * The logits are read once into shared memory. Each later pass costs a quarter of an instruction
 * per token, and the loops stay short. A row in registers would need all loops unrolled, and code
 * that runs once is limited by instruction fetches.
 *
 * Each CTA of a cluster has a slice of the row. The CTAs exchange their partial results, and then
 * every CTA does the same computation with the same numbers; a single CTA is a cluster of one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_SAMPLING_LOGITS_ROW_CUH
#define FT_KERNELS_CUDA_SAMPLING_LOGITS_ROW_CUH

#include "kernels/sampling.h"
#include "kernels/cuda/sampling/sample.h"
#include "kernels/cuda/ptx/cluster.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/ptx/cp_async.cuh"

enum {
    FT_SAMPLE_THREADS = 1024,
    FT_SAMPLE_WARPS = FT_SAMPLE_THREADS / 32,
    FT_SAMPLE_BINS = 2 * FT_SAMPLE_THREADS,
    FT_SAMPLE_LIST = 1024,     /* tokens of a bin that are ranked directly */
    FT_SAMPLE_MAX_CLUSTER = 8, /* maximum CTAs of a cluster */
};

typedef unsigned long long ft_u64; /* uint64_t, as the type that CUDA's functions take */

/* A token in the order, and the inclusive cumulative weight up to it. */
typedef struct ft_ranked_token {
    float value;
    int32_t id;
    ft_u64 sum;
} ft_ranked_token;

/* Extremes of a row; of one thread, then of the CTA and the cluster. */
typedef struct ft_logits_range {
    float max_logit, min_logit; /* of the logits after penalties and bans */
    float raw;                  /* maximum of the raw logits */
    uint32_t max_at;            /* of a thread: the first vector that holds its maximum */
    bool nan;
} ft_logits_range;

typedef struct ft_sample_shared {
    uint32_t low[FT_SAMPLE_BINS + 32], high[FT_SAMPLE_BINS + 32]; /* halves of the sums of bins */
    float value[FT_SAMPLE_LIST];
    int32_t id[FT_SAMPLE_LIST];
    uint32_t weight[FT_SAMPLE_LIST];
    uint32_t n_listed; /* number of listed tokens, even if the list is full */
    ft_u64 part[FT_SAMPLE_WARPS];
    float max_logit[FT_SAMPLE_WARPS], min_logit[FT_SAMPLE_WARPS], raw[FT_SAMPLE_WARPS];
    ft_logits_range rank_range[FT_SAMPLE_MAX_CLUSTER]; /* written by the CTAs of the cluster */
    ft_u64 sum[FT_SAMPLE_MAX_CLUSTER];
    ft_u64 before; /* cumulative weight before `bin` */
    int32_t bin;
    uint32_t key_low, key_high; /* of the tokens in a bin */
    int32_t id_low, id_high;
    ft_ranked_token selected;
    int32_t first;   /* the smallest id with the largest logit */
    uint64_t random; /* random bits of this step */
    ft_sampling_params sampling;
} ft_sample_shared;

/* A row: its length, and the slice of a CTA. */
typedef struct ft_logits_row {
    uint32_t vocabulary, blocks; /* of the whole row */
    uint32_t first, count;       /* the slice; the following fields are about the slice only */
    const float *logits;         /* raw logits */
    const uint32_t *seen;
    uint32_t *banned; /* bitmap of tokens, in shared memory */
    float *values; /* adjusted logits, padded to vectors of four: in shared memory, or in scratch */
    bool aligned;  /* logits and seen may be read in vectors of four */
    bool has_penalties, has_bans; /* values differ from the logits */
} ft_logits_row;

/* ---- Reductions ----------------------------------------------------------------------------- */

/*
 * From sm_80 on a warp adds 32-bit integers by one instruction, whereas 64-bit shuffles take 25.
 * The sum is therefore computed in three pieces, each with headroom for 32 addends.
 */
__device__ __forceinline__ ft_u64 ft_warp_sum_u64(ft_u64 x)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    uint32_t low = __reduce_add_sync(~0u, (uint32_t) x & 0x7ffffff);
    uint32_t middle = __reduce_add_sync(~0u, (uint32_t) (x >> 27) & 0x7ffffff);
    uint32_t high = __reduce_add_sync(~0u, (uint32_t) (x >> 54));
    return ((ft_u64) high << 54) + ((ft_u64) middle << 27) + low;
#else
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1)
        x += __shfl_xor_sync(~0u, x, distance);
    return x;
#endif
}

/* Inclusive scan in the order of lanes. */
__device__ __forceinline__ ft_u64 ft_warp_scan_u64(ft_u64 x)
{
#pragma unroll
    for (int lane = 1; lane < 32; lane <<= 1) {
        ft_u64 other = __shfl_up_sync(~0u, x, lane);
        x += (int) threadIdx.x % 32 >= lane ? other : 0;
    }
    return x;
}

/* Order-preserving map from floats to integers; -0 maps to 0. */
__device__ __forceinline__ uint32_t ft_float_to_ordered(float x)
{
    uint32_t bits = __float_as_uint(x + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float ft_ordered_to_float(uint32_t key)
{
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

__device__ __forceinline__ float ft_warp_max_f32(float x)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    return ft_ordered_to_float(__reduce_max_sync(~0u, ft_float_to_ordered(x)));
#else
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, distance));
    return x;
#endif
}

/* The sum of s.part over the warps before `end`. */
__device__ __forceinline__ ft_u64 ft_sum_warps_before(const ft_sample_shared &s, uint32_t end)
{
    uint32_t lane = threadIdx.x % 32;
    return ft_warp_sum_u64(lane < end ? s.part[lane] : 0);
}

/* The sum over all CTAs. Two calls need a barrier between them. */
__device__ __forceinline__ ft_u64 ft_row_sum_u64(ft_sample_shared &s, const ft_logits_row &row,
                                                 ft_u64 x)
{
    x = ft_warp_sum_u64(x);
    __syncthreads(); /* all threads have read part[] */
    if (threadIdx.x % 32 == 0)
        s.part[threadIdx.x / 32] = x;
    __syncthreads();
    x = ft_sum_warps_before(s, FT_SAMPLE_WARPS);
    if (row.blocks == 1)
        return x;
    if (threadIdx.x < row.blocks)
        *ft_cluster_map_peer(&s.sum[ft_cluster_rank()], threadIdx.x) = x;
    ft_cluster_sync(row.blocks);
    x = 0;
#pragma unroll 1
    for (uint32_t block = 0; block < row.blocks; block++)
        x += s.sum[block];
    return x;
}

/* ---- Logits --------------------------------------------------------------------------------- */

/* Loads four consecutive elements from `at` on; elements after the end are `none`. */
template <typename Four, typename One>
__device__ __forceinline__ Four ft_load_x4(const One *row, uint32_t at, uint32_t end, bool aligned,
                                           One fill)
{
    if (aligned)
        return *(const Four *) (row + at);
    Four four;
    four.x = row[at];
    four.y = at + 1 < end ? row[at + 1] : fill;
    four.z = at + 2 < end ? row[at + 2] : fill;
    four.w = at + 3 < end ? row[at + 3] : fill;
    return four;
}

/* Calls visit(at, values) for all vectors of four of the slice; values after the end are -inf. */
template <typename Visit>
__device__ __forceinline__ void ft_for_each_x4(const ft_logits_row &row, Visit visit)
{
#pragma unroll 2
    for (uint32_t at = threadIdx.x * 4; at < row.count; at += FT_SAMPLE_THREADS * 4)
        visit(at, *(const float4 *) (row.values + at));
}

/* Calls visit(id, value) for all tokens. */
template <typename Visit>
__device__ __forceinline__ void ft_for_each_token(const ft_logits_row &row, Visit visit)
{
    ft_for_each_x4(row, [&](uint32_t at, float4 v) {
        int32_t id = (int32_t) (row.first + at);
        visit(id, v.x);
        visit(id + 1, v.y);
        visit(id + 2, v.z);
        visit(id + 3, v.w);
    });
}

__device__ __forceinline__ void ft_ban_token(const ft_logits_row &row, int32_t id)
{
    uint32_t at = (uint32_t) id - row.first;
    if (id >= 0 && at < row.count)
        atomicOr(&row.banned[at / 32], 1u << at % 32);
}

/* Marks banned tokens. Each CTA reads the whole history. */
__device__ __forceinline__ void ft_mark_banned_tokens(const ft_logits_row &row,
                                                      const ft_sampling_params &sampling,
                                                      const int32_t *history)
{
    int32_t n = sampling.no_repeat_ngram, thread = (int32_t) threadIdx.x;
    for (uint32_t i = threadIdx.x; i < (row.count + 31) / 32; i += FT_SAMPLE_THREADS)
        row.banned[i] = 0;
    __syncthreads();
    for (int32_t i = thread; i < sampling.n_banned; i += FT_SAMPLE_THREADS)
        ft_ban_token(row, sampling.banned[i]);
    for (int32_t at = thread; n > 0 && at <= sampling.n_tokens - n; at += FT_SAMPLE_THREADS)
        if (ft_sampling_ngram_repeats(history, sampling.n_tokens, n, at))
            ft_ban_token(row, history[at + n - 1]);
    __syncthreads();
}

/* Applies penalties and bans to the four logits at `at`. */
__device__ __forceinline__ float4 ft_apply_penalties_x4(const ft_logits_row &row,
                                                        const ft_sampling_params &sampling,
                                                        float4 x, uint32_t at)
{
    if (row.has_penalties) {
        uint4 seen = ft_load_x4<uint4>(row.seen, at, row.count, row.aligned, 0u);
        x.x = ft_sampling_penalize(x.x, seen.x, &sampling);
        x.y = ft_sampling_penalize(x.y, seen.y, &sampling);
        x.z = ft_sampling_penalize(x.z, seen.z, &sampling);
        x.w = ft_sampling_penalize(x.w, seen.w, &sampling);
    }
    if (row.has_bans) {
        uint32_t banned = row.banned[at / 32] >> at % 32;
        x.x = banned & 1 ? -INFINITY : x.x;
        x.y = banned & 2 ? -INFINITY : x.y;
        x.z = banned & 4 ? -INFINITY : x.z;
        x.w = banned & 8 ? -INFINITY : x.w;
    }
    return x;
}

__device__ __forceinline__ void ft_update_range(ft_logits_range &e, float4 raw, float4 x,
                                                uint32_t at)
{
    float largest = fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
    e.nan |= !(raw.x == raw.x) | !(raw.y == raw.y) | !(raw.z == raw.z) | !(raw.w == raw.w);
    e.raw = fmaxf(fmaxf(e.raw, fmaxf(raw.x, raw.y)), fmaxf(raw.z, raw.w));
    e.max_at = largest > e.max_logit ? at : e.max_at;
    e.max_logit = fmaxf(e.max_logit, largest);
    e.min_logit = fminf(fminf(e.min_logit, fminf(x.x, x.y)), fminf(x.z, x.w));
}

/*
 * Starts the copy of the slice: each thread copies the vectors that it will read itself, one commit
 * group per vector.
 */
__device__ __forceinline__ void ft_prefetch_row(const ft_logits_row &row)
{
    for (uint32_t at = threadIdx.x * 4; at < row.count; at += FT_SAMPLE_THREADS * 4) {
        ft_cp_async_16(row.values + at, row.logits + at, true);
        ft_cp_async_commit();
    }
}

/*
 * Adjusts the slice and finds its extremes. `is_prefetched`: its logits are being copied to
 * row.values. Every iteration but the last four waits until at most four copies are pending.
 */
__device__ __forceinline__ ft_logits_range ft_load_row(const ft_logits_row &row,
                                                       const ft_sampling_params &sampling,
                                                       bool is_prefetched)
{
    ft_logits_range e = { -INFINITY, INFINITY, -INFINITY, 0, false };
#pragma unroll 2
    for (uint32_t at = threadIdx.x * 4; at < row.count; at += FT_SAMPLE_THREADS * 4) {
        if (at + 4 * FT_SAMPLE_THREADS * 4 < row.count)
            ft_cp_async_wait<4>();
        else
            ft_cp_async_wait<0>();
        float4 *chunk = (float4 *) (row.values + at);
        float4 raw = is_prefetched
                         ? *chunk
                         : ft_load_x4<float4>(row.logits, at, row.count, row.aligned, -INFINITY);
        float4 x =
            row.has_penalties || row.has_bans ? ft_apply_penalties_x4(row, sampling, raw, at) : raw;
        if (!is_prefetched || row.has_penalties || row.has_bans)
            *chunk = x;
        ft_update_range(e, raw, x, at);
    }
    return e;
}

__device__ __forceinline__ void ft_warp_reduce_range(ft_logits_range &e)
{
    e.max_logit = ft_warp_max_f32(e.max_logit);
    e.min_logit = -ft_warp_max_f32(-e.min_logit);
    e.raw = ft_warp_max_f32(e.raw);
}

/* Reduces the extremes of the threads to those of the whole row. */
__device__ __forceinline__ ft_logits_range ft_reduce_range(ft_sample_shared &s,
                                                           const ft_logits_row &row,
                                                           ft_logits_range e)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    ft_warp_reduce_range(e);
    if (lane == 0) {
        s.max_logit[warp] = e.max_logit;
        s.min_logit[warp] = e.min_logit;
        s.raw[warp] = e.raw;
    }
    e.nan = __syncthreads_or(e.nan);
    e.max_logit = s.max_logit[lane % FT_SAMPLE_WARPS];
    e.min_logit = s.min_logit[lane % FT_SAMPLE_WARPS];
    e.raw = s.raw[lane % FT_SAMPLE_WARPS];
    ft_warp_reduce_range(e);
    if (row.blocks == 1)
        return e;
    if (threadIdx.x < row.blocks)
        *ft_cluster_map_peer(&s.rank_range[ft_cluster_rank()], threadIdx.x) = e;
    ft_cluster_sync(row.blocks);
#pragma unroll 1
    for (uint32_t block = 0; block < row.blocks; block++) {
        e.max_logit = fmaxf(e.max_logit, s.rank_range[block].max_logit);
        e.min_logit = fminf(e.min_logit, s.rank_range[block].min_logit);
        e.raw = fmaxf(e.raw, s.rank_range[block].raw);
        e.nan |= s.rank_range[block].nan;
    }
    return e;
}

#endif
