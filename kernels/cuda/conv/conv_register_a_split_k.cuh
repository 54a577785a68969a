/*
 * conv_register_a_split_k.cuh - tiles of conv_register_a.cuh whose sums are of the halves of their runs.
 *
 * Small images make few tiles, and each unpacks all of its weights, so they had better be wide, and
 * then they are fewer still.  So two blocks, a cluster, share a tile: the one of rank 0 adds up the
 * first half of the runs, the other one the rest.  Each team finishes in the block of its own
 * number and gets the sums of its like in the other block, from registers to shared memory.  Where
 * there are tiles enough a block computes both halves, and keeps the first one for itself: so an
 * image has the same bits alone as among others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_SPLIT_K_CUH
#define FT_KERNELS_CUDA_CONV_CONV_REGISTER_A_SPLIT_K_CUH

#include "kernels/cuda/ptx/cluster_send.cuh"
#include "kernels/cuda/conv/conv_wgmma_tiles.cuh"
#include "kernels/cuda/ptx/warp.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Parts ---------------------------------------------------------------------------------- */

/* What a block computes at a time: runs first .. end - 1 of a tile, which are all of them ... */
template <bool halves> struct held_part {
    int tile = (int) blockIdx.x, end;
    static constexpr int first = 0;

    __device__ __forceinline__ held_part(const conv_product &, int runs) : end(runs) {}
    __device__ __forceinline__ void advance(const conv_product &p, int)
    {
        tile += p.places;
    }
    /* Runs from this part on. */
    __device__ __forceinline__ int left(const conv_product &p, int runs) const
    {
        return (p.tiles - tile + p.places - 1) / p.places * runs;
    }
};

/* ... or a half. */
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

/* ---- Exchange ------------------------------------------------------------------------------- */

/* Barriers: sums of a team have come; and are read, so that the next tile's may. */
typedef struct held_barriers {
    uint64_t came[2], taken[2];

    /* By one thread, before all others begin. */
    __device__ __forceinline__ void set_up()
    {
        for (int team = 0; team < 2; team++) {
            ft_barrier_init(&came[team], 1);
            ft_barrier_init(&taken[team], 1);
        }
    }
} held_barriers;

/*
 * Of a team: where it meets its like.  Each lane sends what one lane receives.
 */
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
    /* To who finishes them, once the tile before is out of the way. */
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
    /* What a lane sends to itself: outside a cluster there are no peers. */
    __device__ __forceinline__ void keep(const float (&total)[FORM::windows / 2]) const
    {
#pragma unroll
        for (int i = 0; i < fours; i++)
            *(float4 *) (own() + i * apart) =
                make_float4(total[4 * i], total[4 * i + 1], total[4 * i + 2], total[4 * i + 3]);
    }
    /* The other half to this one: two addends, whose order does not matter. */
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
                __syncwarp(); /* more loads at a time take registers that runs need */
        }
    }
    /* By the thread that stored the tile: it has left the place of the sums. */
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
