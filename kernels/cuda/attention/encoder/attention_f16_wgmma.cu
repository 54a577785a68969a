/*
 * attention_f16_wgmma.cu - encoder attention in f16 and bf16 by TMA and wgmma, sm_90a: heads of up
 * to 128 elements, in multiples of 8.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/attention.cuh"
#include "kernels/cuda/attention/wgmma/kernel.cuh"
#include "kernels/cuda/attention/wgmma/work_list.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Work ----------------------------------------------------------------------------------- */

/* Keys are rows of the matrix: those of a sequence follow one another. */
template <class SHAPE> struct packed_rows {
    work_list<SHAPE::queries, false> list;
    int first; /* row of the first key */

    __device__ __forceinline__ explicit packed_rows(const ft_cuda_attention_args &a)
        : list(a.blocks, a.n_query_tiles, a.heads)
    {
    }

    __device__ __forceinline__ attention_work next()
    {
        attention_work w = {};
        ft_cuda_query_tile tile = list.next(&w.head);
        first = tile.first;
        w.row = tile.first + tile.query;
        w.queries = min(tile.length - tile.query, SHAPE::queries);
        w.key_head = w.head;
        w.end_key = tile.length;
        return w;
    }

    __device__ __forceinline__ int key_row(int key)
    {
        return first + key;
    }
};

/* ---- Scores --------------------------------------------------------------------------------- */

/* Every query sees all keys of its sequence. */
typedef struct all_keys {
    static constexpr bool may_be_empty = false;
    float scale;

    __device__ __forceinline__ void prepare(float (&s)[KEYS / 2], const attention_work &w, int,
                                            int base) const
    {
        int keys = w.end_key - base, t = threadIdx.x % 4;
        if (keys < KEYS)
#pragma unroll
            for (int i = 0; i < KEYS / 2; i++)
                if (i / 4 * 8 + 2 * t + i % 2 >= keys)
                    s[i] = -INFINITY;
    }
} all_keys;

#endif

/* ---- The kernel ----------------------------------------------------------------------------- */

template <class SHAPE, bool bf16>
static __global__ void __launch_bounds__(SHAPE::threads, 1)
    attention_kernel(const __grid_constant__ attention_maps maps,
                     const __grid_constant__ ft_cuda_attention_args a, float scale)
{
#ifdef FT_HAS_WGMMA
    compute_attention<SHAPE, bf16, packed_rows<SHAPE>>(maps, a, all_keys{ scale });
#endif
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <class SHAPE, bool bf16>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_attention_args *a)
{
    const float log2_e = 1.44269504f;
    attention_maps maps;
    int status = attention_map(&maps.q, a->q, a->tokens, a->heads, a->head_size);
    if (status == 0)
        status = attention_map(&maps.k, a->k, a->tokens, a->heads, a->head_size);
    if (status == 0)
        status = attention_map(&maps.v, a->v, a->tokens, a->heads, a->head_size);
    if (status != 0)
        return status;
    return launch_attention<SHAPE>(attention_kernel<SHAPE, bf16>, props, stream,
                                   a->n_query_tiles * (size_t) a->heads, maps, *a,
                                   a->score_scale * log2_e);
}

/*
 * Time of a batch of sequences of equal length, in the time that three warpgroups take for one tile
 * of 64 queries each. Two warpgroups overlap less than three.
 */
static double estimated_time(const ft_cuda_device_props *props, const ft_cuda_attention_args *a,
                             size_t warpgroups)
{
    size_t sequences = a->sequences > 0 ? a->sequences : 1;
    size_t length = ft_ceil_div(a->tokens, sequences);
    size_t items = sequences * (size_t) a->heads * ft_ceil_div(length, 64 * warpgroups);
    return (double) ft_ceil_div(items, (size_t) props->sm_count) *
           (warpgroups == 2 ? 2.3 : (double) warpgroups);
}

/* A small batch takes one warpgroup per CTA, to occupy more multiprocessors. */
template <bool bf16>
static int launch_shape(const ft_cuda_device_props *props, void *stream,
                        const ft_cuda_attention_args *a)
{
    if (a->head_size > 64)
        return launch<attention_shape<128, 2, 2, 2>, bf16>(props, stream, a);
    if (a->n_query_tiles * (size_t) a->heads <= (size_t) props->sm_count)
        return launch<attention_shape<64, 1, 4, 2>, bf16>(props, stream, a);
    return estimated_time(props, a, 2) < estimated_time(props, a, 3)
               ? launch<attention_shape<64, 2, 5, 4>, bf16>(props, stream, a)
               : launch<attention_shape<64, 3, 4, 4>, bf16>(props, stream, a);
}

int ft_cuda_attention_f16_wgmma(const ft_cuda_device_props *props, void *stream,
                                const ft_cuda_attention_args *a)
{
    if (!props->has_wgmma || a->head_size > 128 || a->head_size % 8 != 0 || a->tokens == 0 ||
        !ft_is_aligned(a->q, 16) || !ft_is_aligned(a->k, 16) || !ft_is_aligned(a->v, 16) ||
        !ft_is_aligned(a->y, 16))
        return (int) cudaErrorNotSupported;
    return a->dtype == FT_F16 ? launch_shape<false>(props, stream, a)
                              : launch_shape<true>(props, stream, a);
}
