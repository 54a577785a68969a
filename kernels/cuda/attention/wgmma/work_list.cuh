/*
 * work_list.cuh - the query tiles and heads that one CTA processes.
 *
 * The batch lists tiles of 64 queries, with empty ones among them. Those that begin a tile of
 * `queries` count; each of them makes a work item with every head. The CTAs take items in rounds,
 * and every other round runs in reverse order: where items become shorter, a CTA that had a long
 * item gets a short one next. The producer warp looks through 32 tiles at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_WGMMA_WORK_LIST_CUH
#define FT_KERNELS_CUDA_ATTENTION_WGMMA_WORK_LIST_CUH

#include "kernels/cuda/attention/wgmma/tile.cuh"
#include "kernels/cuda/cuda.h"

#ifdef FT_HAS_WGMMA

/* `backward`: from the last tile of the batch to the first. */
template <int queries, bool backward> struct work_list {
    const ft_cuda_query_tile *tiles;
    int count, heads;
    int round = 0;
    int group = 0;           /* the first of 32 tiles */
    int before = 0;          /* tiles that count in earlier groups */
    unsigned counted;        /* tiles of this group that count */
    ft_cuda_query_tile tile; /* of this lane */

    __device__ __forceinline__ work_list(const ft_cuda_query_tile *tiles, size_t count, int heads)
        : tiles(tiles), count((int) count), heads(heads)
    {
        load_group();
    }

    __device__ __forceinline__ void load_group()
    {
        int index = group + (int) threadIdx.x % 32;
        tile = index < count ? tiles[backward ? count - 1 - index : index] : ft_cuda_query_tile{};
        counted = __ballot_sync(~0u, tile.query < tile.length && tile.query % queries == 0);
    }

    /* The next item of this CTA; length 0: none is left. */
    __device__ __forceinline__ ft_cuda_query_tile next(int *head)
    {
        int cta = (int) blockIdx.x, ctas = (int) gridDim.x;
        int item = round * ctas + (round % 2 == 0 ? cta : ctas - 1 - cta), index = item / heads;
        round++;
        *head = item % heads;
        while (index >= before + __popc(counted)) {
            if (group + 32 >= count)
                return ft_cuda_query_tile{};
            before += __popc(counted);
            group += 32;
            load_group();
        }
        unsigned lane = threadIdx.x % 32;
        bool mine = (counted >> lane & 1) && __popc(counted & ((1u << lane) - 1)) == index - before;
        int owner = __ffs((int) __ballot_sync(~0u, mine)) - 1;
        return ft_cuda_query_tile{ __shfl_sync(~0u, tile.first, owner),
                                   __shfl_sync(~0u, tile.length, owner),
                                   __shfl_sync(~0u, tile.query, owner),
                                   __shfl_sync(~0u, tile.sequence, owner) };
    }
};

#endif
#endif
