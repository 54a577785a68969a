/*
 * decode_split_k.cuh - inside decode.cu and decode_short.cu: reduction of the warps of a split, and
 * of the splits of a row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_SPLIT_K_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_SPLIT_K_CUH

#include "kernels/cuda/attention/cache/decode_mainloop.cuh"

/* ---- Splits of a thread group --------------------------------------------------------------- */

/* Shared memory of a thread group. Rows of elements are padded to avoid bank conflicts. */
template <int warps, ft_dtype stored, int width> struct room {
    reading<stored, width> warp[warps];
    float most[WARPS][HEADS], sum[WARPS][HEADS]; /* partial results of the warps */
    bool last;                                   /* this CTA finished after all others */
    __align__(16) float rest[1]; /* [WARPS, heads, width + 4] partials of warps, then partials of
                                    splits */
};

/*
 * Reuses the storage of keys and values: the weight of each split, the total of all, then partial
 * sums of the reduction.
 */
typedef struct verdict {
    float weight[HEADS][MOST_PARTS], total[HEADS];
} verdict;

template <int warps, ft_dtype stored, int width>
static size_t room_bytes(int heads, int head_size, int parts)
{
    size_t quarters = (size_t) WARPS * (size_t) heads * (size_t) (width + 4);
    size_t slots = (size_t) parts * (size_t) heads * (size_t) (head_size + TAIL);
    return sizeof(room<warps, stored, width>) + (quarters + slots) * sizeof(float);
}

/* Where the partial results of a head are stored: elements, maximum score, sum. */
typedef struct slots {
    float *data;
    int of_head, of_part; /* strides */
} slots;

static __device__ __forceinline__ slots slots_outside(const ft_attend_job &a, const columns &of)
{
    int row = a.head_size + TAIL, row_splits = a.parts_of_block * (int) gridDim.x;
    int in_all = a.group * a.together; /* columns that share a KV head */
    size_t at = ((size_t) of.rows * (size_t) a.kv_heads + (size_t) of.kv_head) * (size_t) in_all +
                (size_t) of.first;
    return slots{ a.partial + at * (size_t) row_splits * (size_t) row, row_splits * row, row };
}

template <int warps, ft_dtype stored, int width>
static __device__ __forceinline__ slots slots_inside(room<warps, stored, width> *r,
                                                     const ft_attend_job &a, int heads)
{
    int row = a.head_size + TAIL;
    return slots{ r->rest + WARPS * heads * (width + 4), a.parts_of_block * row, row };
}

static __device__ __forceinline__ float *slot_at(const slots &to, int head, int index)
{
    return to.data + head * to.of_head + index * to.of_part;
}

/* Stores the sums of this warp, which are one quarter of a split. */
template <int warps, ft_dtype stored, int width>
static __device__ __forceinline__ void gather(room<warps, stored, width> *to, int quarter,
                                              const partial_sums<width> &sums, int heads)
{
    typedef form<stored, width> f;
    int g = (int) threadIdx.x % 32 / 4, t = (int) threadIdx.x % 4;
    float unit = stored == FT_I8 ? sums.unit : 1.0f;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int head = 2 * t + i;
        float sum = ft_attend_total(sums.sum[i]);
        if (head >= heads)
            continue;
        if (g == 0) {
            to->most[quarter][head] = sums.most[i];
            to->sum[quarter][head] = sum;
        }
        float *y = to->rest + (quarter * heads + head) * (width + 4);
#pragma unroll
        for (int j = 0; j < width / 16; j += 2) {
            int at = (g + 8 * (2 * j / f::run)) * f::run + 2 * j % f::run;
            *(float4 *) (y + at) =
                make_float4(sums.y[j][i] * unit, sums.y[j][2 + i] * unit, sums.y[j + 1][i] * unit,
                            sums.y[j + 1][2 + i] * unit);
        }
    }
}

static __device__ __forceinline__ float4 add_scaled(float4 y, float4 x, float scale)
{
    return make_float4(fmaf(x.x, scale, y.x), fmaf(x.y, scale, y.y), fmaf(x.z, scale, y.z),
                       fmaf(x.w, scale, y.w));
}

/* Writes four elements of a column of the result. */
static __device__ __forceinline__ void write(const ft_attend_job &a, const columns &of, int head,
                                             int at, float4 y, float sum)
{
    float v[4] = { y.x / sum, y.y / sum, y.z / sum, y.w / sum };
    ft_store<4>(a.y, a.y_dtype, column_at(a, of, head) + (size_t) at, v);
}

/* Four elements of a split. */
typedef struct part_sums {
    float most, sum;
    float4 y;
} part_sums;

/*
 * Combines the warps begin .. end - 1 of a split. The others have no visible keys and would add
 * zeros.
 */
template <int width, typename room>
static __device__ __forceinline__ part_sums add_quarters(const room &r, int heads, int head, int at,
                                                         int begin, int end)
{
    part_sums all = { r.most[begin][head] };
#pragma unroll
    for (int w = begin + 1; w < end; w++)
        all.most = fmaxf(all.most, r.most[w][head]);
#pragma unroll
    for (int w = begin; w < end; w++) {
        const float *from = r.rest + (w * heads + head) * (width + 4) + at;
        float weight = ft_power_of_two(r.most[w][head] - all.most);
        all.sum = fmaf(r.sum[w][head], weight, all.sum);
        all.y = add_scaled(all.y, *(const float4 *) from, weight);
    }
    return all;
}

template <int warps, ft_dtype stored, int width>
static __device__ __forceinline__ void
finish_part(const room<warps, stored, width> &r, const ft_attend_job &a, const slots &to, int heads,
            int index, int begin = 0, int end = WARPS)
{
    int pieces = a.head_size / 4;
    for (int i = crew<warps>::index(); i < heads * pieces; i += crew<warps>::threads) {
        int head = i / pieces, at = i % pieces * 4;
        part_sums all = add_quarters<width>(r, heads, head, at, begin, end);
        float *slot = slot_at(to, head, index);
        *(float4 *) (slot + at) = all.y;
        if (at == 0) {
            slot[a.head_size] = all.most;
            slot[a.head_size + 1] = all.sum;
        }
    }
}

/* ---- Result of a sequence ------------------------------------------------------------------- */

/* Whether this CTA is the last one of its sequence and heads; resets the counter if so. */
static __device__ __forceinline__ bool is_last(bool *last, const ft_attend_job &a, const share &s)
{
    uint32_t blocks = (uint32_t) ((s.count + a.parts_of_block - 1) / a.parts_of_block);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t *arrived = a.arrived + (size_t) blockIdx.z * gridDim.y + blockIdx.y;
        *last = atomicAdd(arrived, 1u) + 1 == blocks;
        if (*last)
            *arrived = 0;
    }
    __syncthreads();
    __threadfence();
    return *last;
}

/* Reads a partial from shared memory, or from global memory that other CTAs have written. */
template <bool inside, typename T> static __device__ __forceinline__ T read_slot(const float *from)
{
    return inside ? *(const T *) from : __ldcg((const T *) from);
}

/*
 * Computes the weight of each split of each head, and the total. Each warp processes one head at a
 * time.
 */
template <bool inside, int warps>
static __device__ __forceinline__ void weigh_parts(verdict *v, const ft_attend_job &a,
                                                   const slots &from, int heads, int count)
{
    int lane = (int) threadIdx.x % 32;
    for (int head = crew<warps>::index() / 32; head < heads; head += warps) {
        float most[MOST_PARTS / 32], sum[MOST_PARTS / 32], largest = -INFINITY, all = 0.0f;
#pragma unroll
        for (int i = 0; i < MOST_PARTS / 32; i++) {
            int index = lane + 32 * i;
            const float *slot = slot_at(from, head, index) + a.head_size;
            most[i] = index < count ? read_slot<inside, float>(slot) : -INFINITY;
            sum[i] = index < count ? read_slot<inside, float>(slot + 1) : 0.0f;
            largest = fmaxf(largest, most[i]);
        }
#pragma unroll
        for (int step = 1; step < 32; step *= 2)
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
#pragma unroll
        for (int i = 0; i < MOST_PARTS / 32; i++) {
            float w = ft_power_of_two(most[i] - largest);
            v->weight[head][lane + 32 * i] = w;
            all = fmaf(sum[i], w, all);
        }
#pragma unroll
        for (int step = 1; step < 32; step *= 2)
            all += __shfl_xor_sync(~0u, all, step);
        v->total[head] = all;
    }
}

/*
 * Threads without elements of their own share those of others: each adds every `lanes_per_item`th
 * split, and these sums are added in order. A single warp does the same, with the same bits.
 */
template <bool inside, int warps>
static __device__ __forceinline__ void finish(verdict *v, float *sums, const ft_attend_job &a,
                                              const slots &from, const columns &of, int count)
{
    int heads = of.count, pieces = a.head_size / 4, items = heads * pieces;
    int shares = items <= THREADS / 4 ? 4 : items <= THREADS / 2 ? 2 : 1;
    weigh_parts<inside, warps>(v, a, from, heads, count);
    crew<warps>::sync();
    for (int i = crew<warps>::index(); i < items * shares; i += crew<warps>::threads) {
        int item_lane = i / items, head = i % items / pieces, at = i % pieces * 4;
        float4 y = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
        for (int index = item_lane; index < count; index += shares)
            y = add_scaled(y, read_slot<inside, float4>(slot_at(from, head, index) + at),
                           v->weight[head][index]);
        if (shares == 1)
            write(a, of, head, at, y, v->total[head]);
        else
            *(float4 *) (sums + 4 * i) = y;
    }
    if (shares == 1)
        return;
    crew<warps>::sync();
    for (int i = crew<warps>::index(); i < items; i += crew<warps>::threads) {
        float4 y = *(const float4 *) (sums + 4 * i);
        for (int item_lane = 1; item_lane < shares; item_lane++)
            y = add_scaled(y, *(const float4 *) (sums + 4 * (i + item_lane * items)), 1.0f);
        write(a, of, i / pieces, i % pieces * 4, y, v->total[i / pieces]);
    }
}

#endif
