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
    FEW_PARTS = 16, /* maximum splits of a row; each CTA processes one */
    FEWER_PARTS = 8,
    /*
     * Maximum CTAs per multiprocessor, for one row and for several: up to here one fused kernel is
     * faster than two.
     */
    MOST_OF_ONE = 4,
    MOST_BLOCKS = 2
};

/* Shared memory of a CTA. */
template <ft_dtype stored, int width> struct workplace {
    angles<width> by;
    room<WARPS, stored, width> room;
};

/* ---- Result of a row ------------------------------------------------------------------------ */

/* Where the partial results of a head are stored. */
template <int width>
static __device__ __forceinline__ slots slots_of_row(const ft_attend_job &a, const columns &of)
{
    constexpr int row = width + TAIL;
    int head_floats = (int) gridDim.z * row;
    return slots{ a.partial + head_at(a, of, 0) * (size_t) head_floats, head_floats, row };
}

/* finish_split() with one element per thread. */
template <ft_dtype stored, int width>
static __device__ __forceinline__ void put_part(const room<WARPS, stored, width> &r,
                                                const slots &to, int heads, int index)
{
#pragma unroll 1
    for (int i = (int) threadIdx.x; i < heads * width; i += THREADS) {
        int head = i / width, at = i % width;
        float most = r.most[0][head], sum = 0.0f, y = 0.0f, *slot = slot_at(to, head, index);
#pragma unroll
        for (int w = 1; w < WARPS; w++)
            most = fmaxf(most, r.most[w][head]);
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            float weight = ft_power_of_two(r.most[w][head] - most);
            sum = fmaf(r.sum[w][head], weight, sum);
            y = fmaf(r.rest[(w * heads + head) * (width + 4) + at], weight, y);
        }
        slot[at] = y;
        if (at == 0)
            *(float2 *) (slot + width) = make_float2(most, sum);
    }
}

/* Whether this CTA is the last one of a row and its heads; resets the counter if so. */
static __device__ __forceinline__ bool is_last_of_row(bool *last, const ft_attend_job &a, int parts)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t *arrived = a.arrived + (size_t) blockIdx.y * gridDim.x + blockIdx.x;
        *last = atomicAdd(arrived, 1u) + 1 == (uint32_t) parts;
        if (*last)
            *arrived = 0;
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
template <int shares, int width, int parts>
static __device__ __forceinline__ void finish_few(const ft_attend_job &a, const slots &from,
                                                  const columns &of, int count)
{
    constexpr int row = width + TAIL;
#pragma unroll 1
    for (int i = (int) threadIdx.x; i < of.count * width; i += THREADS) {
        int head = i / width, at = i % width;
        const float *tails = slot_at(from, head, 0) + width, *own = slot_at(from, head, 0) + at;
        float2 tail[parts];
        float value[parts], y[shares] = {}, most = -INFINITY;
#pragma unroll
        for (int index = 0; index < parts; index++) {
            tail[index] = make_float2(-INFINITY, 0.0f);
            value[index] = 0.0f;
            if (index < count) {
                tail[index] = __ldcg((const float2 *) (tails + index * row));
                value[index] = __ldcg(own + index * row);
            }
        }
#pragma unroll
        for (int index = 0; index < parts; index++)
            most = fmaxf(most, tail[index].x);
#pragma unroll
        for (int index = 0; index < parts; index++) {
            float weight = ft_power_of_two(tail[index].x - most);
            tail[index].y *= weight;
            y[index % shares] = fmaf(value[index], weight, y[index % shares]);
        }
#pragma unroll
        for (int step = 1; step < parts; step *= 2)
#pragma unroll
            for (int index = 0; index < parts; index += 2 * step)
                tail[index].y += tail[index + step].y;
#pragma unroll
        for (int item_lane = 1; item_lane < shares; item_lane++)
            y[0] += y[item_lane];
        y[0] /= tail[0].y;
        ft_store<1>(a.y, a.y_dtype, head_at(a, of, head) * width + (size_t) at, y);
    }
}

/* Uses as many partial sums as reduce_splits() does. */
template <int width, int parts, bool lean>
static __device__ __forceinline__ void finish_row(const ft_attend_job &a, const columns &of,
                                                  int count)
{
    slots from = slots_of_row<width>(a, of);
    int items = of.count * width / 4;
    if (lean || items <= THREADS / 4)
        finish_few<4, width, parts>(a, from, of, count);
    else if (items <= THREADS / 2)
        finish_few<2, width, parts>(a, from, of, count);
    else
        finish_few<1, width, parts>(a, from, of, count);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/*
 * Grid: groups of heads, sequences, splits of the longest row. `lean` is for small head groups and
 * for rotary frequencies that do not depend on the sequence length.
 */
template <ft_dtype stored, int width, int parts, bool lean>
static __global__ void __launch_bounds__(THREADS, (form<stored, width>::blocks - 1))
    turning_kernel(const __grid_constant__ ft_attend_job a, const __grid_constant__ store_job from)
{
    typedef form<stored, width> f;
    extern __shared__ uint4 shared[];
    workplace<stored, width> *p = (workplace<stored, width> *) shared;
    int warp = ft_warp_of_block(), split_index = (int) blockIdx.z;
    reading<stored, width> *tile = &p->room.warp[warp];
    columns of = lean ? columns{ (int) blockIdx.x, 0, a.group, blockIdx.y }
                      : columns_of(a, blockIdx.x, blockIdx.y);
    ft_attend_task task = task_of_step(a);
    share s = share_of_step(a, task.position, f::part), older = s;
    if (task.rows == 0)
        ft_wait_for_predecessor(); /* otherwise the dependent kernel could begin before the
                                      predecessor has ended */
    if (task.rows == 0 || split_index >= s.count)
        return; /* frees the space for other CTAs of the row */
    int base = part_begin(s, split_index) + warp * f::keys, key = s.last - base;
    bool newest = key >= 0 && key < f::keys;
    __builtin_assume(a.head_size == width);
    place now = { base, 0 };
    older.last--;
    if (key >= 0) {
        now.row = (uint32_t) ft_cache_find(task.pages, (size_t) base, (size_t) of.kv_head,
                                           (size_t) a.kv_heads);
        read_keys<false>(tile, a, older, now);
        read_values<false>(tile, a, older, now);
    }
    ft_copy_commit();
    store_angles<!lean>(p->by.cosine, p->by.sine, from, task.position, from.reach[blockIdx.y],
                        THREADS);
    __syncthreads();

    ft_wait_for_predecessor();

    uint32_t q[width / 16][2];
    raw_queries<width> raw;
    newest_row<width> stores;
    float scores[f::keys / 16][4];
    scales<f::keys> none;
    partial_sums<width> sums = { { -INFINITY, -INFINITY } };
    raw.fetch(from, a, of);
    if (newest)
        stores.fetch(from, a, task.row, of.kv_head);
    ft_copy_wait<0>();
    __syncwarp();
    if (newest)
        stores.template keep<stored>(from, now.row + (uint32_t) key, p->by, tile, key);
    raw.template turn_into<stored>(q, p->by);
    ft_let_successor_begin(); /* the weights that it prefetches would delay the loads of the queries
                               */
    __syncwarp();
    if (key >= 0 && base + f::keys > s.first) {
        score<stored, width, stored == FT_BF16>(scores, *tile, q);
        weigh<stored, width>(scores, &sums, none, a, s, base);
        mix<stored, width, stored == FT_BF16>(&sums, scores, *tile);
    }
    gather(&p->room, warp, sums, of.count);
    __syncthreads();
    put_part<stored, width>(p->room, slots_of_row<width>(a, of), of.count, split_index);
    if (is_last_of_row(&p->room.last, a, s.count))
        finish_row<width, parts, lean>(a, of, s.count);
}

/* ---- Launch --------------------------------------------------------------------------------- */

size_t ft_cuda_attend_store_scratch(size_t sequences, size_t context, int heads, int head_size)
{
    size_t parts = parts_within(context, SMALLEST_PART);
    parts = parts < FEW_PARTS ? parts : FEW_PARTS;
    return sequences * parts * (size_t) heads * (size_t) (head_size + TAIL) * sizeof(float);
}

template <ft_dtype stored, int width, int parts, bool lean>
static int launch(const ft_cuda_args *args, ft_attend_job *a, const store_job *from,
                  const extent &e)
{
    size_t bytes = sizeof(angles<width>) + room_bytes<WARPS, stored, width>(e.heads, width, 0);
    size_t ctas = e.parts * e.groups * e.rows;
    size_t max_ctas =
        (e.rows == 1 ? MOST_OF_ONE : MOST_BLOCKS) * (size_t) args->chip->multiprocessors;
    if (e.parts > FEW_PARTS || ctas > max_ctas)
        return (int) cudaErrorNotSupported;
    a->parts_of_block = 1;
    int status = allow_shared(args->chip, turning_kernel<stored, width, parts, lean>, bytes);
    if (status != (int) cudaSuccess)
        return status;
    dim3 grid((unsigned) e.groups, (unsigned) e.rows, (unsigned) e.parts);
    return ft_launch(turning_kernel<stored, width, parts, lean>, grid, dim3(THREADS), bytes,
                     args->stream, args->chip->overlaps, 1, *a, *from);
}

/*
 * The lean kernel with few splits has almost half the instructions, which relieves the instruction
 * caches: 658 tokens/s for Llama 2 7B on an H200 instead of 640.
 */
template <ft_dtype stored, int width>
static int by_need(const ft_cuda_args *args, ft_attend_job *a, const store_job *from)
{
    extent e = extent_of(a, form<stored, width>::part);
    if (from->positions != 0 || (size_t) e.heads * width / 4 > THREADS / 4)
        return launch<stored, width, FEW_PARTS, false>(args, a, from, e);
    return e.parts > FEWER_PARTS ? launch<stored, width, FEW_PARTS, true>(args, a, from, e)
                                 : launch<stored, width, FEWER_PARTS, true>(args, a, from, e);
}

template <ft_dtype stored>
static int by_width(const ft_cuda_args *args, ft_attend_job *a, const store_job *from)
{
    switch (a->head_size) {
    case 64:
        return by_need<stored, 64>(args, a, from);
    case 128:
        return by_need<stored, 128>(args, a, from);
    default:
        return (int) cudaErrorNotSupported;
    }
}

/* Supports decode without beams, and a cache with the same 16-bit dtype as all other values. */
static bool takes(const ft_cuda_args *store, const ft_attend_job *a, const store_job *from)
{
    const ft_cuda_batch *batch = store->batch;
    return batch->step && batch->lanes <= 1 && !store->op->attr.memory && from->inv_freq != NULL &&
           from->dtype == from->cache_dtype && from->turned_dtype == from->dtype &&
           a->q_dtype == from->dtype && a->cached_rows <= UINT32_MAX && a->arrived != NULL;
}

extern "C" int ft_cuda_store_attend(const ft_cuda_args *store, const ft_cuda_args *attend)
{
    ft_attend_job a = ft_attend_job_of(attend);
    store_job from = ft_store_job_of(store);
    if (!takes(store, &a, &from))
        return (int) cudaErrorNotSupported;
    if (a.sequences == 0)
        return (int) cudaSuccess;
    if (attend->scratch_bytes <
        ft_cuda_attend_store_scratch(a.sequences, a.context, a.heads, a.head_size))
        return (int) cudaErrorInvalidValue;
    if (from.dtype == FT_F16)
        return by_width<FT_F16>(attend, &a, &from);
    if (from.dtype == FT_BF16 && attend->chip->capability >= 80)
        return by_width<FT_BF16>(attend, &a, &from);
    return (int) cudaErrorNotSupported;
}
