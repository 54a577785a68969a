/*
 * decode_iterate.cuh - inside decode.cu and decode_short.cu: the main loop of a warp over the keys
 * of a row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_ITERATE_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_ITERATE_CUH

#include "kernels/cuda/attention/cache/decode_mainloop.cuh"

/*
 * The warps of a thread group process key tiles round-robin. The keys of the next tile are loaded
 * as soon as those of this tile have been multiplied, and so are its values. The page of the tile
 * after that is looked up earlier.
 */
typedef struct walk {
    const uint32_t *rows; /* of all keys of a beam, if one warp has looked them up */
    int base;             /* first key of this tile */
    int end;              /* no tile begins at or after this key */
    uint32_t next;        /* cache row of the next tile */
} walk;

/*
 * With beam search every lane of the warp looks up one key. Keys past the end repeat the last one.
 */
template <int warps, bool lanes>
static __device__ __forceinline__ place find(const ft_attend_job &a, const ft_attend_task &task,
                                             const uint32_t *rows, int kv_head, int base, int end)
{
    place at = { base, 0 };
    if (base < end && lanes && warps == 1)
        at.row = rows[base + (int) threadIdx.x % 32];
    else if (base < end && lanes)
        at.row = (uint32_t) ft_attend_find(a, task, min(base + (int) threadIdx.x % 32, end - 1),
                                           kv_head);
    else if (base < end)
        at.row = (uint32_t) ft_cache_find(task.pages, (size_t) base, (size_t) kv_head,
                                          (size_t) a.kv_heads);
    return at;
}

/* Prologue: loads issued before the predecessor has ended must not read what it writes. */
template <int warps, bool lanes, ft_dtype stored, int width>
static __device__ __forceinline__ void
begin_walk(walk *w, reading<stored, width> *room, const ft_attend_job &a,
           const ft_attend_task &task, const share &s, int kv_head)
{
    typedef form<stored, width> f;
    constexpr int stride = warps * f::keys;
    int begin = max(part_begin(s, s.begin), s.first / stride * stride);
    int base = begin + crew<warps>::index() / 32 * f::keys;
    if (base + f::keys <= s.first)
        base += stride;
    w->base = base;
    w->end = min(part_begin(s, s.end), s.last + 1);
    place now = find<warps, lanes>(a, task, w->rows, kv_head, base, w->end);
    w->next = find<warps, lanes>(a, task, w->rows, kv_head, base + stride, w->end).row;
    bool newest = base + f::keys > s.last;
    if (newest)
        ft_wait_for_predecessor();
    if (base < w->end)
        read_keys<lanes>(room, a, s, now);
    ft_copy_commit();
    if (base < w->end)
        read_values<lanes>(room, a, s, now);
    ft_copy_commit();
    if (!newest)
        ft_wait_for_predecessor();
    ft_let_successor_begin();
}

/* Processes the key tiles before `end`. */
template <int warps, bool lanes, bool bf16, ft_dtype stored, int width>
static __device__ __forceinline__ void
add_steps(partial_sums<width> *sums, walk *w, reading<stored, width> *room, const ft_attend_job &a,
          const ft_attend_task &task, const share &of, int kv_head, const uint32_t q[width / 16][2],
          int end)
{
    typedef form<stored, width> f;
    constexpr int stride = warps * f::keys;
#pragma unroll 1
    while (w->base < min(end, w->end)) {
        float s[f::keys / 16][4];
        scales<f::keys> scale;
        place next = { w->base + stride, w->next };
        bool more = next.base < w->end;
        if (warps == 1 && lanes)
            next = find<warps, lanes>(a, task, w->rows, kv_head, next.base, w->end);
        else
            w->next = find<warps, lanes>(a, task, w->rows, kv_head, next.base + stride, w->end).row;
        ft_copy_wait<1>();
        __syncwarp(); /* the scales are copied by other lanes */
        score<stored, width, bf16>(s, *room, q);
        if (stored == FT_I8)
            load_scales<stored, width>(&scale, *room);
        __syncwarp();
        if (more)
            read_keys<lanes>(room, a, of, next);
        ft_copy_commit();
        weigh<stored, width>(s, sums, scale, a, of, w->base);
        ft_copy_wait<1>();
        mix<stored, width, bf16>(sums, s, *room);
        if (more)
            read_values<lanes>(room, a, of, next);
        ft_copy_commit();
        w->base = next.base;
    }
}

#endif
