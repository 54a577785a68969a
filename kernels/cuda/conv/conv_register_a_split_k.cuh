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
template <bool split_k> struct register_a_work {
    int tile = (int) blockIdx.x, end;
    static constexpr int first = 0;

    __device__ __forceinline__ register_a_work(const conv_gemm_params &, int k_tiles) : end(k_tiles)
    {
    }
    __device__ __forceinline__ void advance(const conv_gemm_params &p, int)
    {
        tile += p.concurrent_tiles;
    }
    /* Remaining K tiles, including this work tile. */
    __device__ __forceinline__ int k_tiles_left(const conv_gemm_params &p, int k_tiles) const
    {
        return (p.tiles - tile + p.concurrent_tiles - 1) / p.concurrent_tiles * k_tiles;
    }
};

/* ... with split-K one half. */
template <> struct register_a_work<true> {
    int tile, split, first, end;
    unsigned tile_index = 0; /* tiles before this one */

    __device__ __forceinline__ register_a_work(const conv_gemm_params &p, int k_tiles)
        : tile(p.split_k_ctas == 2 ? (int) blockIdx.x / 2 : (int) blockIdx.x),
          split((int) blockIdx.x - tile * p.split_k_ctas)
    {
        set_range(k_tiles);
    }
    __device__ __forceinline__ void set_range(int k_tiles)
    {
        int midpoint = (k_tiles + 1) / 2;
        first = split == 0 ? 0 : midpoint;
        end = split == 0 ? midpoint : k_tiles;
    }
    __device__ __forceinline__ void advance(const conv_gemm_params &p, int k_tiles)
    {
        if (p.split_k_ctas == 1)
            split ^= 1;
        if (p.split_k_ctas == 2 || split == 0) {
            tile_index++;
            tile += p.concurrent_tiles;
        }
        set_range(k_tiles);
    }
    __device__ __forceinline__ int k_tiles_left(const conv_gemm_params &p, int k_tiles) const
    {
        int tiles = (p.tiles - tile + p.concurrent_tiles - 1) / p.concurrent_tiles;
        return tiles * (p.split_k_ctas == 1 ? k_tiles : end - first);
    }
};

/* ---- Exchange of partial sums --------------------------------------------------------------- */

/*
 * Barriers of each warpgroup: the partial sums have arrived; they have been read, so that those of
 * the next tile may arrive.
 */
typedef struct split_k_barriers {
    uint64_t full[2], empty[2];

    /* Called by one thread before all others start. */
    __device__ __forceinline__ void init()
    {
        for (int consumer = 0; consumer < 2; consumer++) {
            ft_mbarrier_init(&full[consumer], 1);
            ft_mbarrier_init(&empty[consumer], 1);
        }
    }
} split_k_barriers;

/* One warpgroup's exchange with its counterpart. Each lane sends what one lane receives. */
template <class FORM> struct split_k_exchange {
    const conv_gemm_params &p;
    int consumer, thread;
    unsigned tile_index; /* tiles before this one */
    char *sums;
    uint64_t *full, *empty;

    static constexpr int vectors = FORM::windows / 8,
                         vector_stride = CONV_WARPGROUP * 16; /* bytes */

    __device__ __forceinline__ split_k_exchange(const conv_gemm_params &p, char *out_tile,
                                                split_k_barriers *barriers, unsigned tile_index)
        : p(p), consumer(ft_warp_id() / (CONV_WARPGROUP / 32)),
          thread((int) threadIdx.x % CONV_WARPGROUP), tile_index(tile_index),
          sums(out_tile + consumer * FORM::out_tile), full(&barriers->full[consumer]),
          empty(&barriers->empty[consumer])
    {
    }
    __device__ __forceinline__ bool finishes(int split) const
    {
        return p.split_k_ctas == 2 ? split == consumer : split == 1;
    }
    __device__ __forceinline__ char *own_address() const
    {
        return sums + thread * 16;
    }
    /* Sends to the warpgroup that finishes the tile, after it has read the previous tile's sums. */
    __device__ __forceinline__ void send(const float (&total)[FORM::windows / 2]) const
    {
        if (tile_index > 0)
            ft_mbarrier_wait_cluster(empty, (tile_index - 1) % 2);
        if (p.split_k_ctas == 1)
            return store_local(total);
        uint32_t to = ft_cluster_smem_address(ft_smem_address(own_address()), consumer);
        uint32_t barrier = ft_cluster_smem_address(ft_smem_address(full), consumer);
#pragma unroll
        for (int i = 0; i < vectors; i++)
            ft_st_async_f32x4(to + i * vector_stride, barrier, &total[4 * i]);
    }
    /* Stores the sums for the same lane: there is no peer outside a cluster. */
    __device__ __forceinline__ void store_local(const float (&total)[FORM::windows / 2]) const
    {
#pragma unroll
        for (int i = 0; i < vectors; i++)
            *(float4 *) (own_address() + i * vector_stride) =
                make_float4(total[4 * i], total[4 * i + 1], total[4 * i + 2], total[4 * i + 3]);
    }
    /* Adds the other half. With two addends the order does not matter. */
    __device__ __forceinline__ void receive(float (&total)[FORM::windows / 2]) const
    {
        if (p.split_k_ctas == 2) {
            if (thread == 0)
                ft_mbarrier_arrive_expect_tx(full, vectors * vector_stride);
            ft_mbarrier_wait_cluster(full, tile_index % 2);
        }
#pragma unroll
        for (int i = 0; i < vectors; i++) {
            float4 sum = *(const float4 *) (own_address() + i * vector_stride);
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
    __device__ __forceinline__ void release_exchange() const
    {
        ft_bulk_wait_read();
        if (p.split_k_ctas == 2)
            ft_mbarrier_arrive_peer(ft_cluster_smem_address(ft_smem_address(empty), 1 - consumer));
        else
            ft_mbarrier_arrive(empty);
    }
};

#endif
#endif
