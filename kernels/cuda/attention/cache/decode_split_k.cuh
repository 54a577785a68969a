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
template <int warps, ft_dtype kv_dtype, int width> struct shared_storage {
    kv_tile<kv_dtype, width> warp[warps];
    float row_max[WARPS][MAX_HEADS], sum[WARPS][MAX_HEADS]; /* partial results of the warps */
    bool last;                                              /* this CTA finished after all others */
    __align__(16) float rest[1]; /* [WARPS, heads, width + 4] partials of warps, then partials of
                                    splits */
};

/*
 * Reuses the storage of keys and values: the weight of each split, the total of all, then partial
 * sums of the reduction.
 */
typedef struct split_weights {
    float weight[MAX_HEADS][MAX_SPLITS], total[MAX_HEADS];
} split_weights;

template <int warps, ft_dtype kv_dtype, int width>
static size_t smem_bytes(int heads, int head_size, int splits)
{
    size_t warp_floats = (size_t) WARPS * (size_t) heads * (size_t) (width + 4);
    size_t partials = (size_t) splits * (size_t) heads * (size_t) (head_size + STATS);
    return sizeof(shared_storage<warps, kv_dtype, width>) +
           (warp_floats + partials) * sizeof(float);
}

/* Where the partial results of a head are stored: elements, maximum score, sum. */
typedef struct partials {
    float *data;
    int head_stride, split_stride; /* strides */
} partials;

static __device__ __forceinline__ partials global_partials(const ft_attend_kv_params &a,
                                                           const head_columns &of)
{
    int row = a.head_size + STATS, row_splits = a.splits_per_cta * (int) gridDim.x;
    int columns_per_kv = a.group * a.sequences_per_kv; /* columns that share a KV head */
    size_t at =
        ((size_t) of.rows * (size_t) a.kv_heads + (size_t) of.kv_head) * (size_t) columns_per_kv +
        (size_t) of.first;
    return partials{ a.partial + at * (size_t) row_splits * (size_t) row, row_splits * row, row };
}

template <int warps, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ partials smem_partials(shared_storage<warps, kv_dtype, width> *r,
                                                         const ft_attend_kv_params &a, int heads)
{
    int row = a.head_size + STATS;
    return partials{ r->rest + WARPS * heads * (width + 4), a.splits_per_cta * row, row };
}

static __device__ __forceinline__ float *partial_at(const partials &to, int head, int index)
{
    return to.data + head * to.head_stride + index * to.split_stride;
}

/* Stores the sums of this warp, which are one quarter of a split. */
template <int warps, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void
store_warp_partial(shared_storage<warps, kv_dtype, width> *to, int warp_index,
                   const partial_acc<width> &acc, int heads)
{
    typedef decode_traits<kv_dtype, width> f;
    int g = (int) threadIdx.x % 32 / 4, t = (int) threadIdx.x % 4;
    float unit = kv_dtype == FT_I8 ? acc.unit : 1.0f;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int head = 2 * t + i;
        float sum = ft_column_sum(acc.sum[i]);
        if (head >= heads)
            continue;
        if (g == 0) {
            to->row_max[warp_index][head] = acc.row_max[i];
            to->sum[warp_index][head] = sum;
        }
        float *y = to->rest + (warp_index * heads + head) * (width + 4);
#pragma unroll
        for (int j = 0; j < width / 16; j += 2) {
            int at = (g + 8 * (2 * j / f::chunk_elements)) * f::chunk_elements +
                     2 * j % f::chunk_elements;
            *(float4 *) (y + at) = make_float4(acc.y[j][i] * unit, acc.y[j][2 + i] * unit,
                                               acc.y[j + 1][i] * unit, acc.y[j + 1][2 + i] * unit);
        }
    }
}

static __device__ __forceinline__ float4 fma_x4(float4 y, float4 x, float scale)
{
    return make_float4(fmaf(x.x, scale, y.x), fmaf(x.y, scale, y.y), fmaf(x.z, scale, y.z),
                       fmaf(x.w, scale, y.w));
}

/* Writes four elements of a column of the result. */
static __device__ __forceinline__ void store_output(const ft_attend_kv_params &a,
                                                    const head_columns &of, int head, int at,
                                                    float4 y, float sum)
{
    float v[4] = { y.x / sum, y.y / sum, y.z / sum, y.w / sum };
    ft_store<4>(a.y, a.y_dtype, column_offset(a, of, head) + (size_t) at, v);
}

/* Four elements of a split. */
typedef struct split_partial {
    float row_max, sum;
    float4 y;
} split_partial;

/*
 * Combines the warps begin .. end - 1 of a split. The others have no visible keys and would add
 * zeros.
 */
template <int width, typename shared_storage>
static __device__ __forceinline__ split_partial combine_warps(const shared_storage &r, int heads,
                                                              int head, int at, int begin, int end)
{
    split_partial total_acc = { r.row_max[begin][head] };
#pragma unroll
    for (int w = begin + 1; w < end; w++)
        total_acc.row_max = fmaxf(total_acc.row_max, r.row_max[w][head]);
#pragma unroll
    for (int w = begin; w < end; w++) {
        const float *from = r.rest + (w * heads + head) * (width + 4) + at;
        float weight = ft_exp2_approx(r.row_max[w][head] - total_acc.row_max);
        total_acc.sum = fmaf(r.sum[w][head], weight, total_acc.sum);
        total_acc.y = fma_x4(total_acc.y, *(const float4 *) from, weight);
    }
    return total_acc;
}

template <int warps, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void
finish_split(const shared_storage<warps, kv_dtype, width> &r, const ft_attend_kv_params &a,
             const partials &to, int heads, int index, int begin = 0, int end = WARPS)
{
    int chunks = a.head_size / 4;
    for (int i = thread_group<warps>::index(); i < heads * chunks;
         i += thread_group<warps>::threads) {
        int head = i / chunks, at = i % chunks * 4;
        split_partial total_acc = combine_warps<width>(r, heads, head, at, begin, end);
        float *partial_ptr = partial_at(to, head, index);
        *(float4 *) (partial_ptr + at) = total_acc.y;
        if (at == 0) {
            partial_ptr[a.head_size] = total_acc.row_max;
            partial_ptr[a.head_size + 1] = total_acc.sum;
        }
    }
}

/* ---- Result of a sequence ------------------------------------------------------------------- */

/* Whether this CTA is the last one of its sequence and heads; resets the counter if so. */
static __device__ __forceinline__ bool is_last_cta(bool *last, const ft_attend_kv_params &a,
                                                   const split_range &s)
{
    uint32_t ctas = (uint32_t) ((s.count + a.splits_per_cta - 1) / a.splits_per_cta);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t *split_counters = a.split_counters + (size_t) blockIdx.z * gridDim.y + blockIdx.y;
        *last = atomicAdd(split_counters, 1u) + 1 == ctas;
        if (*last)
            *split_counters = 0;
    }
    __syncthreads();
    __threadfence();
    return *last;
}

/* Reads a partial from shared memory, or from global memory that other CTAs have written. */
template <bool in_smem, typename T>
static __device__ __forceinline__ T load_partial(const float *from)
{
    return in_smem ? *(const T *) from : __ldcg((const T *) from);
}

/*
 * Computes the weight of each split of each head, and the total. Each warp processes one head at a
 * time.
 */
template <bool in_smem, int warps>
static __device__ __forceinline__ void
compute_split_weights(split_weights *v, const ft_attend_kv_params &a, const partials &from,
                      int heads, int count)
{
    int lane = (int) threadIdx.x % 32;
    for (int head = thread_group<warps>::index() / 32; head < heads; head += warps) {
        float row_max[MAX_SPLITS / 32], sum[MAX_SPLITS / 32], max_of_splits = -INFINITY,
                                                              total_acc = 0.0f;
#pragma unroll
        for (int i = 0; i < MAX_SPLITS / 32; i++) {
            int index = lane + 32 * i;
            const float *partial_ptr = partial_at(from, head, index) + a.head_size;
            row_max[i] = index < count ? load_partial<in_smem, float>(partial_ptr) : -INFINITY;
            sum[i] = index < count ? load_partial<in_smem, float>(partial_ptr + 1) : 0.0f;
            max_of_splits = fmaxf(max_of_splits, row_max[i]);
        }
#pragma unroll
        for (int step = 1; step < 32; step *= 2)
            max_of_splits = fmaxf(max_of_splits, __shfl_xor_sync(~0u, max_of_splits, step));
#pragma unroll
        for (int i = 0; i < MAX_SPLITS / 32; i++) {
            float w = ft_exp2_approx(row_max[i] - max_of_splits);
            v->weight[head][lane + 32 * i] = w;
            total_acc = fmaf(sum[i], w, total_acc);
        }
#pragma unroll
        for (int step = 1; step < 32; step *= 2)
            total_acc += __shfl_xor_sync(~0u, total_acc, step);
        v->total[head] = total_acc;
    }
}

/*
 * Threads without elements of their own share those of others: each adds every `lanes_per_item`th
 * split, and these sums are added in order. A single warp does the same, with the same bits.
 */
template <bool in_smem, int warps>
static __device__ __forceinline__ void
reduce_splits(split_weights *v, float *acc, const ft_attend_kv_params &a, const partials &from,
              const head_columns &of, int count)
{
    int heads = of.count, chunks = a.head_size / 4, items = heads * chunks;
    int lanes_per_item = items <= THREADS / 4 ? 4 : items <= THREADS / 2 ? 2 : 1;
    compute_split_weights<in_smem, warps>(v, a, from, heads, count);
    thread_group<warps>::sync();
    for (int i = thread_group<warps>::index(); i < items * lanes_per_item;
         i += thread_group<warps>::threads) {
        int item_lane = i / items, head = i % items / chunks, at = i % chunks * 4;
        float4 y = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
        for (int index = item_lane; index < count; index += lanes_per_item)
            y = fma_x4(y, load_partial<in_smem, float4>(partial_at(from, head, index) + at),
                       v->weight[head][index]);
        if (lanes_per_item == 1)
            store_output(a, of, head, at, y, v->total[head]);
        else
            *(float4 *) (acc + 4 * i) = y;
    }
    if (lanes_per_item == 1)
        return;
    thread_group<warps>::sync();
    for (int i = thread_group<warps>::index(); i < items; i += thread_group<warps>::threads) {
        float4 y = *(const float4 *) (acc + 4 * i);
        for (int item_lane = 1; item_lane < lanes_per_item; item_lane++)
            y = fma_x4(y, *(const float4 *) (acc + 4 * (i + item_lane * items)), 1.0f);
        store_output(a, of, i / chunks, i % chunks * 4, y, v->total[i / chunks]);
    }
}

#endif
