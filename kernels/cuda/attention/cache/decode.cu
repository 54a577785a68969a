/*
 * decode.cu - decode attention: one query per sequence over its cached keys; limited by memory
 * bandwidth.
 *
 * The keys of a sequence are divided among CTAs (split-K), and those of a CTA among its warps, at
 * positions that depend on the query's position alone. Up to eight query heads that share one KV
 * head are columns of one MMA, so that the keys are read once: a . b^T with keys as rows of a and
 * heads as columns, then the transposed values with the elements of a head as rows. Only softmax
 * weights cross lanes. A lane copies 16 bytes of a row at once and has its own operands, because
 * the assignment of elements to MMA indices is free. The values of two keys are paired by byte
 * permutations.
 *
 * int8 values convert exactly to f16 by two instructions for two values. The scales of keys
 * multiply the scores. The scales of values multiply the softmax weights before these are rounded
 * to f16, divided by a power of two near the largest of them; so small scales do not produce f16
 * subnormals.
 *
 * Partial sums are always weighted and added in the same way and order, so the result does not
 * depend on how many splits a CTA computes. With many sequences a CTA computes all splits of a head
 * and the result. With few sequences it computes one split, and the last CTA of a sequence and head
 * to finish combines all of them. decode_short.cu handles many short sequences with one warp each.
 *
 * A CTA loads its first keys before its predecessor has ended. Only the newest key may still be
 * pending then: earlier keys and the batch metadata were written before the predecessor began
 * (common.cuh: a kernel launches its dependents after its own wait).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/decode_dispatch.cuh"
#include "kernels/cuda/attention/cache/decode_split_k.cuh"
#include "kernels/cuda/attention/cache/decode_iterate.cuh"

/* ---- The kernel ----------------------------------------------------------------------------- */

/* From sm_100 on the same code needs a few more registers: one CTA per SM less. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 1000
enum { FEWER_CTAS = 1 };
#else
enum { FEWER_CTAS = 0 };
#endif

/*
 * One less with beam search, where lanes look up their keys and the registers also hold int8 values
 * and as many sums.
 */
template <bool has_beams, ft_dtype kv_dtype, int width>
static constexpr int min_ctas_of = decode_traits<kv_dtype, width>::min_ctas - FEWER_CTAS -
                                   (has_beams && decode_traits<kv_dtype, width>::row == 128 ? 1
                                                                                            : 0);

/*
 * Grid: CTAs over the splits, KV heads times groups of HEADS query heads, sequences (or groups of
 * sequences that read the same keys). Each sequence has one row, with the same index.
 */
template <bool has_beams, ft_dtype kv_dtype, int width, bool bf16>
static __global__ void __launch_bounds__(THREADS, min_ctas_of<has_beams, kv_dtype, width>)
    decode_kernel(const __grid_constant__ ft_attend_kv_params a)
{
    extern __shared__ uint4 shared[];
    typedef shared_storage<WARPS, kv_dtype, width> shared_storage;
    shared_storage *r = (shared_storage *) shared;
    head_columns of = head_columns_of(a, blockIdx.y, blockIdx.z);
    int warp = (int) threadIdx.x / 32, heads = of.count;
    ft_query_tile query_tile = ft_query_tile_at(a, blockIdx.z * (unsigned) a.sequences_per_kv);
    split_range s = split_range_of(
        a, query_tile.position, decode_traits<kv_dtype, width>::min_split_keys, (int) blockIdx.x);
    if (query_tile.rows == 0 || s.begin >= s.end) {
        ft_pdl_wait(); /* otherwise the dependent kernel could begin before the
                                      predecessor has ended */
        return;
    }
    uint32_t q[width / 16][2];
    key_iterator w;
    prologue<WARPS, has_beams>(&w, &r->warp[warp], a, query_tile, s, of.kv_head);
    load_queries<kv_dtype, width>(q, a, of);

    bool owns_all_splits = s.end - s.begin == s.count;
    int end = split_begin(s, s.begin);
    for (int index = s.begin; index < s.end; index++) {
        partial_acc<width> acc = { { -INFINITY, -INFINITY } };
        end += s.size;
        mainloop<WARPS, has_beams, bf16>(&acc, &w, &r->warp[warp], a, query_tile, s, of.kv_head, q,
                                         end);
        store_warp_partial(r, warp, acc, heads);
        __syncthreads();
        finish_split(*r, a, owns_all_splits ? smem_partials(r, a, heads) : global_partials(a, of),
                     heads, index);
        __syncthreads(); /* all warps have read what the next split overwrites */
    }
    split_weights *v = (split_weights *) r->warp; /* keys and values have been read */
    float *reduction = (float *) (v + 1);
    if (owns_all_splits)
        reduce_splits<true, WARPS>(v, reduction, a, smem_partials(r, a, heads), of, s.count);
    else if (is_last_cta(&r->last, a, s))
        reduce_splits<false, WARPS>(v, reduction, a, global_partials(a, of), of, s.count);
}

/* ---- Launch --------------------------------------------------------------------------------- */

size_t ft_cuda_attend_kv_decode_scratch(size_t sequences, size_t context, int heads, int head_size)
{
    size_t splits = max_splits(context, MIN_SPLIT_KEYS) + MAX_SPLITS_PER_CTA - 1;
    return sequences * splits * (size_t) heads * (size_t) (head_size + STATS) * sizeof(float);
}

size_t ft_cuda_attend_kv_decode_counters(size_t sequences, int heads, int kv_heads)
{
    return sequences * head_groups_of(kv_heads, heads / kv_heads);
}

/* Splits per CTA: as many as still leave enough CTAs to fill all multiprocessors several times. */
static int splits_per_cta(const ft_cuda_device_props *props, size_t ctas)
{
    int splits = MAX_SPLITS_PER_CTA;
    while (splits > 1 && ctas / (size_t) splits < CTAS_PER_SM * (size_t) props->sm_count)
        splits /= 2;
    return splits;
}

template <bool has_beams, ft_dtype kv_dtype, int width, bool bf16> struct decode_launcher {
    static int launch(const ft_cuda_device_props *props, void *stream,
                      const ft_attend_kv_params *params)
    {
        ft_attend_kv_params a = *params;
        launch_extent e = launch_extent_of(params, decode_traits<kv_dtype, width>::min_split_keys);
        a.splits_per_cta = splits_per_cta(props, e.splits * e.groups * e.rows);
        size_t bytes = smem_bytes<WARPS, kv_dtype, width>(e.heads, a.head_size, a.splits_per_cta);
        dim3 grid(ft_ceil_div(e.splits, (unsigned) a.splits_per_cta), (unsigned) e.groups,
                  (unsigned) e.rows);
        int status = set_max_smem(props, decode_kernel<has_beams, kv_dtype, width, bf16>, bytes);
        if (status != (int) cudaSuccess)
            return status;
        return ft_launch(decode_kernel<has_beams, kv_dtype, width, bf16>, grid, dim3(THREADS),
                         bytes, stream, props->has_pdl, 1, a);
    }
};

int ft_cuda_attend_kv_decode(const ft_cuda_device_props *props, void *stream,
                             const ft_attend_kv_params *a)
{
    return decode_dispatch<decode_launcher>::launch(props, stream, a);
}
