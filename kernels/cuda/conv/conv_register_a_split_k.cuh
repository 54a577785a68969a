/*
 * conv_register_a_split_k.cuh - split-K tiles of conv_register_a.cuh.
 *
 * Small images give few tiles. Each tile unpacks all of its weights, so tiles should be wide, which
 * makes them fewer still. A cluster of two CTAs therefore shares a tile: rank 0 accumulates the
 * first half of the K tiles, rank 1 the rest. Warpgroup i finishes in the CTA of rank i, and
 * receives the partial sums of its counterpart from the registers of the other CTA through
 * distributed shared memory. If there are enough tiles, one CTA computes both halves and keeps the
 * first one. An image therefore has the same bits alone as in a batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_SPLIT_K_CUH
#define FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_SPLIT_K_CUH

#include "kernels/cuda/ptx/cluster_send.cuh"
#include "kernels/cuda/conv/conv_wgmma_tiles.cuh"
#include "kernels/cuda/ptx/warp.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Work tiles ----------------------------------------------------------------------------- */

/*
 * Current work of a CTA: K tiles first .. end - 1 of a tile. Without split-K these are all of them
 * ...
 */
template <bool halves> struct held_part {
    int tile = (int) blockIdx.x, end;
    static constexpr int first = 0;

    __device__ __forceinline__ held_part(const conv_product &, int runs) : end(runs) {}
    __device__ __forceinline__ void advance(const conv_product &p, int)
    {
        tile += p.places;
    }
    /* Remaining K tiles, including this work tile. */
    __device__ __forceinline__ int left(const conv_product &p, int runs) const
    {
        return (p.tiles - tile + p.places - 1) / p.places * runs;
    }
};

/* ... with split-K one half. */
template <> struct held_part<true> {
    int tile, half, first, end;
    unsigned round = 0; /* tiles before this one */

    __device__ __forceinline__ held_part(const conv_product &p, int runs)
        : tile(p.halves == 2 ? (int) blockIdx.x / 2 : (int) blockIdx.x),
          half((int) blockIdx.x - tile * p.halves)
    {
        take(runs);
    }
    __device__ __forceinline__ void take(int runs)
    {
        int middle = (runs + 1) / 2;
        first = half == 0 ? 0 : middle;
        end = half == 0 ? middle : runs;
    }
    __device__ __forceinline__ void advance(const conv_product &p, int runs)
    {
        if (p.halves == 1)
            half ^= 1;
        if (p.halves == 2 || half == 0) {
            round++;
            tile += p.places;
        }
        take(runs);
    }
    __device__ __forceinline__ int left(const conv_product &p, int runs) const
    {
        int tiles = (p.tiles - tile + p.places - 1) / p.places;
        return tiles * (p.halves == 1 ? runs : end - first);
    }
};

/* ---- Exchange of partial sums --------------------------------------------------------------- */

/*
 * Barriers of each warpgroup: the partial sums have arrived; they have been read, so that those of
 * the next tile may arrive.
 */
typedef struct held_barriers {
    uint64_t came[2], taken[2];

    /* Called by one thread before all others start. */
    __device__ __forceinline__ void set_up()
    {
        for (int team = 0; team < 2; team++) {
            ft_barrier_init(&came[team], 1);
            ft_barrier_init(&taken[team], 1);
        }
    }
} held_barriers;

/* One warpgroup's exchange with its counterpart. Each lane sends what one lane receives. */
template <class FORM> struct held_meeting {
    const conv_product &p;
    int team, thread;
    unsigned round; /* tiles before this one */
    char *sums;
    uint64_t *came, *taken;

    static constexpr int fours = FORM::windows / 8, apart = CONV_TEAM * 16; /* bytes */

    __device__ __forceinline__ held_meeting(const conv_product &p, char *results,
                                            held_barriers *barriers, unsigned round)
        : p(p), team(ft_warp_of_block() / (CONV_TEAM / 32)), thread((int) threadIdx.x % CONV_TEAM),
          round(round), sums(results + team * FORM::results), came(&barriers->came[team]),
          taken(&barriers->taken[team])
    {
    }
    __device__ __forceinline__ bool finishes(int half) const
    {
        return p.halves == 2 ? half == team : half == 1;
    }
    __device__ __forceinline__ char *own() const
    {
        return sums + thread * 16;
    }
    /* Sends to the warpgroup that finishes the tile, after it has read the previous tile's sums. */
    __device__ __forceinline__ void send(const float (&total)[FORM::windows / 2]) const
    {
        if (round > 0)
            ft_peer_wait(taken, (round - 1) % 2);
        if (p.halves == 1)
            return keep(total);
        uint32_t to = ft_peer_address(ft_shared_address(own()), team);
        uint32_t barrier = ft_peer_address(ft_shared_address(came), team);
#pragma unroll
        for (int i = 0; i < fours; i++)
            ft_peer_send(to + i * apart, barrier, &total[4 * i]);
    }
    /* Stores the sums for the same lane: there is no peer outside a cluster. */
    __device__ __forceinline__ void keep(const float (&total)[FORM::windows / 2]) const
    {
#pragma unroll
        for (int i = 0; i < fours; i++)
            *(float4 *) (own() + i * apart) =
                make_float4(total[4 * i], total[4 * i + 1], total[4 * i + 2], total[4 * i + 3]);
    }
    /* Adds the other half. With two addends the order does not matter. */
    __device__ __forceinline__ void receive(float (&total)[FORM::windows / 2]) const
    {
        if (p.halves == 2) {
            if (thread == 0)
                ft_barrier_expect(came, fours * apart);
            ft_peer_wait(came, round % 2);
        }
#pragma unroll
        for (int i = 0; i < fours; i++) {
            float4 sum = *(const float4 *) (own() + i * apart);
            total[4 * i] += sum.x;
            total[4 * i + 1] += sum.y;
            total[4 * i + 2] += sum.z;
            total[4 * i + 3] += sum.w;
            if (i % 4 == 3)
                __syncwarp(); /* more loads in flight would take registers that the main loop needs
                               */
        }
    }
    /* Called by the thread that stored the tile, after the copy has read the buffer of the sums. */
    __device__ __forceinline__ void give_back() const
    {
        ft_stores_read();
        if (p.halves == 2)
            ft_peer_arrive(ft_peer_address(ft_shared_address(taken), 1 - team));
        else
            ft_barrier_arrive(taken);
    }
};

#endif
#endif
