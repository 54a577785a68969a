/*
 * attention_i8_pipeline.cuh - loads the keys and values of a sequence into shared memory, in the
 * order in which the two passes of int8 attention read them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_PIPELINE_CUH
#define FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_PIPELINE_CUH

#include "kernels/cuda/attention/encoder/attention_i8.cuh"

template <int width> static constexpr int tile_bytes = TILE *width;
template <int width> static constexpr int stage_bytes = 2 * tile_bytes<width>;
template <int width> static constexpr int stages = width <= 128 ? 4 : 2;

/* A stage holds two tiles: 128 keys in the first pass; 64 keys and their values in the second. */
typedef struct kv_loader {
    ft_thread_rows keys; /* remaining rows of the pass */
    int length;
    ptrdiff_t to_values;
    uint8_t *stages;
    uint32_t fill_offset, read_offset; /* byte offsets from `stages` */
    int pass;                          /* 1 or 2; 3: all loads have been issued */
} kv_loader;

template <int width> static __device__ __forceinline__ uint32_t next_stage(uint32_t stage)
{
    return stage == (stages<width> - 1) * stage_bytes<width> ? 0 : stage + stage_bytes<width>;
}

template <int width> static __device__ __forceinline__ void load_next(kv_loader *f)
{
    if (f->pass < 3) {
        uint8_t *stage = f->stages + f->fill_offset;
        bool values = f->pass == 2;
        int tile = TILE * (int) f->keys.stride;
        ft_thread_rows second = f->keys;
        ft_copy_rows<width, TILE, THREADS>(stage, f->keys);
        second.data += values ? f->to_values : (ptrdiff_t) tile;
        second.count -= values ? 0 : TILE;
        if (second.count > 0)
            ft_copy_rows<width, TILE, THREADS>(stage + tile_bytes<width>, second);
        f->fill_offset = next_stage<width>(f->fill_offset);
        f->keys.data += values ? tile : 2 * tile;
        f->keys.count -= values ? TILE : 2 * TILE;
        if (f->keys.count <= 0) { /* rewind; some rows were beyond the sequence */
            f->keys.data -= (ptrdiff_t) (f->length - f->keys.count) * f->keys.stride;
            f->keys.count = f->length;
            f->pass++;
        }
    }
    ft_cp_async_commit();
}

/* The next stage to read. */
template <int width> static __device__ __forceinline__ const uint8_t *advance_stage(kv_loader *f)
{
    const uint8_t *stage = f->stages + f->read_offset;
    f->read_offset = next_stage<width>(f->read_offset);
    return stage;
}

/* Waits for the next stage, and starts to refill the previous one. */
template <int width> static __device__ __forceinline__ const uint8_t *wait_stage(kv_loader *f)
{
    ft_cp_async_wait<stages<width> - 2>();
    __syncthreads();
    load_next<width>(f);
    return advance_stage<width>(f);
}

/* Prologue: starts to fill all stages but the last, and the last one with the queries. */
template <int width>
static __device__ __forceinline__ void prologue(kv_loader *f, const ft_cuda_attention_args &a,
                                                const ft_attention_tile &query_tile,
                                                uint8_t *memory, int unit)
{
    uint32_t stride = (uint32_t) (a.heads * a.head_size);
    uint8_t *last = memory + (stages<width> - 1) * stage_bytes<width>;
    size_t first = query_tile.first * stride + query_tile.column;
    ft_thread_rows rows = ft_thread_rows_of<width, THREADS>(
        (const uint8_t *) a.q + first, query_tile.length, a.head_size, stride, unit);
    *f = kv_loader{};
    f->stages = memory;
    f->keys = rows;
    f->keys.data += (const uint8_t *) a.k - (const uint8_t *) a.q;
    f->to_values = (const uint8_t *) a.v - (const uint8_t *) a.k;
    f->length = query_tile.length;
    f->pass = 1;
    rows.data += (size_t) query_tile.query * stride;
    rows.count = query_tile.queries;
    for (; rows.count > 0;
         rows.count -= TILE, rows.data += TILE * stride, last += tile_bytes<width>)
        ft_copy_rows<width, TILE, THREADS>(last, rows);
#pragma unroll 1 /* not unrolled to save instruction fetches, because it runs once */
    for (int i = 0; i < stages<width> - 1; i++)
        load_next<width>(f);
}

#endif
