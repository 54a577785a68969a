/*
 * attention_i8_passes.cuh - the passes of a consumer warpgroup over the keys.
 *
 * The first pass finds the maximum score of each row. The second one computes the scores again,
 * quantizes the softmax weights and accumulates the context. Short sequences need one pass only:
 * their scores stay in registers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_PASSES_CUH
#define FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_PASSES_CUH

#include "kernels/cuda/attention/encoder/attention_i8_consumer.cuh"

#ifdef FT_HAS_WGMMA

/* What the accumulators of scores start from. */
static __device__ __forceinline__ void set_start(int32_t (&start)[2], const int32_t (&row_max)[2])
{
    start[0] = (int32_t) (MAX_BIAS - (uint32_t) row_max[0]);
    start[1] = (int32_t) (MAX_BIAS - (uint32_t) row_max[1]);
}

/* ---- Two passes ----------------------------------------------------------------------------- */

/* First pass: the maximum score of each row. */
template <class SHAPE>
static __device__ __forceinline__ void max_pass(attention_consumer<SHAPE> &w,
                                                 int32_t (&row_max)[2], int length)
{
    constexpr int KEYS = SHAPE::keys;
    row_max[0] = row_max[1] = INT32_MIN;
    for (int key = 0; key < length; key += 2 * KEYS) {
        const uint8_t *keys = w.shared.keys(w.use);
        w.wait_keys();
        if (KEYS == 64) {
            int32_t c[KEYS / 2], d[KEYS / 2];
            ft_wgmma_fence();
            w.issue_scores(c, keys);
            w.issue_scores(d, keys + SHAPE::tile_bytes);
            ft_wgmma_wait<1>();
            w.update(row_max, c, length - key);
            ft_wgmma_wait<0>();
            w.release(w.use);
            w.update(row_max, d, length - key - KEYS);
        } else {
            int32_t c[KEYS / 2];
            ft_wgmma_fence();
            w.issue_scores(c, keys);
            ft_wgmma_wait<0>();
            w.update(row_max, c, length - key);
            if (key + KEYS < length) {
                ft_wgmma_fence();
                w.issue_scores(c, keys + SHAPE::tile_bytes);
                ft_wgmma_wait<0>();
                w.release(w.use);
                w.update(row_max, c, length - key - KEYS);
            } else
                w.release(w.use);
        }
        w.use++;
    }
    reduce_max(row_max);
}

/*
 * Second pass: quantized softmax weights, and the context. While the weights of a step are
 * computed, the MMA of the step before may still run.
 */
template <class SHAPE>
static __device__ __forceinline__ void
context_pass(attention_consumer<SHAPE> &w, context_acc<SHAPE::width> *to,
              const int32_t (&row_max)[2], int length, float step)
{
    constexpr int KEYS = SHAPE::keys;
    int32_t(&context)[SHAPE::width / 2] = *(int32_t(*)[SHAPE::width / 2]) to->context;
    uint32_t total[2] = {}, quantized[KEYS / 32][4];
    int32_t c[KEYS / 2], start[2];
    set_start(start, row_max);
    ft_wgmma_fence_acc(context);
    w.wait_keys();
    w.issue_biased_scores(c, start);
    ft_wgmma_wait<0>();
    w.compute_codes(c, length, step);
    w.pack_codes(quantized, c, total);
    for (int key = KEYS; key < length; key += KEYS) {
        unsigned previous = w.use++;
        w.wait_keys();
        w.issue_biased_scores(c, start);
        w.issue_context(context, quantized, previous);
        ft_wgmma_wait<1>();
        w.compute_codes(c, length - key, step);
        ft_wgmma_fence_acc(c); /* otherwise the compiler computes them after the wait */
        ft_wgmma_wait<0>();
        w.release(previous);
        w.pack_codes(quantized, c, total);
    }
    w.issue_context(context, quantized, w.use);
    ft_wgmma_wait<0>();
    w.release(w.use);
    w.use++;
    ft_wgmma_fence_acc(context);
    w.reduce_total(to, total);
}

/* ---- One pass over `tiles` tiles of keys, whose scores stay in registers ------------------- */

template <int tiles, class SHAPE>
static __device__ __forceinline__ void compute_scores(attention_consumer<SHAPE> &w,
                                                      int32_t (&c)[tiles][SHAPE::keys / 2],
                                                      int32_t (&row_max)[2], int length)
{
    constexpr int KEYS = SHAPE::keys;
    row_max[0] = row_max[1] = INT32_MIN;
#pragma unroll
    for (int i = 0; i < tiles; i++) {
        if (i % 2 == 0) {
            w.wait_keys(i / 2);
            ft_wgmma_fence();
        }
        w.issue_scores(c[i], w.shared.keys(w.use + i / 2) + i % 2 * SHAPE::tile_bytes);
    }
#pragma unroll
    for (int i = 0; i < tiles; i++) {
        w.wait_groups(tiles - 1 - i);
        if (i % 2 == 1 || i == tiles - 1)
            w.release(w.use + i / 2);
        w.update(row_max, c[i], i == tiles - 1 ? length - i * KEYS : KEYS);
    }
    w.use += (tiles + 1) / 2;
    reduce_max(row_max);
}

template <int tiles, class SHAPE>
static __device__ __forceinline__ void
accumulate_context(attention_consumer<SHAPE> &w, context_acc<SHAPE::width> *to,
                   int32_t (&c)[tiles][SHAPE::keys / 2], const int32_t (&row_max)[2], float step)
{
    int32_t(&context)[SHAPE::width / 2] = *(int32_t(*)[SHAPE::width / 2]) to->context;
    uint32_t total[2] = {}, quantized[tiles][SHAPE::keys / 32][4];
    int32_t start[2];
    set_start(start, row_max);
#pragma unroll
    for (int i = 0; i < tiles; i++) {
        w.compute_codes(c[i], start, step);
        w.pack_codes(quantized[i], c[i], total);
        w.wait_keys(); /* until the loader has passed the stage: it must see the release */
        w.issue_context(context, quantized[i], w.use);
        if (i > 0) {
            ft_wgmma_wait<1>();
            w.release(w.use - 1);
        }
        w.use++;
    }
    ft_wgmma_wait<0>();
    w.release(w.use - 1);
    ft_wgmma_fence_acc(context);
    w.reduce_total(to, total);
}

template <int tiles, class SHAPE>
static __device__ __forceinline__ void
attend_resident(attention_consumer<SHAPE> &w, context_acc<SHAPE::width> *to, int length, float step)
{
    int32_t c[tiles][SHAPE::keys / 2], row_max[2];
    compute_scores(w, c, row_max, length);
    accumulate_context(w, to, c, row_max, step);
}

template <class SHAPE>
static __device__ __forceinline__ void attend(attention_consumer<SHAPE> &w,
                                              context_acc<SHAPE::width> *to, int length, float step)
{
    int tiles = key_tiles<SHAPE>(length);
    if (SHAPE::resident_tiles >= 1 && tiles == 1)
        attend_resident<1>(w, to, length, step);
    else if (SHAPE::resident_tiles >= 2 && tiles == 2)
        attend_resident<2>(w, to, length, step);
    else if (SHAPE::resident_tiles >= 3 && tiles == 3)
        attend_resident<3>(w, to, length, step);
    else {
        int32_t row_max[2];
        max_pass(w, row_max, length);
        context_pass(w, to, row_max, length, step);
    }
}

/* ---- Work items ----------------------------------------------------------------------------- */

template <class SHAPE>
static __device__ __forceinline__ void
attend_segment(attention_consumer<SHAPE> &w, const ft_cuda_attention_args &a,
               const ft_cuda_query_tile &tile, int head, float step)
{
    context_acc<SHAPE::width> to = {};
    w.load_fragments(a.head_size);
    attend(w, &to, tile.length, step);
    ft_attention_tile query_tile = { (size_t) tile.first, tile.length, tile.query,
                                     min(tile.length - tile.query, FT_CUDA_QUERY_TILE),
                                     (size_t) head * (size_t) a.head_size };
    int first = (int) threadIdx.x / 32 % 4 * 16;
    if (first < query_tile.queries)
        store<SHAPE::width, 1>(a, query_tile, first, &to, w.output);
}

template <class SHAPE>
static __device__ __forceinline__ void
attend_item(attention_consumer<SHAPE> &w, const ft_cuda_attention_args &a, int head, float step)
{
    wait_use<2>(w.shared.q_full(w.item), w.item);
    const ft_cuda_query_tile *tiles = w.shared.tiles(w.item);
    attention_segments segment(tiles, SHAPE::warpgroups);
    if (SHAPE::warpgroups == 1) {
        if (tiles[0].length > 0)
            attend_segment(w, a, tiles[0], head, step);
    } else
        while (segment.next())
            if (segment.begin <= w.warpgroup && w.warpgroup < segment.end)
                attend_segment(w, a, tiles[w.warpgroup], head, step);
            else
                w.skip_segment(tiles[segment.begin].length);
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        ft_mbarrier_arrive(w.shared.q_empty(w.item));
    w.item++;
}

#endif
#endif
