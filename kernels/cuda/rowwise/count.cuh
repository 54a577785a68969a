/*
 * count.cuh - histograms of values on the device, with the keys of kernels/count.h.
 *
 * Every finite magnitude is added to its key by an atomic; the 262145 keys of 8 bytes stay in the
 * L2 cache. Atomics on one address are serialized, so frequent values are aggregated first. Each
 * thread counts zeros and non-finite values itself. Lanes of a warp that have the same key (the
 * ones of a saturated tanh, or of a softmax over one key) issue one atomic. Unlike on the CPU there
 * is no tail of exact magnitudes; only the largest is kept exactly.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ROWWISE_COUNT_CUH
#define FT_KERNELS_CUDA_ROWWISE_COUNT_CUH

#include "kernels/cuda/cuda.h"

/* Counts of one thread that are not yet added to the counters; initialized to zeros. */
typedef struct ft_local_counts {
    uint32_t special[3]; /* zeros, NaNs, infinities */
    uint32_t largest;    /* float bits of the largest finite magnitude */
} ft_local_counts;

/* Whether this lane is the first of `lanes`. */
__device__ __forceinline__ bool ft_is_first_lane(uint32_t lanes)
{
    uint32_t before;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
    return (lanes & before) == 0;
}

/* Counts one value. Any subset of the lanes of a warp may call it together. */
__device__ __forceinline__ void ft_count_one(const ft_cuda_counts &counts, ft_local_counts &local,
                                             float value)
{
    uint32_t magnitude = __float_as_uint(value) & ~FT_COUNT_SIGN;
    if (magnitude == 0) {
        local.special[0]++;
    } else if (magnitude >= FT_COUNT_INFINITY) {
        local.special[magnitude > FT_COUNT_INFINITY ? 1 : 2]++;
    } else {
        uint32_t key = ft_count_key(magnitude);
        uint32_t same_key = __match_any_sync(__activemask(), key);
        if (ft_is_first_lane(same_key))
            atomicAdd(&counts.key[key], (unsigned long long) __popc(same_key));
        local.largest = max(local.largest, magnitude);
    }
}

/* Sum and maximum over `lanes`, which call it together. On Turing each lane keeps its own value. */
__device__ __forceinline__ uint32_t ft_sum_lanes(uint32_t lanes, uint32_t value)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    value = __reduce_add_sync(lanes, value);
    return ft_is_first_lane(lanes) ? value : 0;
#else
    return value;
#endif
}

__device__ __forceinline__ uint32_t ft_max_lanes(uint32_t lanes, uint32_t value)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    value = __reduce_max_sync(lanes, value);
    return ft_is_first_lane(lanes) ? value : 0;
#else
    return value;
#endif
}

/* Adds the counts of the thread; called once, after its last value. Zeros also belong to key 0. */
__device__ __forceinline__ void ft_flush_counts(const ft_cuda_counts &counts,
                                                const ft_local_counts &local)
{
    uint32_t lanes = __activemask();
#pragma unroll
    for (int i = 0; i < 3; i++) {
        uint32_t total = ft_sum_lanes(lanes, local.special[i]);
        if (total > 0)
            atomicAdd(&counts.special[i], (unsigned long long) total);
        if (i == 0 && total > 0)
            atomicAdd(&counts.key[0], (unsigned long long) total);
    }
    uint32_t largest = ft_max_lanes(lanes, local.largest);
    if (largest > *counts.largest) /* the value read may be stale; the atomic decides */
        atomicMax(counts.largest, largest);
}

/* Counts a single value: simpler but slower. */
__device__ __forceinline__ void ft_count_value(const ft_cuda_counts &counts, float value)
{
    ft_local_counts local = {};
    ft_count_one(counts, local, value);
    ft_flush_counts(counts, local);
}

#endif
