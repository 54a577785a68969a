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
template <class FORM> struct wgmma_sharer {
    const wgmma_args &a;
    float4 *totals, *came; /* private to each thread: totals of the 8-token tiles that this block
                            * finishes; partial sums of a round */
    uint64_t *arrivals;
    int rank, eights, first, count; /* m8_tiles: of the tile; first, count: of this block */
    int owners;                     /* thread blocks that finish any */

    __device__ __forceinline__ wgmma_sharer(const wgmma_shared<FORM> &s, const wgmma_way<FORM> &way,
                                            size_t m)
        : a(s.a), totals(s.totals()), came(totals + s.a.each * FORM::workers),
          arrivals(s.arrivals()), rank(way.rank)
    {
        int left = ((int) m - way.tile.token + 7) / 8;
        eights = left < FORM::eights ? left : FORM::eights;
        first = rank * a.each;
        count = eights - first < a.each ? eights - first : a.each;
        count = count < 0 ? 0 : count;
        owners = (eights + a.each - 1) / a.each;
    }
    __device__ __forceinline__ int steps() const
    {
        return (a.all.stretches + a.ranks - 1) / a.ranks;
    }
    /* Where an 8-token tile of a split arrives. */
    __device__ __forceinline__ float4 *place(int step, int of, int m8_tile) const
    {
        return came + ((step % 2 * a.ranks + of) * a.each + m8_tile) * FORM::workers;
    }
    /*
     * Send each thread block its part of the split, and reset the accumulators. A block that
     * finishes none receives zeros, which keep it from running ahead of the others.
     */
    __device__ __forceinline__ void send(int step, float (&stretch)[FORM::tokens / 2]) const
    {
        uint32_t barrier = ft_shared_address(&arrivals[step % 2]);
        uint32_t own = ft_shared_address(place(step, rank, 0));
        int to = 0, m8_tile = 0;
#pragma unroll
        for (int i = 0; i < FORM::eights; i++) {
            if (i < eights)
                ft_peer_send(ft_peer_address(own + m8_tile * FORM::eight, to),
                             ft_peer_address(barrier, to), &stretch[4 * i]);
            bool last = ++m8_tile == a.each;
            m8_tile = last ? 0 : m8_tile;
            to += last;
            stretch[4 * i] = stretch[4 * i + 1] = stretch[4 * i + 2] = stretch[4 * i + 3] = 0.0f;
        }
        for (to = owners; to < a.ranks; to++)
            ft_peer_send(ft_peer_address(own, to), ft_peer_address(barrier, to), stretch);
    }
    /* Add the partial sums of a round. */
    __device__ __forceinline__ void collect(int step) const
    {
        int left = a.all.stretches - step * a.ranks, stretches = left < a.ranks ? left : a.ranks;
        if (threadIdx.x == 0)
            ft_barrier_expect(&arrivals[step % 2],
                              stretches * (count > 0 ? count : 1) * FORM::eight);
        ft_peer_wait(&arrivals[step % 2], step / 2 % 2);
        for (int i = 0; i < count; i++) {
            float4 *total = &totals[i * FORM::workers];
            float4 sum = *place(step, 0, i);
            if (step > 0) {
                float4 before = *total;
                sum = make_float4(before.x + sum.x, before.y + sum.y, before.z + sum.z,
                                  before.w + sum.w);
            }
            for (int of = 1; of < stretches; of++) {
                float4 next = *place(step, of, i);
                sum = make_float4(sum.x + next.x, sum.y + next.y, sum.z + next.z, sum.w + next.w);
            }
            *total = sum;
        }
    }
    /* A split of this block is complete. */
    __device__ __forceinline__ void add(int number, bool is_last,
                                        float (&stretch)[FORM::tokens / 2]) const
    {
        int step = number / a.ranks;
        if (step == 0)
            ft_cluster_wait(); /* all thread blocks have started */
        else
            collect(step - 1);
        send(step, stretch);
        if (is_last)
            for (; step < steps(); step++)
                collect(step);
    }
};

#endif
#endif
