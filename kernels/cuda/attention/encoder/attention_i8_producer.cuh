/*
 * attention_i8_producer.cuh - the producer warps of int8 attention: loads queries, keys and
 * values by TMA, and transposes the values for the second GEMM.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_PRODUCER_CUH
#define FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_PRODUCER_CUH

#include "kernels/cuda/attention/encoder/attention_i8_work.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

#ifdef FT_HAS_WGMMA

/*
 * A warp transposes its part of a tile of values into panels of 64 keys. Row 16j + r is column 16j
 * + 2r, or 2r - 15 instead of 2r for r from 8 on. Keys are in the order of pack_codes().
 */
template <class SHAPE>
static __device__ __forceinline__ void transpose_values(uint8_t *to, const uint8_t *tile, int warp)
{
    constexpr int groups = SHAPE::width / 16;
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll 1
    for (int chunk = warp; chunk < SHAPE::keys / 32; chunk += SHAPE::transposers) {
        uint8_t *panel = to + chunk / 2 * 64 * SHAPE::width + 4 * t;
        const uint8_t *rows = tile + 32 * chunk * SHAPE::width;
#pragma unroll
        for (int j = 0; j < groups; j++) {
            uint32_t pair[4];
            ft_ldmatrix_x4_trans(pair, rows + ft_panel_offset<SHAPE::width, SHAPE::keys>(lane, j));
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int odd = 0; odd < 2; odd++)
                    *(uint32_t *) (panel +
                                   ft_panel_offset<64, SHAPE::width>(g, 2 * (chunk % 2) + half) +
                                   (16 * j + 8 * odd) * 64) =
                        __byte_perm(pair[2 * half], pair[2 * half + 1], odd ? 0x7531 : 0x6420);
        }
    }
}

/* One thread loads by TMA what a team reads, in the order of the two passes. */
template <class SHAPE> struct attention_loader {
    attention_shared<SHAPE> shared;
    const attention_i8_maps &maps;
    unsigned use, tile, item; /* counts */

    /* Loads the item's queries and publishes its tiles. */
    __device__ __forceinline__ void load_queries(const ft_cuda_query_tile *tiles, int count,
                                                 int column)
    {
        uint64_t *full = shared.q_full(item);
        int loads = 0;
        wait_free<2>(shared.q_empty(item), item);
#pragma unroll 1
        for (int i = 0; i < SHAPE::warpgroups; i++) {
            ft_cuda_query_tile tile = i < count ? tiles[i] : ft_cuda_query_tile{};
            shared.tiles(item)[i] = tile;
            loads += tile.length > 0;
        }
        ft_mbarrier_arrive_expect_tx(full, (unsigned) (loads * SHAPE::query_bytes));
#pragma unroll 1
        for (int i = 0; i < count; i++)
            if (tiles[i].length > 0)
                ft_tma_load_2d(shared.queries(item, i), &maps.q, full,
                               tiles[i].first + tiles[i].query, column);
        item++;
    }

    /* Loads one or two tiles of keys into the next stage. */
    __device__ __forceinline__ void load_keys(int row, int column, bool two)
    {
        uint64_t *full = shared.full(use);
        wait_free<SHAPE::stages>(shared.empty(use), use);
        ft_mbarrier_arrive_expect_tx(full, two ? 2 * SHAPE::tile_bytes : SHAPE::tile_bytes);
        ft_tma_load_2d(shared.keys(use), &maps.k, full, row, column);
        if (two)
            ft_tma_load_2d(shared.keys(use) + SHAPE::tile_bytes, &maps.k, full, row + SHAPE::keys,
                           column);
        use++;
    }

    /* The next stage gets values only, because the scores of their keys are in registers. */
    __device__ __forceinline__ void pass_stage()
    {
        wait_free<SHAPE::stages>(shared.empty(use), use);
        ft_mbarrier_arrive(shared.full(use));
        use++;
    }

    __device__ __forceinline__ void load_values(int row, int column)
    {
        wait_free<SHAPE::stages>(shared.free(tile), tile);
        ft_mbarrier_arrive_expect_tx(shared.loaded(tile), SHAPE::tile_bytes);
        ft_tma_load_2d(shared.values(tile), &maps.v, shared.loaded(tile), row, column);
        tile++;
    }

    __device__ __forceinline__ void load_item(const ft_cuda_query_tile *tiles, int count,
                                              int column)
    {
        load_queries(tiles, count, column);
        attention_segments segment(tiles, count);
        while (segment.next()) {
            int row = tiles[segment.begin].first, last = row + tiles[segment.begin].length;
#pragma unroll 1
            for (int key = row; key < last; key += 2 * SHAPE::keys)
                load_keys(key, column, key + SHAPE::keys < last);
            bool resident = key_tiles<SHAPE>(last - row) <= SHAPE::resident_tiles;
#pragma unroll 1
            for (int key = row; key < last; key += SHAPE::keys) {
                load_values(key, column);
                if (resident)
                    pass_stage();
                else
                    load_keys(key, column, false);
            }
        }
    }
};

/* A warp that transposes its part of each tile of values. */
template <class SHAPE> struct attention_transposer {
    attention_shared<SHAPE> shared;
    int warp;
    unsigned use, tile; /* counts */

    __device__ __forceinline__ void transpose_item(const ft_cuda_query_tile *tiles, int count)
    {
        attention_segments segment(tiles, count);
        while (segment.next()) {
            int steps = key_tiles<SHAPE>(tiles[segment.begin].length);
            use += (unsigned) (steps + 1) / 2;
#pragma unroll 1
            for (; steps > 0; steps--, use++, tile++) {
                wait_use<SHAPE::stages>(shared.loaded(tile), tile);
                wait_free<SHAPE::stages>(shared.empty(use), use);
                transpose_values<SHAPE>(shared.transposed_values(use), shared.values(tile), warp);
                ft_fence_proxy_async();
                __syncwarp();
                if (threadIdx.x % 32 == 0) {
                    ft_mbarrier_arrive(shared.transposed(tile));
                    ft_mbarrier_arrive(shared.free(tile));
                }
                __syncwarp();
            }
        }
    }
};

#endif
#endif
