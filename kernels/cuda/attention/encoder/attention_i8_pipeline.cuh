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
template <int width> static constexpr int slot_bytes = 2 * tile_bytes<width>;
template <int width> static constexpr int slots = width <= 128 ? 4 : 2;

/* A stage holds two tiles: 128 keys in the first pass; 64 keys and their values in the second. */
typedef struct feed {
    ft_rows_of keys; /* remaining rows of the pass */
    int length;
    ptrdiff_t to_values;
    uint8_t *slots;
    uint32_t fill, taken; /* byte offsets from `stages` */
    int sweep;            /* 1 or 2; 3: all loads have been issued */
} feed;

template <int width> static __device__ __forceinline__ uint32_t slot_behind(uint32_t slot)
{
    return slot == (slots<width> - 1) * slot_bytes<width> ? 0 : slot + slot_bytes<width>;
}

template <int width> static __device__ __forceinline__ void fetch(feed *f)
{
    if (f->sweep < 3) {
        uint8_t *slot = f->slots + f->fill;
        bool values = f->sweep == 2;
        int tile = TILE * (int) f->keys.stride;
        ft_rows_of second = f->keys;
        ft_stage_rows<width, TILE, THREADS>(slot, f->keys);
        second.data += values ? f->to_values : (ptrdiff_t) tile;
        second.count -= values ? 0 : TILE;
        if (second.count > 0)
            ft_stage_rows<width, TILE, THREADS>(slot + tile_bytes<width>, second);
        f->fill = slot_behind<width>(f->fill);
        f->keys.data += values ? tile : 2 * tile;
        f->keys.count -= values ? TILE : 2 * TILE;
        if (f->keys.count <= 0) { /* rewind; some rows were beyond the sequence */
            f->keys.data -= (ptrdiff_t) (f->length - f->keys.count) * f->keys.stride;
            f->keys.count = f->length;
            f->sweep++;
        }
    }
    ft_copy_commit();
}

/* The next stage to read. */
template <int width> static __device__ __forceinline__ const uint8_t *advance(feed *f)
{
    const uint8_t *slot = f->slots + f->taken;
    f->taken = slot_behind<width>(f->taken);
    return slot;
}

/* Waits for the next stage, and starts to refill the previous one. */
template <int width> static __device__ __forceinline__ const uint8_t *take(feed *f)
{
    ft_copy_wait<slots<width> - 2>();
    __syncthreads();
    fetch<width>(f);
    return advance<width>(f);
}

/* Prologue: starts to fill all stages but the last, and the last one with the queries. */
template <int width>
static __device__ __forceinline__ void
begin(feed *f, const ft_cuda_heads &a, const ft_attention_task &task, uint8_t *memory, int unit)
{
    uint32_t stride = (uint32_t) (a.heads * a.head_size);
    uint8_t *last = memory + (slots<width> - 1) * slot_bytes<width>;
    size_t first = task.first * stride + task.column;
    ft_rows_of rows = ft_rows_for_thread<width, THREADS>((const uint8_t *) a.q + first, task.length,
                                                         a.head_size, stride, unit);
    *f = feed{};
    f->slots = memory;
    f->keys = rows;
    f->keys.data += (const uint8_t *) a.k - (const uint8_t *) a.q;
    f->to_values = (const uint8_t *) a.v - (const uint8_t *) a.k;
    f->length = task.length;
    f->sweep = 1;
    rows.data += (size_t) task.query * stride;
    rows.count = task.queries;
    for (; rows.count > 0;
         rows.count -= TILE, rows.data += TILE * stride, last += tile_bytes<width>)
        ft_stage_rows<width, TILE, THREADS>(last, rows);
#pragma unroll 1 /* not unrolled to save instruction fetches, because it runs once */
    for (int i = 0; i < slots<width> - 1; i++)
        fetch<width>(f);
}

#endif
