/*
 * store_attend.cu - a decode step of few sequences in one kernel: rotary embedding of queries and
 * the newest key, STORE_KV, and attention.
 *
 * It fuses decode.cu and store_kv.cu and has the same bits. Each warp rotates the queries of its
 * CTA's heads in the registers in which the MMAs need them. The warp whose tile contains the newest
 * key writes this key and its value to the cache, and also to its copied tile. No warp waits for
 * another between the end of the predecessor and the sums of a split.
 *
 * Everything except the newest key is loaded before the predecessor, a GEMM, has ended. CTAs of
 * splits that a row does not have exit at once. Otherwise they would occupy the space of other CTAs
 * and of the dependent GEMM, which starts to prefetch as soon as there is room.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/store_attend.cuh"
#include "kernels/cuda/attention/cache/decode_dispatch.cuh"
#include "kernels/cuda/attention/cache/decode_split_k.cuh"
#include "kernels/cuda/fused_kernels.h"
#include "kernels/cuda/ptx/warp.cuh"

enum {
    MAX_ROW_SPLITS = 16, /* maximum splits of a row; each CTA processes one */
    FEW_ROW_SPLITS = 8,
    /*
     * Maximum CTAs per multiprocessor, for one row and for several: up to here one fused kernel is
     * faster than two.
     */
    CTAS_PER_SM_ONE_ROW = 4,
    CTAS_PER_SM_ROWS = 2
};

/* Shared memory of a CTA. */
template <ft_dtype kv_dtype, int width> struct cta_storage {
    rope_angles<width> by;
    shared_storage<WARPS, kv_dtype, width> shared_storage;
};

/* ---- Result of a row ------------------------------------------------------------------------ */

/* Where the partial results of a head are stored. */
template <int width>
static __device__ __forceinline__ partials row_partials(const ft_attend_kv_params &a,
                                                        const head_columns &of)
{
    constexpr int row = width + STATS;
    int head_floats = (int) gridDim.z * row;
    return partials{ a.partial + head_index(a, of, 0) * (size_t) head_floats, head_floats, row };
}

/* finish_split() with one element per thread. */
template <ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void store_split(const shared_storage<WARPS, kv_dtype, width> &r,
                                                   const partials &to, int heads, int index)
{
#pragma unroll 1
    for (int i = (int) threadIdx.x; i < heads * width; i += THREADS) {
        int head = i / width, at = i % width;
        float row_max = r.row_max[0][head], sum = 0.0f, y = 0.0f,
              *partial_ptr = partial_at(to, head, index);
#pragma unroll
        for (int w = 1; w < WARPS; w++)
            row_max = fmaxf(row_max, r.row_max[w][head]);
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            float weight = ft_exp2_approx(r.row_max[w][head] - row_max);
            sum = fmaf(r.sum[w][head], weight, sum);
            y = fmaf(r.rest[(w * heads + head) * (width + 4) + at], weight, y);
        }
        partial_ptr[at] = y;
        if (at == 0)
            *(float2 *) (partial_ptr + width) = make_float2(row_max, sum);
    }
}

/* Whether this CTA is the last one of a row and its heads; resets the counter if so. */
static __device__ __forceinline__ bool is_last_split(bool *last, const ft_attend_kv_params &a,
                                                     int splits)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t *split_counters = a.split_counters + (size_t) blockIdx.y * gridDim.x + blockIdx.x;
        *last = atomicAdd(split_counters, 1u) + 1 == (uint32_t) splits;
        if (*last)
            *split_counters = 0;
    }
    __syncthreads();
    __threadfence();
    return *last;
}

/*
 * reduce_splits() in the same order, except that each thread reads and weights all splits itself:
 * the loads are issued together and no thread waits. The dependent GEMM waits only for the last CTA
 * of each row. Widths and counts are therefore compile-time constants, and addresses need no
 * arithmetic.
 */
template <int lanes_per_item, int width, int splits>
static __device__ __forceinline__ void reduce_row_splits(const ft_attend_kv_params &a,
                                                         const partials &from,
                                                         const head_columns &of, int count)
{
    constexpr int row = width + STATS;
#pragma unroll 1
    for (int i = (int) threadIdx.x; i < of.count * width; i += THREADS) {
        int head = i / width, at = i % width;
        const float *stats = partial_at(from, head, 0) + width,
                    *element = partial_at(from, head, 0) + at;
        float2 split_stats[splits];
        float value[splits], y[lanes_per_item] = {}, row_max = -INFINITY;
#pragma unroll
        for (int index = 0; index < splits; index++) {
            split_stats[index] = make_float2(-INFINITY, 0.0f);
            value[index] = 0.0f;
            if (index < count) {
                split_stats[index] = __ldcg((const float2 *) (stats + index * row));
                value[index] = __ldcg(element + index * row);
            }
        }
#pragma unroll
        for (int index = 0; index < splits; index++)
            row_max = fmaxf(row_max, split_stats[index].x);
#pragma unroll
        for (int index = 0; index < splits; index++) {
            float weight = ft_exp2_approx(split_stats[index].x - row_max);
            split_stats[index].y *= weight;
            y[index % lanes_per_item] = fmaf(value[index], weight, y[index % lanes_per_item]);
        }
#pragma unroll
        for (int step = 1; step < splits; step *= 2)
#pragma unroll
            for (int index = 0; index < splits; index += 2 * step)
                split_stats[index].y += split_stats[index + step].y;
#pragma unroll
        for (int item_lane = 1; item_lane < lanes_per_item; item_lane++)
            y[0] += y[item_lane];
        y[0] /= split_stats[0].y;
        ft_store<1>(a.y, a.y_dtype, head_index(a, of, head) * width + (size_t) at, y);
    }
}

/* Uses as many partial sums as reduce_splits() does. */
template <int width, int splits, bool lean>
static __device__ __forceinline__ void finish_row(const ft_attend_kv_params &a,
                                                  const head_columns &of, int count)
{
    partials from = row_partials<width>(a, of);
    int items = of.count * width / 4;
    if (lean || items <= THREADS / 4)
        reduce_row_splits<4, width, splits>(a, from, of, count);
    else if (items <= THREADS / 2)
        reduce_row_splits<2, width, splits>(a, from, of, count);
    else
        reduce_row_splits<1, width, splits>(a, from, of, count);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/*
 * Grid: groups of heads, sequences, splits of the longest row. `lean` is for small head groups and
 * for rotary frequencies that do not depend on the sequence length.
 */
template <ft_dtype kv_dtype, int width, int splits, bool lean>
static __global__ void __launch_bounds__(THREADS, (decode_traits<kv_dtype, width>::min_ctas - 1))
    store_attend_kernel(const __grid_constant__ ft_attend_kv_params a,
                        const __grid_constant__ store_kv_params from)
{
    typedef decode_traits<kv_dtype, width> f;
    extern __shared__ uint4 shared[];
    cta_storage<kv_dtype, width> *p = (cta_storage<kv_dtype, width> *) shared;
    int warp = ft_warp_id(), split_index = (int) blockIdx.z;
    kv_tile<kv_dtype, width> *tile = &p->shared_storage.warp[warp];
    head_columns of = lean ? head_columns{ (int) blockIdx.x, 0, a.group, blockIdx.y }
                           : head_columns_of(a, blockIdx.x, blockIdx.y);
    ft_query_tile query_tile = decode_tile_of(a);
    split_range s = decode_split_range(a, query_tile.position, f::min_split_keys), cached_keys = s;
    if (query_tile.rows == 0)
        ft_pdl_wait(); /* otherwise the dependent kernel could begin before the
                                      predecessor has ended */
    if (query_tile.rows == 0 || split_index >= s.count)
        return; /* frees the space for other CTAs of the row */
    int base = split_begin(s, split_index) + warp * f::keys, key = s.last - base;
    bool has_newest = key >= 0 && key < f::keys;
    __builtin_assume(a.head_size == width);
    tile_location now = { base, 0 };
    cached_keys.last--;
    if (key >= 0) {
        now.row = (uint32_t) ft_cache_token_row(query_tile.pages, (size_t) base,
                                                (size_t) of.kv_head, (size_t) a.kv_heads);
        load_keys<false>(tile, a, cached_keys, now);
        load_values<false>(tile, a, cached_keys, now);
    }
    ft_cp_async_commit();
    rope_compute_angles<!lean>(p->by.cosine, p->by.sine, from, query_tile.position,
                               from.n_tokens[blockIdx.y], THREADS);
    __syncthreads();

    ft_pdl_wait();

    uint32_t q[width / 16][2];
    raw_queries<width> raw;
    newest_kv_row<width> newest_kv;
    float scores[f::keys / 16][4];
    scales<f::keys> no_scales;
    partial_acc<width> acc = { { -INFINITY, -INFINITY } };
    raw.fetch(from, a, of);
    if (has_newest)
        newest_kv.fetch(from, a, query_tile.row, of.kv_head);
    ft_cp_async_wait<0>();
    __syncwarp();
    if (has_newest)
        newest_kv.template write<kv_dtype>(from, now.row + (uint32_t) key, p->by, tile, key);
    raw.template rotate_into<kv_dtype>(q, p->by);
    ft_pdl_launch_dependents(); /* the weights that it prefetches would delay the loads of the
                                 * queries
                                 */
    __syncwarp();
    if (key >= 0 && base + f::keys > s.first) {
        compute_qk<kv_dtype, width, kv_dtype == FT_BF16>(scores, *tile, q);
        online_softmax<kv_dtype, width>(scores, &acc, no_scales, a, s, base);
        accumulate_pv<kv_dtype, width, kv_dtype == FT_BF16>(&acc, scores, *tile);
    }
    store_warp_partial(&p->shared_storage, warp, acc, of.count);
    __syncthreads();
    store_split<kv_dtype, width>(p->shared_storage, row_partials<width>(a, of), of.count,
                                 split_index);
    if (is_last_split(&p->shared_storage.last, a, s.count))
        finish_row<width, splits, lean>(a, of, s.count);
}

/* ---- Launch --------------------------------------------------------------------------------- */

size_t ft_cuda_store_attend_scratch(size_t sequences, size_t context, int heads, int head_size)
{
    size_t splits = max_splits(context, MIN_SPLIT_KEYS);
    splits = splits < MAX_ROW_SPLITS ? splits : MAX_ROW_SPLITS;
    return sequences * splits * (size_t) heads * (size_t) (head_size + STATS) * sizeof(float);
}

template <ft_dtype kv_dtype, int width> static size_t shared_bytes(const launch_extent &e)
{
    return sizeof(rope_angles<width>) + smem_bytes<WARPS, kv_dtype, width>(e.heads, width, 0);
}

template <ft_dtype kv_dtype, int width, int splits, bool lean>
static int launch(const ft_cuda_args *args, ft_attend_kv_params *a, const store_kv_params *from,
                  const launch_extent &e)
{
    size_t bytes = shared_bytes<kv_dtype, width>(e);
    a->splits_per_cta = 1;
    int status =
        set_max_smem(args->props, store_attend_kernel<kv_dtype, width, splits, lean>, bytes);
    if (status != (int) cudaSuccess)
        return status;
    dim3 grid((unsigned) e.groups, (unsigned) e.rows, (unsigned) e.splits);
    return ft_launch(store_attend_kernel<kv_dtype, width, splits, lean>, grid, dim3(THREADS), bytes,
                     args->stream, args->props->has_pdl, 1, *a, *from);
}

/*
 * The lean kernel with few splits has almost half the instructions, which relieves the instruction
 * caches: 658 tokens/s for Llama 2 7B on an H200 instead of 640.
 */
template <ft_dtype kv_dtype, int width>
static int dispatch_variant(const ft_cuda_args *args, ft_attend_kv_params *a,
                            const store_kv_params *from)
{
    launch_extent e = launch_extent_of(a, decode_traits<kv_dtype, width>::min_split_keys);
    if (from->max_positions != 0 || (size_t) e.heads * width / 4 > THREADS / 4)
        return launch<kv_dtype, width, MAX_ROW_SPLITS, false>(args, a, from, e);
    return e.splits > FEW_ROW_SPLITS
               ? launch<kv_dtype, width, MAX_ROW_SPLITS, true>(args, a, from, e)
               : launch<kv_dtype, width, FEW_ROW_SPLITS, true>(args, a, from, e);
}

template <ft_dtype kv_dtype>
static int dispatch_head_dim(const ft_cuda_args *args, ft_attend_kv_params *a,
                             const store_kv_params *from)
{
    switch (a->head_size) {
    case 64:
        return dispatch_variant<kv_dtype, 64>(args, a, from);
    case 128:
        return dispatch_variant<kv_dtype, 128>(args, a, from);
    default:
        return (int) cudaErrorNotSupported;
    }
}

/* ---- Which groups --------------------------------------------------------------------------- */

/* Whether few enough blocks cover the rows, and each finds the shared memory that it asks for. */
template <ft_dtype kv_dtype, int width>
static bool has_room(const ft_cuda_device_props *props, const ft_attend_kv_params *a)
{
    launch_extent e = launch_extent_of(a, decode_traits<kv_dtype, width>::min_split_keys);
    size_t min_ctas = e.splits * e.groups * e.rows;
    size_t row_max =
        (e.rows == 1 ? CTAS_PER_SM_ONE_ROW : CTAS_PER_SM_ROWS) * (size_t) props->sm_count;
    return e.splits <= MAX_ROW_SPLITS && min_ctas <= row_max &&
           shared_bytes<kv_dtype, width>(e) <= props->smem_bytes;
}

template <ft_dtype kv_dtype>
static bool has_room_for(const ft_cuda_device_props *props, const ft_attend_kv_params *a)
{
    return (a->head_size == 64 && has_room<kv_dtype, 64>(props, a)) ||
           (a->head_size == 128 && has_room<kv_dtype, 128>(props, a));
}

/* Rows of which each has a text of its own, in a cache of the same f16 or bf16 as all values. */
static bool supports(const ft_cuda_args *store, const ft_attend_kv_params *a,
                     const store_kv_params *from)
{
    const ft_cuda_batch *batch = store->batch;
    if (!batch->decode_step || batch->beam_width > 1 || store->op->attr.cross_kv ||
        from->inv_freq == NULL || from->dtype != from->cache_dtype ||
        from->rotated_dtype != from->dtype || a->q_dtype != from->dtype ||
        a->cached_rows > UINT32_MAX || a->split_counters == NULL)
        return false;
    return a->sequences == 0 || (from->dtype == FT_F16 && has_room_for<FT_F16>(store->props, a)) ||
           (from->dtype == FT_BF16 && store->props->capability >= 80 &&
            has_room_for<FT_BF16>(store->props, a));
}

extern "C" bool ft_cuda_store_attend_supports(const ft_cuda_group *group)
{
    ft_attend_kv_params a = ft_attend_kv_params_of(group->attend);
    store_kv_params from = ft_store_kv_params_of(group->store);
    return supports(group->store, &a, &from);
}

extern "C" int ft_cuda_store_attend(const ft_cuda_group *group)
{
    const ft_cuda_args *attend = group->attend;
    ft_attend_kv_params a = ft_attend_kv_params_of(attend);
    store_kv_params from = ft_store_kv_params_of(group->store);
    if (!supports(group->store, &a, &from))
        return (int) cudaErrorNotSupported;
    if (a.sequences == 0)
        return (int) cudaSuccess;
    if (attend->scratch_bytes <
        ft_cuda_store_attend_scratch(a.sequences, a.context, a.heads, a.head_size))
        return (int) cudaErrorInvalidValue;
    return from.dtype == FT_F16 ? dispatch_head_dim<FT_F16>(attend, &a, &from)
                                : dispatch_head_dim<FT_BF16>(attend, &a, &from);
}
