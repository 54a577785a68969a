/*
 * groupwise_wgmma_split_k.cuh - tiles whose stretches the blocks of a cluster share out, where there are
 * fewer tiles than multiprocessors.
 *
 * Of N blocks the one of rank r has stretches r, r + N, ...: in a step all compute neighbouring
 * ones.  Each block finishes some of the tile's tokens.  When a stretch is there, its sums go to
 * those who finish them, from registers to their shared memory; these add the stretches of a step
 * in their order when all of them have come, which is while the next step is computed.  So there
 * is room for two steps: who sends what is two steps further has had all of the step between, and
 * nobody sends that before it has added up what was in its place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_WGMMA_SPLIT_K_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_WGMMA_SPLIT_K_CUH

#include "kernels/cuda/gemm/groupwise/groupwise_wgmma.cuh"
#include "kernels/cuda/ptx/cluster_send.cuh"

#ifdef FT_HAS_WGMMA

/* A block's share of a tile. */
template <class FORM> struct wgmma_sharer {
    const wgmma_args &a;
    float4 *totals, *came; /* a thread's own: of the eights that this block finishes; of a step */
    uint64_t *arrivals;
    int rank, eights, first, count; /* eights: of the tile; first, count: of this block */
    int owners;                     /* blocks that finish any */

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
    /* Where an eight of a stretch comes to. */
    __device__ __forceinline__ float4 *place(int step, int of, int eight) const
    {
        return came + ((step % 2 * a.ranks + of) * a.each + eight) * FORM::workers;
    }
    /*
     * To each block its eights of the stretch, which begins anew.  Who finishes none gets zeros: it
     * must not run ahead of the others.
     */
    __device__ __forceinline__ void send(int step, float (&stretch)[FORM::tokens / 2]) const
    {
        uint32_t barrier = ft_shared_address(&arrivals[step % 2]);
        uint32_t own = ft_shared_address(place(step, rank, 0));
        int to = 0, eight = 0;
#pragma unroll
        for (int i = 0; i < FORM::eights; i++) {
            if (i < eights)
                ft_peer_send(ft_peer_address(own + eight * FORM::eight, to),
                             ft_peer_address(barrier, to), &stretch[4 * i]);
            bool last = ++eight == a.each;
            eight = last ? 0 : eight;
            to += last;
            stretch[4 * i] = stretch[4 * i + 1] = stretch[4 * i + 2] = stretch[4 * i + 3] = 0.0f;
        }
        for (to = owners; to < a.ranks; to++)
            ft_peer_send(ft_peer_address(own, to), ft_peer_address(barrier, to), stretch);
    }
    /* Add up what has come of a step. */
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
    /* A stretch of this block is there. */
    __device__ __forceinline__ void add(int number, bool is_last,
                                        float (&stretch)[FORM::tokens / 2]) const
    {
        int step = number / a.ranks;
        if (step == 0)
            ft_cluster_wait(); /* all blocks have begun */
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
