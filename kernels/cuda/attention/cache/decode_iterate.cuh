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
typedef struct key_iterator {
    const uint32_t *rows; /* of all keys of a beam, if one warp has looked them up */
    int base;             /* first key of this tile */
    int end;              /* no tile begins at or after this key */
    uint32_t next;        /* cache row of the next tile */
} key_iterator;

/*
 * With beam search every lane of the warp looks up one key. Keys past the end repeat the last one.
 */
template <int warps, bool has_beams>
static __device__ __forceinline__ tile_location locate_keys(const ft_attend_kv_params &a,
                                                            const ft_query_tile &query_tile,
                                                            const uint32_t *rows, int kv_head,
                                                            int base, int end)
{
    tile_location at = { base, 0 };
    if (base < end && has_beams && warps == 1)
        at.row = rows[base + (int) threadIdx.x % 32];
    else if (base < end && has_beams)
        at.row = (uint32_t) ft_cached_row(a, query_tile,
                                          min(base + (int) threadIdx.x % 32, end - 1), kv_head);
    else if (base < end)
        at.row = (uint32_t) ft_cache_token_row(query_tile.pages, (size_t) base, (size_t) kv_head,
                                               (size_t) a.kv_heads);
    return at;
}

/* Prologue: loads issued before the predecessor has ended must not read what it writes. */
template <int warps, bool has_beams, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void
prologue(key_iterator *w, kv_tile<kv_dtype, width> *shared_storage, const ft_attend_kv_params &a,
         const ft_query_tile &query_tile, const split_range &s, int kv_head)
{
    typedef decode_traits<kv_dtype, width> f;
    constexpr int stride = warps * f::keys;
    int begin = max(split_begin(s, s.begin), s.first / stride * stride);
    int base = begin + thread_group<warps>::index() / 32 * f::keys;
    if (base + f::keys <= s.first)
        base += stride;
    w->base = base;
    w->end = min(split_begin(s, s.end), s.last + 1);
    tile_location now =
        locate_keys<warps, has_beams>(a, query_tile, w->rows, kv_head, base, w->end);
    w->next =
        locate_keys<warps, has_beams>(a, query_tile, w->rows, kv_head, base + stride, w->end).row;
    bool has_newest = base + f::keys > s.last;
    if (has_newest)
        ft_pdl_wait();
    if (base < w->end)
        load_keys<has_beams>(shared_storage, a, s, now);
    ft_cp_async_commit();
    if (base < w->end)
        load_values<has_beams>(shared_storage, a, s, now);
    ft_cp_async_commit();
    if (!has_newest)
        ft_pdl_wait();
    ft_pdl_launch_dependents();
}

/* Processes the key tiles before `end`. */
template <int warps, bool has_beams, bool bf16, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void
mainloop(partial_acc<width> *acc, key_iterator *w, kv_tile<kv_dtype, width> *shared_storage,
         const ft_attend_kv_params &a, const ft_query_tile &query_tile, const split_range &of,
         int kv_head, const uint32_t q[width / 16][2], int end)
{
    typedef decode_traits<kv_dtype, width> f;
    constexpr int stride = warps * f::keys;
#pragma unroll 1
    while (w->base < min(end, w->end)) {
        float s[f::keys / 16][4];
        scales<f::keys> scale;
        tile_location next = { w->base + stride, w->next };
        bool more = next.base < w->end;
        if (warps == 1 && has_beams)
            next =
                locate_keys<warps, has_beams>(a, query_tile, w->rows, kv_head, next.base, w->end);
        else
            w->next = locate_keys<warps, has_beams>(a, query_tile, w->rows, kv_head,
                                                    next.base + stride, w->end)
                          .row;
        ft_cp_async_wait<1>();
        __syncwarp(); /* the scales are copied by other lanes */
        compute_qk<kv_dtype, width, bf16>(s, *shared_storage, q);
        if (kv_dtype == FT_I8)
            load_scales<kv_dtype, width>(&scale, *shared_storage);
        __syncwarp();
        if (more)
            load_keys<has_beams>(shared_storage, a, of, next);
        ft_cp_async_commit();
        online_softmax<kv_dtype, width>(s, acc, scale, a, of, w->base);
        ft_cp_async_wait<1>();
        accumulate_pv<kv_dtype, width, bf16>(acc, s, *shared_storage);
        if (more)
            load_values<has_beams>(shared_storage, a, of, next);
        ft_cp_async_commit();
        w->base = next.base;
    }
}

#endif
