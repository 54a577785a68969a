/*
 * select_kth.cuh - selects the token at a given cumulative weight of a row's sorted order, without
 * sorting.
 *
 * All tokens go into bins by their log probability, and each bin adds the weights of its tokens:
 * their probability weights, or ones. A scan of the bins finds the bin in which the cumulative
 * weight exceeds the target. Its tokens, a few dozen, are listed, and each warp computes for some
 * of them the weight of the tokens before them in the list. The cost depends neither on k nor on p.
 *
 * If a bin holds more tokens than the list, it is divided into bins itself: first by the bits of
 * the logits and, when all of those are equal, by id. This costs the same again for each level, and
 * happens in rows whose logits are mostly the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_SAMPLING_SELECT_KTH_CUH
#define FT_KERNELS_CUDA_SAMPLING_SELECT_KTH_CUH

#include "kernels/cuda/sampling/logits_row.cuh"

/* What the bins contain: all tokens or those of one bin, with counts or probability weights. */
typedef struct ft_weight_bins {
    float largest, slope, scale; /* by logit: all tokens with any weight */
    float limit;                 /* tokens with smaller logits have no weight */
    bool counts;                 /* every token has weight 1 */
    bool refined;                /* refined, by bits or id: only tokens in the following ranges */
    uint32_t key_low, key_high;
    int32_t id_low, id_high;
    int shift;
    ft_u64 before, mine; /* sums of weights before this warp's 64 bins, and in them */
    ft_u64 total;
} ft_weight_bins;

/*
 * Bin by logit, as a float from 2^23 on, so that the bin is in its last bits. After the last bin,
 * where tokens have no weight, each lane has a dummy bin of its own.
 */
__device__ __forceinline__ float ft_logit_bin(const ft_weight_bins &b, float value)
{
    return fmaf(b.largest - value, b.scale, 8388608.0f);
}

/*
 * Bin in a refined range; FT_SAMPLE_BINS: outside. Tokens earlier in the order are in no later bin.
 */
__device__ __forceinline__ uint32_t ft_refined_bin(const ft_weight_bins &b, int32_t id, float value)
{
    uint32_t key = ft_float_to_ordered(value);
    if (key < b.key_low || key > b.key_high || id < b.id_low || id > b.id_high)
        return FT_SAMPLE_BINS;
    return (b.key_low < b.key_high ? b.key_high - key : (uint32_t) (id - b.id_low)) >> b.shift;
}

template <bool refined>
__device__ __forceinline__ bool ft_bin_contains(const ft_weight_bins &b, int32_t id, float value,
                                                int bin)
{
    if constexpr (refined)
        return ft_refined_bin(b, id, value) == (uint32_t) bin;
    else
        return ft_logit_bin(b, value) == 8388608.0f + (float) bin;
}

__device__ __forceinline__ uint32_t ft_token_weight(const ft_weight_bins &b, float value)
{
    return b.counts ? 1 : ft_sampling_fixed_prob(ft_sampling_exponent(value, b.largest, b.slope));
}

__device__ __forceinline__ void ft_clear_bins(ft_sample_shared &s)
{
    for (int i = (int) threadIdx.x; i < FT_SAMPLE_BINS; i += FT_SAMPLE_THREADS) {
        s.low[i] = 0;
        s.high[i] = 0;
    }
}

/* The sum of a bin may exceed 32 bits: returns true, and the caller adds the carry. */
__device__ __forceinline__ bool ft_add_to_bin(ft_sample_shared &s, uint32_t bin, uint32_t weight)
{
    return atomicAdd(&s.low[bin], weight) > ~weight;
}

/* Adds all tokens by their logits, in branch-free vectors of four. */
__device__ __forceinline__ void ft_fill_bins_by_logit(ft_sample_shared &s, const ft_weight_bins &b,
                                                      const ft_logits_row &row)
{
    float last = 8388608.0f + FT_SAMPLE_BINS + (float) (threadIdx.x % 32);
    ft_for_each_x4(row, [&](uint32_t, float4 v) {
        const float value[4] = { v.x, v.y, v.z, v.w };
        uint32_t bin[4], weight[4] = { 1, 1, 1, 1 };
        bool carries[4];
        if (fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)) < b.limit)
            return;
        if (!b.counts)
#pragma unroll
            for (int i = 0; i < 4; i++)
                weight[i] = ft_token_weight(b, value[i]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bin[i] = __float_as_uint(fminf(ft_logit_bin(b, value[i]), last)) - 0x4b000000u;
            carries[i] = ft_add_to_bin(s, bin[i], weight[i]);
        }
        if (carries[0] | carries[1] | carries[2] | carries[3])
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (carries[i])
                    atomicAdd(&s.high[bin[i]], 1u);
    });
}

__device__ __forceinline__ void ft_fill_refined_bins(ft_sample_shared &s, const ft_weight_bins &b,
                                                     const ft_logits_row &row)
{
    ft_for_each_token(row, [&](int32_t id, float value) {
        uint32_t bin = ft_refined_bin(b, id, value);
        if (bin < FT_SAMPLE_BINS && ft_add_to_bin(s, bin, ft_token_weight(b, value)))
            atomicAdd(&s.high[bin], 1u);
    });
}

/*
 * Reduces the bins over all CTAs of the cluster: each CTA sums a range of bins, which no other CTA
 * accesses meanwhile, and writes the sums to all.
 */
__device__ __forceinline__ void ft_reduce_bins(ft_sample_shared &s, const ft_logits_row &row)
{
    ft_cluster_sync(row.blocks);
    if (row.blocks == 1)
        return;
    uint32_t bins_per_cta = FT_SAMPLE_BINS / row.blocks,
             bin = ft_cluster_rank() * bins_per_cta + threadIdx.x;
    if (threadIdx.x < bins_per_cta) {
        ft_u64 sum = 0;
#pragma unroll 1
        for (uint32_t block = 0; block < row.blocks; block++)
            sum += ((ft_u64) *ft_cluster_map_peer(&s.high[bin], block) << 32) +
                   *ft_cluster_map_peer(&s.low[bin], block);
#pragma unroll 1
        for (uint32_t block = 0; block < row.blocks; block++) {
            *ft_cluster_map_peer(&s.high[bin], block) = (uint32_t) (sum >> 32);
            *ft_cluster_map_peer(&s.low[bin], block) = (uint32_t) sum;
        }
    }
    ft_cluster_sync(row.blocks);
}

__device__ __forceinline__ ft_u64 ft_bin_sum(const ft_sample_shared &s, uint32_t bin)
{
    return ((ft_u64) s.high[bin] << 32) + s.low[bin];
}

/* Fills cleared bins; b.total becomes the sum of all weights. */
template <bool refined>
__device__ __forceinline__ void ft_fill_bins(ft_sample_shared &s, ft_weight_bins &b,
                                             const ft_logits_row &row)
{
    if constexpr (refined)
        ft_fill_refined_bins(s, b, row);
    else
        ft_fill_bins_by_logit(s, b, row);
    ft_reduce_bins(s, row);
    uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    b.mine = ft_warp_sum_u64(ft_bin_sum(s, 2 * threadIdx.x) + ft_bin_sum(s, 2 * threadIdx.x + 1));
    if (lane == 0)
        s.part[warp] = b.mine;
    __syncthreads();
    b.before = ft_sum_warps_before(s, warp);
    b.total = ft_sum_warps_before(s, FT_SAMPLE_WARPS);
}

/*
 * Finds the bin in which the cumulative weight exceeds `target`, and the weight before it: s.bin,
 * s.before.
 */
__device__ __forceinline__ void ft_find_bin(ft_sample_shared &s, const ft_weight_bins &b,
                                            const ft_logits_row &row, ft_u64 target)
{
    if (threadIdx.x == 0)
        s.n_listed = 0;
    if (b.before <= target && target - b.before < b.mine) {
        uint32_t bin = 2 * threadIdx.x;
        ft_u64 first = ft_bin_sum(s, bin), pair_sum = first + ft_bin_sum(s, bin + 1);
        ft_u64 before = b.before + ft_warp_scan_u64(pair_sum) - pair_sum;
        if (before <= target && target - before < pair_sum) {
            bool second = target - before >= first;
            s.bin = (int) bin + second;
            s.before = before + (second ? first : 0);
        }
    }
    ft_cluster_sync(row.blocks); /* all CTAs are ready to receive tokens */
}

/* Appends a token to the lists of all CTAs, at an index allocated by the first CTA. */
__device__ __forceinline__ void ft_list_token(ft_sample_shared &s, const ft_weight_bins &b,
                                              const ft_logits_row &row, int32_t id, float value)
{
    uint32_t list_index = atomicAdd(ft_cluster_map_peer(&s.n_listed, 0), 1u),
             weight = ft_token_weight(b, value);
#pragma unroll 1
    for (uint32_t block = 0; block < row.blocks; block++) {
        if (block > 0)
            atomicAdd(ft_cluster_map_peer(&s.n_listed, block), 1u);
        if (list_index >= FT_SAMPLE_LIST)
            continue;
        *ft_cluster_map_peer(&s.value[list_index], block) = value;
        *ft_cluster_map_peer(&s.id[list_index], block) = id;
        *ft_cluster_map_peer(&s.weight[list_index], block) = weight;
    }
}

template <bool refined>
__device__ __forceinline__ void ft_list_bin(ft_sample_shared &s, const ft_weight_bins &b,
                                            const ft_logits_row &row)
{
    int bin = s.bin;
    ft_for_each_x4(row, [&](uint32_t at, float4 v) {
        int32_t id = (int32_t) (row.first + at);
        const float value[4] = { v.x, v.y, v.z, v.w };
        bool is_in[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            is_in[i] = ft_bin_contains<refined>(b, id + i, value[i], bin);
        if (is_in[0] | is_in[1] | is_in[2] | is_in[3])
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (is_in[i])
                    ft_list_token(s, b, row, id + i, value[i]);
    });
    ft_cluster_sync(row.blocks);
}

/* The listed token at which the cumulative weight exceeds `target`; the list contains it. */
__device__ __forceinline__ ft_ranked_token ft_find_listed(ft_sample_shared &s, ft_u64 target)
{
    int count = (int) s.n_listed, lane = (int) threadIdx.x % 32;
    for (int i = (int) threadIdx.x / 32; i < count; i += FT_SAMPLE_WARPS) {
        float value = s.value[i];
        int32_t id = s.id[i];
        ft_u64 sum = 0;
        for (int j = lane; j < count; j += 32) {
            float other = s.value[j];
            if (other > value || (other == value && s.id[j] <= id))
                sum += s.weight[j];
        }
        sum = s.before + ft_warp_sum_u64(sum);
        if (lane == 0 && target < sum && sum - s.weight[i] <= target)
            s.selected = { value, id, sum };
    }
    __syncthreads();
    return s.selected;
}

/* Divides the bin that overflowed the list into bins again. */
template <bool refined>
__device__ __forceinline__ void ft_refine_bins(ft_sample_shared &s, ft_weight_bins &b,
                                               const ft_logits_row &row)
{
    int bin = s.bin;
    if (threadIdx.x == 0) {
        s.key_low = ~0u;
        s.key_high = 0;
        s.id_low = INT32_MAX;
        s.id_high = 0;
    }
    ft_cluster_sync(row.blocks);
    ft_for_each_token(row, [&](int32_t id, float value) {
        if (!ft_bin_contains<refined>(b, id, value, bin))
            return;
        uint32_t key = ft_float_to_ordered(value);
#pragma unroll 1
        for (uint32_t block = 0; block < row.blocks; block++) {
            atomicMin(ft_cluster_map_peer(&s.key_low, block), key);
            atomicMax(ft_cluster_map_peer(&s.key_high, block), key);
            atomicMin(ft_cluster_map_peer(&s.id_low, block), id);
            atomicMax(ft_cluster_map_peer(&s.id_high, block), id);
        }
    });
    ft_clear_bins(s);
    ft_cluster_sync(row.blocks);
    b.refined = true;
    b.key_low = s.key_low;
    b.key_high = s.key_high;
    b.id_low = s.id_low;
    b.id_high = s.id_high;
    uint32_t range =
        b.key_low < b.key_high ? b.key_high - b.key_low : (uint32_t) (b.id_high - b.id_low);
    b.shift = 0;
    while (range >> b.shift >= FT_SAMPLE_BINS)
        b.shift++;
}

/* Slow path for an overflowing list. Afterwards `b` no longer covers the whole row. */
__device__ __forceinline__ ft_ranked_token ft_find_in_refined_bins(ft_sample_shared &s,
                                                                   ft_weight_bins &b,
                                                                   const ft_logits_row &row,
                                                                   ft_u64 target)
{
    ft_u64 weight_before = s.before;
    ft_refine_bins<false>(s, b, row);
    for (;;) {
        ft_fill_bins<true>(s, b, row);
        ft_find_bin(s, b, row, target - weight_before);
        weight_before += s.before;
        ft_list_bin<true>(s, b, row);
        if (s.n_listed <= FT_SAMPLE_LIST)
            break;
        ft_refine_bins<true>(s, b, row);
    }
    ft_ranked_token found = ft_find_listed(s, target - (weight_before - s.before));
    found.sum += weight_before - s.before;
    return found;
}

/* Adds all tokens to cleared bins. */
__device__ __forceinline__ void ft_fill_initial_bins(ft_sample_shared &s, ft_weight_bins &b,
                                                     const ft_logits_row &row)
{
    b.refined = false;
    ft_fill_bins<false>(s, b, row);
}

/* The token at which the cumulative weight exceeds `target`, which is below b.total. */
__device__ __forceinline__ ft_ranked_token ft_find_token(ft_sample_shared &s, ft_weight_bins &b,
                                                         const ft_logits_row &row, ft_u64 target)
{
    if (b.refined) {
        ft_clear_bins(s);
        __syncthreads();
        ft_fill_initial_bins(s, b, row);
    }
    ft_find_bin(s, b, row, target);
    ft_list_bin<false>(s, b, row);
    return s.n_listed <= FT_SAMPLE_LIST ? ft_find_listed(s, target)
                                        : ft_find_in_refined_bins(s, b, row, target);
}

#endif
