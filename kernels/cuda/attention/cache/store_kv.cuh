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

enum { STORE_PAIRS = FT_CUDA_WIDEST_HEAD / 2 }; /* maximum pairs of a head */

/* Keys or values of the cache. */
typedef struct store_place {
    void *data;
    float *scales; /* one per token and head, if the cache holds int8 */
} store_place;

typedef struct store_job {
    void *query, *key, *value, *turned; /* rows of heads; `rotated` holds the rotated queries */
    store_place keys, values;
    const float *inv_freq; /* NULL: no rotary embedding */
    const int32_t *owner, *start, *past, *reach, *pages;
    size_t most_pages;
    int heads, kv_heads, head_size; /* heads: query heads, possibly 0 */
    int lanes;                      /* lanes per head: a power of two; some may be idle */
    ft_dtype dtype, turned_dtype, cache_dtype;
    int positions; /* sequence length above which "dynamic" scaling changes the frequencies; 0:
                      never */
    float theta, factor;
} store_job;

/* ---- Rotary angles ------------------------------------------------------------------------- */

/* "dynamic" rope scaling: the base of the frequencies for a sequence of `n_tokens` tokens. */
static __device__ double store_base(const store_job &a, int reach)
{
    double size = a.head_size;
    double stretch = (double) a.factor * reach / a.positions - ((double) a.factor - 1.0);
    return (double) a.theta * pow(stretch, size / (size - 2.0));
}

/* The frequency of pair i. `dynamic`: it may depend on the sequence length. */
template <bool stretches>
static __device__ __forceinline__ float store_frequency(const store_job &a, int i, int reach)
{
    if (!stretches || a.positions == 0 || reach <= a.positions)
        return a.inv_freq[i];
    return (float) pow(store_base(a, reach), -2.0 * (double) i / (double) a.head_size);
}

/* Computes the angles of a row with `threads` threads. */
template <bool stretches = true>
static __device__ __forceinline__ void store_angles(float *cosine, float *sine, const store_job &a,
                                                    int position, int reach, int threads)
{
    for (int i = (int) threadIdx.x; i < a.head_size / 2; i += threads)
        sincosf((float) position * store_frequency<stretches>(a, i, reach), &sine[i], &cosine[i]);
}

/* ---- Heads --------------------------------------------------------------------------------- */

/* N consecutive elements of the lower half of a head, and their partners in the upper half. */
template <int N> struct store_halves {
    float low[N], high[N];
};

template <int N>
static __device__ __forceinline__ void store_turn(store_halves<N> *x, const float *cosine,
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
static __device__ __forceinline__ float store_amax(const store_halves<N> &x, int lanes)
{
    float amax = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++)
        amax = fmaxf(amax, fmaxf(fabsf(x.low[i]), fabsf(x.high[i])));
    for (int step = lanes / 2; step > 0; step /= 2)
        amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, step));
    return amax;
}

/* Writes a chunk to the cache and, for int8, the scale of the head. */
template <int N>
static __device__ __forceinline__ void store_keep(const store_job &a, const store_place &to,
                                                  size_t row, int first, store_halves<N> *x,
                                                  float amax)
{
    size_t at = row * (size_t) a.head_size + (size_t) first, half = (size_t) a.head_size / 2;
    if (a.cache_dtype != FT_I8) {
        ft_store<N>(to.data, a.cache_dtype, at, x->low);
        ft_store<N>(to.data, a.cache_dtype, at + half, x->high);
        return;
    }
    float scale = ft_scale_from_amax(amax), inverse = ft_inverse_scale(scale);
    ft_store_codes_as<FT_I8, N>(to.data, at, x->low, inverse);
    ft_store_codes_as<FT_I8, N>(to.data, at + half, x->high, inverse);
    if (first == 0)
        to.scales[row] = scale;
}

/* Processes head `item` of the row: queries first, then keys, then values. */
template <int N>
static __device__ __forceinline__ void store_head(const store_job &a, size_t row, size_t sequence,
                                                  int position, int item, int first, bool mine,
                                                  const float *cosine, const float *sine)
{
    size_t half = (size_t) a.head_size / 2;
    bool is_query = item < a.heads, is_key = !is_query && item < a.heads + a.kv_heads;
    int head = is_query ? item : (item - a.heads) % a.kv_heads,
        heads = is_query ? a.heads : a.kv_heads;
    size_t at = (row * (size_t) heads + (size_t) head) * (size_t) a.head_size + (size_t) first;
    store_halves<N> x = {};
    if (mine) {
        void *from = is_query ? a.query : is_key ? a.key : a.value;
        ft_load<N>(x.low, from, a.dtype, at);
        ft_load<N>(x.high, from, a.dtype, at + half);
        if (a.inv_freq != NULL && (is_query || is_key))
            store_turn(&x, cosine + first, sine + first);
    }
    float amax = a.cache_dtype == FT_I8 ? store_amax(x, a.lanes) : 0.0f;
    if (!mine)
        return;
    if (is_query) {
        ft_store<N>(a.turned, a.turned_dtype, at, x.low);
        ft_store<N>(a.turned, a.turned_dtype, at + half, x.high);
        return;
    }
    size_t cached = ft_cache_find(a.pages + sequence * a.most_pages, (size_t) position,
                                  (size_t) head, (size_t) heads);
    store_keep(a, is_key ? a.keys : a.values, cached, first, &x, amax);
}

/*
 * Processes the groups begin, begin + step, ... of a row's heads; all `threads` threads must call
 * it.
 */
template <int N>
static __device__ __forceinline__ void store_heads(const store_job &a, size_t row, int sequence,
                                                   int position, int begin, int step, int threads,
                                                   const float *cosine, const float *sine)
{
    int groups = threads / a.lanes, items = a.heads + 2 * a.kv_heads;
    int group = (int) threadIdx.x / a.lanes, first = (int) threadIdx.x % a.lanes * N;
    for (int item = begin * groups; item < items; item += step * groups)
        store_head<N>(a, row, (size_t) sequence, position, min(item + group, items - 1), first,
                      item + group < items && first < a.head_size / 2, cosine, sine);
}

/* The position of a row in its sequence. */
static __device__ __forceinline__ int store_position(const store_job &a, size_t row, int sequence)
{
    return a.past[sequence] + (int) row - a.start[sequence];
}

/* Builds the parameters of a STORE_KV operation; the launcher sets lanes_per_head. */
store_job ft_store_job_of(const ft_cuda_args *args);

#endif
