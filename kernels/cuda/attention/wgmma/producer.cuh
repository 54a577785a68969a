/*
 * producer.cuh - the producer warp of attention: loads queries, keys and values by TMA.
 *
 * A matrix is a tensor [rows, heads, head_size]. Boxes have 64 rows of one head and 64 elements;
 * elements beyond the head and rows beyond the tensor read as zero. Rows beyond a sequence read
 * what is there, which the consumers mask.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_WGMMA_PRODUCER_CUH
#define FT_KERNELS_CUDA_ATTENTION_WGMMA_PRODUCER_CUH

#include "kernels/cuda/attention/wgmma/tile.cuh"

typedef struct attention_maps {
    CUtensorMap q, k, v;
} attention_maps;

/* Tensor map of [rows, heads, head_size] 16-bit elements; a head is a multiple of 16 bytes. */
static inline int attention_map(CUtensorMap *map, const void *data, size_t rows, int heads,
                                int head_size)
{
    cuuint64_t head = 2 * (cuuint64_t) head_size, row = head * (cuuint64_t) heads;
    cuuint64_t size[3] = { head, (cuuint64_t) heads, rows }, strides[2] = { head, row };
    cuuint32_t box[3] = { ROW_BYTES, 1, BOX_ROWS };
    return ft_tma_map_u8(map, data, 3, size, strides, box, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
}

#ifdef FT_HAS_WGMMA

/* Loads the queries of all warpgroups that have some. */
template <class SHAPE>
static __device__ __forceinline__ void load_queries_of(attention_storage<SHAPE> *m,
                                                       const CUtensorMap *map,
                                                       const attention_work &w, int slot)
{
    int boxes = (w.queries + BOX_ROWS - 1) / BOX_ROWS;
    uint64_t *full = &m->queries.full[slot];
    ft_mbarrier_arrive_expect_tx(full, (unsigned) (boxes * SHAPE::panels * BOX_BYTES));
    for (int i = 0; i < boxes; i++)
#pragma unroll
        for (int panel = 0; panel < SHAPE::panels; panel++)
            ft_tma_load_3d(m->query[slot] + panel * SHAPE::query_panel + i * BOX_BYTES, map, full,
                           panel * ROW_BYTES, w.head, w.row + i * BOX_ROWS);
}

/* The rows of the two halves of a tile of keys; one if no query sees the second. */
typedef struct tile_rows {
    int row[2], halves;
} tile_rows;

template <class SOURCE>
static __device__ __forceinline__ tile_rows rows_of_tile(SOURCE &source, const attention_work &w,
                                                         int base)
{
    tile_rows rows = { { source.key_row(base), 0 }, w.end_key - base > BOX_ROWS ? 2 : 1 };
    if (rows.halves == 2)
        rows.row[1] = source.key_row(base + BOX_ROWS);
    return rows;
}

/* Loads a tile of keys or values. */
template <class SHAPE>
static __device__ __forceinline__ void load_tile(uint8_t *to, const CUtensorMap *map,
                                                 uint64_t *full, const tile_rows &rows, int head)
{
    ft_mbarrier_arrive_expect_tx(full, (unsigned) (rows.halves * SHAPE::panels * BOX_BYTES));
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (i < rows.halves)
#pragma unroll
            for (int panel = 0; panel < SHAPE::panels; panel++)
                ft_tma_load_3d(to + panel * KEY_PANEL + i * BOX_BYTES, map, full, panel * ROW_BYTES,
                               head, rows.row[i]);
}

/* SOURCE finds the work of this CTA, and the rows of the keys of the work item found last. */
template <class SHAPE, class SOURCE>
static __device__ __forceinline__ void produce(attention_storage<SHAPE> *m,
                                               const attention_maps &maps, SOURCE source)
{
    ft_pipeline_state query = { 0, 0 }, stage = { 0, 0 };
    bool elected = threadIdx.x % 32 == 0;
    attention_work w;
    do {
        w = source.next();
        ft_pipeline_producer_acquire(m->queries, query);
        if (elected) {
            m->work[query.stage_index] = w;
            if (w.queries > 0)
                load_queries_of(m, &maps.q, w, query.stage_index);
            else
                ft_mbarrier_arrive(&m->queries.full[query.stage_index]);
        }
        query.advance(SHAPE::query_slots);
        for (int base = w.first_key; base < w.end_key; base += KEYS) {
            int i = stage.stage_index;
            tile_rows rows = rows_of_tile(source, w, base);
            ft_pipeline_producer_acquire(m->keys, stage);
            if (elected)
                load_tile<SHAPE>(m->key[i], &maps.k, &m->keys.full[i], rows, w.key_head);
            ft_pipeline_producer_acquire(m->values, stage);
            if (elected)
                load_tile<SHAPE>(m->value[i], &maps.v, &m->values.full[i], rows, w.key_head);
            stage.advance(SHAPE::stages);
        }
    } while (w.queries > 0);
}

#endif
#endif
