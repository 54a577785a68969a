/*
 * decode_short.cu - decode attention for many short sequences, such as beams: one warp per
 * sequence.
 *
 * In decode.cu a split consists of four key tiles, one for each warp of a CTA. For a short sequence
 * most of these warps are idle, and the CTA spends its time on looking up keys, waiting for them
 * and waiting for its other warps. Here one warp processes all four tiles and combines their sums
 * as the CTA would, with the same bits. The number of rows may therefore select the kernel. No warp
 * waits for another, so many more sequences are in flight.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/decode_dispatch.cuh"
#include "kernels/cuda/attention/cache/decode_split_k.cuh"
#include "kernels/cuda/attention/cache/decode_iterate.cuh"

/*
 * Thresholds measured on an H200: 8 heads of 64 over 33 tokens of f16 take 8 us instead of 14 at
 * 128 rows, and 24 instead of 49 at 512. At 32 rows (256 warps) both kernels take 4.
 */
enum {
    MAX_CONTEXT = 256,   /* maximum tokens of a sequence */
    MIN_WARPS_PER_SM = 3 /* minimum warps per multiprocessor (exclusive) */
};

/* Other architectures need more registers for the same code, or have less shared memory. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ != 900
enum { FEWER_CTAS = 1 };
#else
enum { FEWER_CTAS = 0 };
#endif

/* CTAs per multiprocessor, limited by registers and shared memory. */
template <ft_dtype kv_dtype, int width>
static constexpr int min_ctas_of = (decode_traits<kv_dtype, width>::row > 128  ? 3
                                    : decode_traits<kv_dtype, width>::row > 64 ? 4
                                                                               : 5) -
                                   FEWER_CTAS;

template <ft_dtype kv_dtype, int width> using warp_storage = shared_storage<1, kv_dtype, width>;

/* Writes the result of a row that has a single split. */
template <ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void
finish_single_split(const warp_storage<kv_dtype, width> &r, const ft_attend_kv_params &a,
                    const head_columns &of, int begin, int end)
{
    int chunks = a.head_size / 4;
    for (int i = thread_group<1>::index(); i < of.count * chunks; i += thread_group<1>::threads) {
        int head = i / chunks, at = i % chunks * 4;
        split_partial all = combine_warps<width>(r, of.count, head, at, begin, end);
        store_output(a, of, head, at, all.y, all.sum);
    }
}

/*
 * Processes the splits of a row one after the other: warp tiles from the first visible key to the
 * last.
 */
template <bool has_beams, bool bf16, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void
process_splits(warp_storage<kv_dtype, width> *r, key_iterator *w, const ft_attend_kv_params &a,
               const ft_query_tile &query_tile, const split_range &s, const head_columns &of,
               const uint32_t q[width / 16][2])
{
    typedef decode_traits<kv_dtype, width> f;
#pragma unroll 1
    for (int index = 0; index < s.count; index++) {
#pragma unroll 1
        while (w->base < min(split_begin(s, index + 1), w->end)) {
            partial_acc<width> acc = { { -INFINITY, -INFINITY } };
            int warp_index = w->base % f::min_split_keys / f::keys;
            mainloop<1, has_beams, bf16>(&acc, w, r->warp, a, query_tile, s, of.kv_head, q,
                                         w->base + f::keys);
            store_warp_partial(r, warp_index, acc, of.count);
        }
        __syncwarp();
        int begin = index == 0 ? s.first % f::min_split_keys / f::keys : 0;
        int end = (w->base - 1) % f::min_split_keys / f::keys + 1;
        if (s.count == 1)
            return finish_single_split<kv_dtype, width>(*r, a, of, begin, end);
        finish_split(*r, a, smem_partials(r, a, of.count), of.count, index, begin, end);
        __syncwarp(); /* all lanes have read what the next split overwrites */
    }
    split_weights *v = (split_weights *) r->warp; /* keys and values have been read */
    reduce_splits<true, 1>(v, (float *) (v + 1), a, smem_partials(r, a, of.count), of, s.count);
}

/* Number of cache rows that a warp looks up in advance, rounded up to complete tiles. */
static __host__ __device__ __forceinline__ size_t cached_rows_in_smem(const ft_attend_kv_params &a)
{
    return a.cache_indirection != NULL ? (a.context + 31) / 32 * 32 : 0;
}

/*
 * Looks up the cache rows of a beam's keys. This takes two dependent reads per key, which happen
 * once here instead of once per tile. A lane reads only entries that it has written.
 */
static __device__ __forceinline__ const uint32_t *lookup_rows(uint32_t *rows,
                                                              const ft_attend_kv_params &a,
                                                              const ft_query_tile &query_tile,
                                                              const split_range &s, int kv_head)
{
    int lane = (int) threadIdx.x % 32;
#pragma unroll 4
    for (int base = 0; base <= s.last; base += 32)
        rows[base + lane] =
            (uint32_t) ft_cached_row(a, query_tile, min(base + lane, s.last), kv_head);
    return rows;
}

/* One warp per item: a group of heads of one row, or of several rows that read the same keys. */
template <bool has_beams, ft_dtype kv_dtype, int width, bool bf16>
static __global__ void __launch_bounds__(THREADS, (min_ctas_of<kv_dtype, width>) )
    decode_short_kernel(const __grid_constant__ ft_attend_kv_params a, unsigned groups,
                        unsigned items, unsigned bytes)
{
    extern __shared__ uint4 shared[];
    static_assert(sizeof(split_weights) + THREADS * sizeof(float4) <=
                      sizeof(kv_tile<kv_dtype, width>),
                  "the reduction reuses the storage of keys");
    unsigned item = blockIdx.x * WARPS + threadIdx.x / 32;
    warp_storage<kv_dtype, width> *r =
        (warp_storage<kv_dtype, width> *) ((char *) shared + threadIdx.x / 32 * bytes);
    head_columns of = head_columns_of(a, item % groups, item / groups);
    ft_query_tile query_tile = {};
    if (item < items)
        query_tile = ft_query_tile_at(a, of.rows * (unsigned) a.sequences_per_kv);
    if (query_tile.rows == 0) {
        ft_pdl_wait(); /* otherwise the dependent kernel could begin before the
                                      predecessor has ended */
        return;
    }
    split_range s =
        split_range_of(a, query_tile.position, decode_traits<kv_dtype, width>::min_split_keys, 0);
    uint32_t q[width / 16][2];
    key_iterator w = {};
    if (has_beams)
        w.rows = lookup_rows((uint32_t *) ((char *) r + bytes) - cached_rows_in_smem(a), a,
                             query_tile, s, of.kv_head);
    prologue<1, has_beams>(&w, r->warp, a, query_tile, s, of.kv_head);
    load_queries<kv_dtype, width>(q, a, of);
    process_splits<has_beams, bf16>(r, &w, a, query_tile, s, of, q);
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <bool has_beams, ft_dtype kv_dtype, int width, bool bf16> struct decode_short_launcher {
    static int launch(const ft_cuda_device_props *props, void *stream,
                      const ft_attend_kv_params *params)
    {
        ft_attend_kv_params a = *params;
        launch_extent e = launch_extent_of(params, decode_traits<kv_dtype, width>::min_split_keys);
        size_t items = e.groups * e.rows;
        if (items <= MIN_WARPS_PER_SM * (size_t) props->sm_count || items > INT32_MAX)
            return (int) cudaErrorNotSupported;
        a.splits_per_cta = (int) e.splits;
        size_t bytes = smem_bytes<1, kv_dtype, width>(e.heads, a.head_size,
                                                      e.splits > 1 ? (int) e.splits : 0) +
                       cached_rows_in_smem(a) * sizeof(uint32_t);
        int status = set_max_smem(props, decode_short_kernel<has_beams, kv_dtype, width, bf16>,
                                  WARPS * bytes);
        if (status != (int) cudaSuccess)
            return status;
        return ft_launch(decode_short_kernel<has_beams, kv_dtype, width, bf16>,
                         dim3(ft_ceil_div(items, WARPS)), dim3(THREADS), WARPS * bytes, stream,
                         props->has_pdl, 1, a, (unsigned) e.groups, (unsigned) items,
                         (unsigned) bytes);
    }
};

/* Not supported: registers would allow few warps. */
template <bool has_beams, ft_dtype kv_dtype, bool bf16>
struct decode_short_launcher<has_beams, kv_dtype, 256, bf16> {
    static int launch(const ft_cuda_device_props *, void *, const ft_attend_kv_params *)
    {
        return (int) cudaErrorNotSupported;
    }
};

int ft_cuda_attend_kv_decode_short(const ft_cuda_device_props *props, void *stream,
                                   const ft_attend_kv_params *a)
{
    if (a->context > MAX_CONTEXT)
        return (int) cudaErrorNotSupported;
    return decode_dispatch<decode_short_launcher>::launch(props, stream, a);
}
