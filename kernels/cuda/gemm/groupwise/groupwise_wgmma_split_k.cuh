/*
 * groupwise_wgmma_split_k.cuh - split-K over a cluster, where there are fewer tiles than SMs.
 *
 * Of N thread blocks the one of rank r computes splits r, r + N, ...: in each round the cluster
 * computes N consecutive splits. Each block finishes some tokens of the tile. When a split is
 * complete, its partial sums go from registers to the shared memory of the blocks that finish them;
 * these add the splits of a round in order once all have arrived, which overlaps with the next
 * round. The buffers hold two rounds: a block that sends round i + 2 has received all of round i +
 * 1, and no block sends that before it has added round i.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_WGMMA_SPLIT_K_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_WGMMA_SPLIT_K_CUH

#include "kernels/cuda/gemm/groupwise/groupwise_wgmma.cuh"
#include "kernels/cuda/ptx/cluster_send.cuh"

#ifdef FT_HAS_WGMMA

/* A thread block's part of a shared tile. */
template <class CONFIG> struct wgmma_cluster_reducer {
    const wgmma_args &a;
    float4 *totals, *partials; /* private to each thread: totals of the 8-token tiles that this
                                * block finishes; partial sums of a round */
    uint64_t *partial_barriers;
    int rank, m8_tiles, first, count; /* m8_tiles: of the tile; first, count: of this block */
    int n_owners;                     /* thread blocks that finish any */

    __device__ __forceinline__ wgmma_cluster_reducer(const wgmma_smem<CONFIG> &s,
                                                     const wgmma_tile_scheduler<CONFIG> &scheduler,
                                                     size_t m)
        : a(s.a), totals(s.totals()), partials(totals + s.a.m8_tiles_per_rank * CONFIG::consumers),
          partial_barriers(s.partial_barriers()), rank(scheduler.rank)
    {
        int left = ((int) m - scheduler.tile.token + 7) / 8;
        m8_tiles = left < CONFIG::m8_tiles ? left : CONFIG::m8_tiles;
        first = rank * a.m8_tiles_per_rank;
        count = m8_tiles - first < a.m8_tiles_per_rank ? m8_tiles - first : a.m8_tiles_per_rank;
        count = count < 0 ? 0 : count;
        n_owners = (m8_tiles + a.m8_tiles_per_rank - 1) / a.m8_tiles_per_rank;
    }
    __device__ __forceinline__ int steps() const
    {
        return (a.all.splits + a.cluster_size - 1) / a.cluster_size;
    }
    /* Where an 8-token tile of a split arrives. */
    __device__ __forceinline__ float4 *partial_slot(int round, int of, int m8_tile) const
    {
        return partials + ((round % 2 * a.cluster_size + of) * a.m8_tiles_per_rank + m8_tile) *
                              CONFIG::consumers;
    }
    /*
     * Send each thread block its part of the split, and reset the accumulators. A block that
     * finishes none receives zeros, which keep it from running ahead of the others.
     */
    __device__ __forceinline__ void send(int round, float (&split)[CONFIG::tokens / 2]) const
    {
        uint32_t barrier = ft_smem_address(&partial_barriers[round % 2]);
        uint32_t own = ft_smem_address(partial_slot(round, rank, 0));
        int to = 0, m8_tile = 0;
#pragma unroll
        for (int i = 0; i < CONFIG::m8_tiles; i++) {
            if (i < m8_tiles)
                ft_st_async_f32x4(
                    ft_cluster_smem_address(own + m8_tile * CONFIG::m8_tile_bytes, to),
                    ft_cluster_smem_address(barrier, to), &split[4 * i]);
            bool last = ++m8_tile == a.m8_tiles_per_rank;
            m8_tile = last ? 0 : m8_tile;
            to += last;
            split[4 * i] = split[4 * i + 1] = split[4 * i + 2] = split[4 * i + 3] = 0.0f;
        }
        for (to = n_owners; to < a.cluster_size; to++)
            ft_st_async_f32x4(ft_cluster_smem_address(own, to),
                              ft_cluster_smem_address(barrier, to), split);
    }
    /* Add the partial sums of a round. */
    __device__ __forceinline__ void reduce_round(int round) const
    {
        int left = a.all.splits - round * a.cluster_size,
            splits = left < a.cluster_size ? left : a.cluster_size;
        if (threadIdx.x == 0)
            ft_mbarrier_arrive_expect_tx(&partial_barriers[round % 2],
                                         splits * (count > 0 ? count : 1) * CONFIG::m8_tile_bytes);
        ft_mbarrier_wait_cluster(&partial_barriers[round % 2], round / 2 % 2);
        for (int i = 0; i < count; i++) {
            float4 *total = &totals[i * CONFIG::consumers];
            float4 sum = *partial_slot(round, 0, i);
            if (round > 0) {
                float4 before = *total;
                sum = make_float4(before.x + sum.x, before.y + sum.y, before.z + sum.z,
                                  before.w + sum.w);
            }
            for (int of = 1; of < splits; of++) {
                float4 next = *partial_slot(round, of, i);
                sum = make_float4(sum.x + next.x, sum.y + next.y, sum.z + next.z, sum.w + next.w);
            }
            *total = sum;
        }
    }
    /* A split of this block is complete. */
    __device__ __forceinline__ void add(int number, bool is_last,
                                        float (&split)[CONFIG::tokens / 2]) const
    {
        int round = number / a.cluster_size;
        if (round == 0)
            ft_cluster_wait(); /* all thread blocks have started */
        else
            reduce_round(round - 1);
        send(round, split);
        if (is_last)
            for (; round < steps(); round++)
                reduce_round(round);
    }
};

#endif
#endif
