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
typedef struct ft_bins {
    float largest, slope, scale; /* by logit: all tokens with any weight */
    float limit;                 /* tokens with smaller logits have no weight */
    bool counts;                 /* every token has weight 1 */
    bool narrow;                 /* refined, by bits or id: only tokens in the following ranges */
    uint32_t key_low, key_high;
    int32_t id_low, id_high;
    int shift;
    ft_wide before, mine; /* sums of weights before this warp's 64 bins, and in them */
    ft_wide total;
} ft_bins;

/*
 * Bin by logit, as a float from 2^23 on, so that the bin is in its last bits. After the last bin,
 * where tokens have no weight, each lane has a dummy bin of its own.
 */
__device__ __forceinline__ float ft_bin_float(const ft_bins &b, float value)
{
    return fmaf(b.largest - value, b.scale, 8388608.0f);
}

/*
 * Bin in a refined range; FT_CHOOSE_BINS: outside. Tokens earlier in the order are in no later bin.
 */
__device__ __forceinline__ uint32_t ft_narrow_bin(const ft_bins &b, int32_t id, float value)
{
    uint32_t key = ft_order_key(value);
    if (key < b.key_low || key > b.key_high || id < b.id_low || id > b.id_high)
        return FT_CHOOSE_BINS;
    return (b.key_low < b.key_high ? b.key_high - key : (uint32_t) (id - b.id_low)) >> b.shift;
}

template <bool narrow>
__device__ __forceinline__ bool ft_is_in_bin(const ft_bins &b, int32_t id, float value, int bin)
{
    if constexpr (narrow)
        return ft_narrow_bin(b, id, value) == (uint32_t) bin;
    else
        return ft_bin_float(b, value) == 8388608.0f + (float) bin;
}

__device__ __forceinline__ uint32_t ft_weigh(const ft_bins &b, float value)
{
    return b.counts ? 1 : ft_choice_mass(ft_choice_exponent(value, b.largest, b.slope));
}

__device__ __forceinline__ void ft_clear_bins(ft_choose_shared &s)
{
    for (int i = (int) threadIdx.x; i < FT_CHOOSE_BINS; i += FT_CHOOSE_THREADS) {
        s.low[i] = 0;
        s.high[i] = 0;
    }
}

/* The sum of a bin may exceed 32 bits: returns true, and the caller adds the carry. */
__device__ __forceinline__ bool ft_add_to_bin(ft_choose_shared &s, uint32_t bin, uint32_t weight)
{
    return atomicAdd(&s.low[bin], weight) > ~weight;
}

/* Adds all tokens by their logits, in branch-free vectors of four. */
__device__ __forceinline__ void ft_fill_by_logit(ft_choose_shared &s, const ft_bins &b,
                                                 const ft_choose_row &row)
{
    float last = 8388608.0f + FT_CHOOSE_BINS + (float) (threadIdx.x % 32);
    ft_each_four(row, [&](uint32_t, float4 v) {
        const float value[4] = { v.x, v.y, v.z, v.w };
        uint32_t bin[4], weight[4] = { 1, 1, 1, 1 };
        bool carry[4];
        if (fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)) < b.limit)
            return;
        if (!b.counts)
#pragma unroll
            for (int i = 0; i < 4; i++)
                weight[i] = ft_weigh(b, value[i]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bin[i] = __float_as_uint(fminf(ft_bin_float(b, value[i]), last)) - 0x4b000000u;
            carry[i] = ft_add_to_bin(s, bin[i], weight[i]);
        }
        if (carry[0] | carry[1] | carry[2] | carry[3])
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (carry[i])
                    atomicAdd(&s.high[bin[i]], 1u);
    });
}

__device__ __forceinline__ void ft_fill_narrow(ft_choose_shared &s, const ft_bins &b,
                                               const ft_choose_row &row)
{
    ft_each(row, [&](int32_t id, float value) {
        uint32_t bin = ft_narrow_bin(b, id, value);
        if (bin < FT_CHOOSE_BINS && ft_add_to_bin(s, bin, ft_weigh(b, value)))
            atomicAdd(&s.high[bin], 1u);
    });
}

/*
 * Reduces the bins over all CTAs of the cluster: each CTA sums a range of bins, which no other CTA
 * accesses meanwhile, and writes the sums to all.
 */
__device__ __forceinline__ void ft_join_bins(ft_choose_shared &s, const ft_choose_row &row)
{
    ft_cluster_join(row.blocks);
    if (row.blocks == 1)
        return;
    uint32_t share = FT_CHOOSE_BINS / row.blocks, bin = ft_cluster_rank() * share + threadIdx.x;
    if (threadIdx.x < share) {
        ft_wide sum = 0;
#pragma unroll 1
        for (uint32_t block = 0; block < row.blocks; block++)
            sum += ((ft_wide) *ft_cluster_peer(&s.high[bin], block) << 32) +
                   *ft_cluster_peer(&s.low[bin], block);
#pragma unroll 1
        for (uint32_t block = 0; block < row.blocks; block++) {
            *ft_cluster_peer(&s.high[bin], block) = (uint32_t) (sum >> 32);
            *ft_cluster_peer(&s.low[bin], block) = (uint32_t) sum;
        }
    }
    ft_cluster_join(row.blocks);
}

__device__ __forceinline__ ft_wide ft_bin_sum(const ft_choose_shared &s, uint32_t bin)
{
    return ((ft_wide) s.high[bin] << 32) + s.low[bin];
}

/* Fills cleared bins; b.total becomes the sum of all weights. */
template <bool narrow>
__device__ __forceinline__ void ft_fill_bins(ft_choose_shared &s, ft_bins &b,
                                             const ft_choose_row &row)
{
    if constexpr (narrow)
        ft_fill_narrow(s, b, row);
    else
        ft_fill_by_logit(s, b, row);
    ft_join_bins(s, row);
    uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    b.mine = ft_sum_warp(ft_bin_sum(s, 2 * threadIdx.x) + ft_bin_sum(s, 2 * threadIdx.x + 1));
    if (lane == 0)
        s.part[warp] = b.mine;
    __syncthreads();
    b.before = ft_sum_parts(s, warp);
    b.total = ft_sum_parts(s, FT_CHOOSE_WARPS);
}

/*
 * Finds the bin in which the cumulative weight exceeds `place`, and the weight before it: s.bin,
 * s.before.
 */
__device__ __forceinline__ void ft_find_bin(ft_choose_shared &s, const ft_bins &b,
                                            const ft_choose_row &row, ft_wide place)
{
    if (threadIdx.x == 0)
        s.listed = 0;
    if (b.before <= place && place - b.before < b.mine) {
        uint32_t bin = 2 * threadIdx.x;
        ft_wide first = ft_bin_sum(s, bin), both = first + ft_bin_sum(s, bin + 1);
        ft_wide before = b.before + ft_scan_warp(both) - both;
        if (before <= place && place - before < both) {
            bool second = place - before >= first;
            s.bin = (int) bin + second;
            s.before = before + (second ? first : 0);
        }
    }
    ft_cluster_join(row.blocks); /* all CTAs are ready to receive tokens */
}

/* Appends a token to the lists of all CTAs, at an index allocated by the first CTA. */
__device__ __forceinline__ void ft_list(ft_choose_shared &s, const ft_bins &b,
                                        const ft_choose_row &row, int32_t id, float value)
{
    uint32_t slot = atomicAdd(ft_cluster_peer(&s.listed, 0), 1u), weight = ft_weigh(b, value);
#pragma unroll 1
    for (uint32_t block = 0; block < row.blocks; block++) {
        if (block > 0)
            atomicAdd(ft_cluster_peer(&s.listed, block), 1u);
        if (slot >= FT_CHOOSE_LIST)
            continue;
        *ft_cluster_peer(&s.value[slot], block) = value;
        *ft_cluster_peer(&s.id[slot], block) = id;
        *ft_cluster_peer(&s.weight[slot], block) = weight;
    }
}

template <bool narrow>
__device__ __forceinline__ void ft_list_bin(ft_choose_shared &s, const ft_bins &b,
                                            const ft_choose_row &row)
{
    int bin = s.bin;
    ft_each_four(row, [&](uint32_t at, float4 v) {
        int32_t id = (int32_t) (row.first + at);
        const float value[4] = { v.x, v.y, v.z, v.w };
        bool is_in[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            is_in[i] = ft_is_in_bin<narrow>(b, id + i, value[i], bin);
        if (is_in[0] | is_in[1] | is_in[2] | is_in[3])
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (is_in[i])
                    ft_list(s, b, row, id + i, value[i]);
    });
    ft_cluster_join(row.blocks);
}

/* The listed token at which the cumulative weight exceeds `place`; the list contains it. */
__device__ __forceinline__ ft_ranked_token ft_find_listed(ft_choose_shared &s, ft_wide place)
{
    int count = (int) s.listed, lane = (int) threadIdx.x % 32;
    for (int i = (int) threadIdx.x / 32; i < count; i += FT_CHOOSE_WARPS) {
        float value = s.value[i];
        int32_t id = s.id[i];
        ft_wide sum = 0;
        for (int j = lane; j < count; j += 32) {
            float other = s.value[j];
            if (other > value || (other == value && s.id[j] <= id))
                sum += s.weight[j];
        }
        sum = s.before + ft_sum_warp(sum);
        if (lane == 0 && place < sum && sum - s.weight[i] <= place)
            s.place = { value, id, sum };
    }
    __syncthreads();
    return s.place;
}

/* Divides the bin that overflowed the list into bins again. */
template <bool narrow>
__device__ __forceinline__ void ft_narrow_bins(ft_choose_shared &s, ft_bins &b,
                                               const ft_choose_row &row)
{
    int bin = s.bin;
    if (threadIdx.x == 0) {
        s.key_low = ~0u;
        s.key_high = 0;
        s.id_low = INT32_MAX;
        s.id_high = 0;
    }
    ft_cluster_join(row.blocks);
    ft_each(row, [&](int32_t id, float value) {
        if (!ft_is_in_bin<narrow>(b, id, value, bin))
            return;
        uint32_t key = ft_order_key(value);
#pragma unroll 1
        for (uint32_t block = 0; block < row.blocks; block++) {
            atomicMin(ft_cluster_peer(&s.key_low, block), key);
            atomicMax(ft_cluster_peer(&s.key_high, block), key);
            atomicMin(ft_cluster_peer(&s.id_low, block), id);
            atomicMax(ft_cluster_peer(&s.id_high, block), id);
        }
    });
    ft_clear_bins(s);
    ft_cluster_join(row.blocks);
    b.narrow = true;
    b.key_low = s.key_low;
    b.key_high = s.key_high;
    b.id_low = s.id_low;
    b.id_high = s.id_high;
    uint32_t range =
        b.key_low < b.key_high ? b.key_high - b.key_low : (uint32_t) (b.id_high - b.id_low);
    b.shift = 0;
    while (range >> b.shift >= FT_CHOOSE_BINS)
        b.shift++;
}

/* Slow path for an overflowing list. Afterwards `b` no longer covers the whole row. */
__device__ __forceinline__ ft_ranked_token ft_find_crowded(ft_choose_shared &s, ft_bins &b,
                                                           const ft_choose_row &row, ft_wide place)
{
    ft_wide passed = s.before;
    ft_narrow_bins<false>(s, b, row);
    for (;;) {
        ft_fill_bins<true>(s, b, row);
        ft_find_bin(s, b, row, place - passed);
        passed += s.before;
        ft_list_bin<true>(s, b, row);
        if (s.listed <= FT_CHOOSE_LIST)
            break;
        ft_narrow_bins<true>(s, b, row);
    }
    ft_ranked_token found = ft_find_listed(s, place - (passed - s.before));
    found.sum += passed - s.before;
    return found;
}

/* Adds all tokens to cleared bins. */
__device__ __forceinline__ void ft_begin_bins(ft_choose_shared &s, ft_bins &b,
                                              const ft_choose_row &row)
{
    b.narrow = false;
    ft_fill_bins<false>(s, b, row);
}

/* The token at which the cumulative weight exceeds `place`, which is below b.total. */
__device__ __forceinline__ ft_ranked_token ft_find_token(ft_choose_shared &s, ft_bins &b,
                                                         const ft_choose_row &row, ft_wide place)
{
    if (b.narrow) {
        ft_clear_bins(s);
        __syncthreads();
        ft_begin_bins(s, b, row);
    }
    ft_find_bin(s, b, row, place);
    ft_list_bin<false>(s, b, row);
    return s.listed <= FT_CHOOSE_LIST ? ft_find_listed(s, place)
                                      : ft_find_crowded(s, b, row, place);
}

#endif
