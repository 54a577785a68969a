/*
 * store_kv.cuh - inside store_kv.cu and store_attend.cu: parameters, rotary embedding and
 * quantization of a head.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_STORE_KV_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_STORE_KV_CUH

#include "kernels/kv_cache.h"
#include "kernels/cuda/rows.cuh"
#include "kernels/quant.h"

enum { MAX_ROTARY_PAIRS = FT_CUDA_MAX_HEAD_SIZE / 2 }; /* maximum pairs of a head */

/* Keys or values of the cache. */
typedef struct kv_destination {
    void *data;
    float *scales; /* one per token and head, if the cache holds int8 */
} kv_destination;

typedef struct store_kv_params {
    void *query, *key, *value, *rotated; /* rows of heads; `rotated` holds the rotated queries */
    kv_destination keys, values;
    const float *inv_freq; /* NULL: no rotary embedding */
    const int32_t *seq_id, *start, *n_past, *n_tokens, *pages;
    size_t max_pages;
    int heads, kv_heads, head_size; /* heads: query heads, possibly 0 */
    int lanes_per_head;             /* lanes per head: a power of two; some may be idle */
    ft_dtype dtype, rotated_dtype, cache_dtype;
    int max_positions; /* sequence length above which "dynamic" scaling changes the frequencies; 0:
                      never */
    float theta, factor;
} store_kv_params;

/* ---- Rotary angles ------------------------------------------------------------------------- */

/* "dynamic" rope scaling: the base of the frequencies for a sequence of `n_tokens` tokens. */
static __device__ double rope_dynamic_base(const store_kv_params &a, int n_tokens)
{
    double size = a.head_size;
    double ntk_scale = (double) a.factor * n_tokens / a.max_positions - ((double) a.factor - 1.0);
    return (double) a.theta * pow(ntk_scale, size / (size - 2.0));
}

/* The frequency of pair i. `dynamic`: it may depend on the sequence length. */
template <bool dynamic>
static __device__ __forceinline__ float rope_frequency(const store_kv_params &a, int i,
                                                       int n_tokens)
{
    if (!dynamic || a.max_positions == 0 || n_tokens <= a.max_positions)
        return a.inv_freq[i];
    return (float) pow(rope_dynamic_base(a, n_tokens), -2.0 * (double) i / (double) a.head_size);
}

/* Computes the angles of a row with `threads` threads. */
template <bool dynamic = true>
static __device__ __forceinline__ void rope_compute_angles(float *cosine, float *sine,
                                                           const store_kv_params &a, int position,
                                                           int n_tokens, int threads)
{
    for (int i = (int) threadIdx.x; i < a.head_size / 2; i += threads)
        sincosf((float) position * rope_frequency<dynamic>(a, i, n_tokens), &sine[i], &cosine[i]);
}

/* ---- Heads --------------------------------------------------------------------------------- */

/* N consecutive elements of the lower half of a head, and their partners in the upper half. */
template <int N> struct rotary_halves {
    float low[N], high[N];
};

template <int N>
static __device__ __forceinline__ void rope_rotate(rotary_halves<N> *x, const float *cosine,
                                                   const float *sine)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        float a = x->low[i], b = x->high[i];
        x->low[i] = a * cosine[i] - b * sine[i];
        x->high[i] = b * cosine[i] + a * sine[i];
    }
}

/* The amax of the head; all lanes of the warp must call it. */
template <int N>
static __device__ __forceinline__ float head_amax(const rotary_halves<N> &x, int lanes_per_head)
{
    float amax = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++)
        amax = fmaxf(amax, fmaxf(fabsf(x.low[i]), fabsf(x.high[i])));
    for (int group_stride = lanes_per_head / 2; group_stride > 0; group_stride /= 2)
        amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, group_stride));
    return amax;
}

/* Writes a chunk to the cache and, for int8, the scale of the head. */
template <int N>
static __device__ __forceinline__ void store_chunk(const store_kv_params &a,
                                                   const kv_destination &to, size_t row, int first,
                                                   rotary_halves<N> *x, float amax)
{
    size_t at = row * (size_t) a.head_size + (size_t) first, half = (size_t) a.head_size / 2;
    if (a.cache_dtype != FT_I8) {
        ft_store<N>(to.data, a.cache_dtype, at, x->low);
        ft_store<N>(to.data, a.cache_dtype, at + half, x->high);
        return;
    }
    float scale = ft_scale_from_amax(amax), inverse = ft_inverse_scale(scale);
    ft_store_quantized_as<FT_I8, N>(to.data, at, x->low, inverse);
    ft_store_quantized_as<FT_I8, N>(to.data, at + half, x->high, inverse);
    if (first == 0)
        to.scales[row] = scale;
}

/* Processes head `item` of the row: queries first, then keys, then values. */
template <int N>
static __device__ __forceinline__ void
store_kv_head(const store_kv_params &a, size_t row, size_t sequence, int position, int item,
              int first, bool is_active, const float *cosine, const float *sine)
{
    size_t half = (size_t) a.head_size / 2;
    bool is_query = item < a.heads, is_key = !is_query && item < a.heads + a.kv_heads;
    int head = is_query ? item : (item - a.heads) % a.kv_heads,
        heads = is_query ? a.heads : a.kv_heads;
    size_t at = (row * (size_t) heads + (size_t) head) * (size_t) a.head_size + (size_t) first;
    rotary_halves<N> x = {};
    if (is_active) {
        void *from = is_query ? a.query : is_key ? a.key : a.value;
        ft_load<N>(x.low, from, a.dtype, at);
        ft_load<N>(x.high, from, a.dtype, at + half);
        if (a.inv_freq != NULL && (is_query || is_key))
            rope_rotate(&x, cosine + first, sine + first);
    }
    float amax = a.cache_dtype == FT_I8 ? head_amax(x, a.lanes_per_head) : 0.0f;
    if (!is_active)
        return;
    if (is_query) {
        ft_store<N>(a.rotated, a.rotated_dtype, at, x.low);
        ft_store<N>(a.rotated, a.rotated_dtype, at + half, x.high);
        return;
    }
    size_t cached = ft_cache_token_row(a.pages + sequence * a.max_pages, (size_t) position,
                                       (size_t) head, (size_t) heads);
    store_chunk(a, is_key ? a.keys : a.values, cached, first, &x, amax);
}

/*
 * Processes the groups begin, begin + step, ... of a row's heads; all `threads` threads must call
 * it.
 */
template <int N>
static __device__ __forceinline__ void
store_kv_heads(const store_kv_params &a, size_t row, int sequence, int position, int first_group,
               int group_stride, int threads, const float *cosine, const float *sine)
{
    int groups = threads / a.lanes_per_head, items = a.heads + 2 * a.kv_heads;
    int group = (int) threadIdx.x / a.lanes_per_head,
        first = (int) threadIdx.x % a.lanes_per_head * N;
    for (int item = first_group * groups; item < items; item += group_stride * groups)
        store_kv_head<N>(a, row, (size_t) sequence, position, min(item + group, items - 1), first,
                         item + group < items && first < a.head_size / 2, cosine, sine);
}

/* The position of a row in its sequence. */
static __device__ __forceinline__ int row_position(const store_kv_params &a, size_t row,
                                                   int sequence)
{
    return a.n_past[sequence] + (int) row - a.start[sequence];
}

/* Builds the parameters of a STORE_KV operation; the launcher sets lanes_per_head. */
store_kv_params ft_store_kv_params_of(const ft_cuda_args *args);

#endif
