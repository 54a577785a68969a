/*
 * prefill_wgmma.cu - prefill attention over a paged KV cache in f16 or bf16 by TMA and wgmma,
 * sm_90a: heads of up to 128 elements.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/attend_kv.cuh"
#include "kernels/cuda/attention/wgmma/kernel.cuh"
#include "kernels/cuda/attention/wgmma/work_list.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Work ----------------------------------------------------------------------------------- */

/*
 * Keys are in pages, each of which has BOX_ROWS rows of a head. Later query tiles of a prompt see
 * more keys, so they come first. A lane keeps the number of one of 32 consecutive pages.
 */
template <class SHAPE> struct paged_rows {
    const ft_attend_kv_params &a;
    work_list<SHAPE::queries, true> list;
    const int32_t *pages; /* page table of the sequence */
    int last_page;        /* that any query of the item sees */
    int group;            /* the first of the 32 pages */
    int page, kv_head;

    __device__ __forceinline__ explicit paged_rows(const ft_attend_kv_params &params)
        : a(params), list(params.blocks, params.n_query_tiles, params.heads)
    {
    }

    __device__ __forceinline__ attention_work next()
    {
        attention_work w = {};
        ft_cuda_query_tile tile = list.next(&w.head);
        if (tile.length == 0)
            return w;
        int past = a.n_past[tile.sequence];
        w.row = tile.first + tile.query;
        w.queries = min(tile.length - tile.query, SHAPE::queries);
        w.last_visible = a.non_causal ? past : past + tile.query;
        w.first_key = ft_first_visible_key(a, w.last_visible) / KEYS * KEYS;
        w.end_key = w.last_visible + (a.non_causal ? 1 : w.queries);
        kv_head = w.head / a.group;
        pages = a.pages + (size_t) tile.sequence * a.max_pages;
        last_page = (w.end_key - 1) / FT_PAGE_TOKENS;
        load_group(w.first_key / FT_PAGE_TOKENS);
        return w;
    }

    __device__ __forceinline__ void load_group(int first)
    {
        group = first;
        page = pages[min(first + (int) threadIdx.x % 32, last_page)];
    }

    __device__ __forceinline__ int key_row(int key)
    {
        int index = key / FT_PAGE_TOKENS;
        if (index >= group + 32)
            load_group(index);
        return (__shfl_sync(~0u, page, index - group) * a.kv_heads + kv_head) * FT_PAGE_TOKENS;
    }
};
static_assert((int) FT_PAGE_TOKENS == (int) BOX_ROWS, "a TMA box is a page");

/* ---- Scores --------------------------------------------------------------------------------- */

/* A query sees the keys up to its own, or the last ones of them. */
typedef struct preceding_keys {
    static constexpr bool may_be_empty = true;
    const ft_attend_kv_params &a;
    float scale;

    __device__ __forceinline__ void prepare(float (&s)[KEYS / 2], const attention_work &w, int row,
                                            int base) const
    {
        ft_mask_scores<KEYS>((float(*)[4]) s, a, w.last_visible + (a.non_causal ? 0 : row), base);
    }
} preceding_keys;

#endif

/* ---- The kernel ----------------------------------------------------------------------------- */

template <class SHAPE, bool bf16>
static __global__ void __launch_bounds__(SHAPE::threads, 1)
    prefill_kernel(const __grid_constant__ attention_maps maps,
                   const __grid_constant__ ft_attend_kv_params a)
{
#ifdef FT_HAS_WGMMA
    compute_attention<SHAPE, bf16, paged_rows<SHAPE>>(maps, a, preceding_keys{ a, a.score_scale });
#endif
}

/* ---- Launch --------------------------------------------------------------------------------- */

/* The maps of the queries, and of the cache as rows of one head each. */
static int make_maps(attention_maps *maps, const ft_attend_kv_params *a)
{
    int status = attention_map(&maps->q, a->q, a->tokens, a->heads, a->head_size);
    if (status == 0)
        status = attention_map(&maps->k, a->keys, a->cached_rows, 1, a->head_size);
    if (status == 0)
        status = attention_map(&maps->v, a->values, a->cached_rows, 1, a->head_size);
    return status;
}

template <class SHAPE, bool bf16>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_attend_kv_params *a)
{
    attention_maps maps;
    int status = make_maps(&maps, a);
    if (status != 0)
        return status;
    return launch_attention<SHAPE>(prefill_kernel<SHAPE, bf16>, props, stream,
                                   a->n_query_tiles * (size_t) a->heads, maps, *a);
}

template <bool bf16>
static int launch_width(const ft_cuda_device_props *props, void *stream,
                        const ft_attend_kv_params *a)
{
    return a->head_size <= 64 ? launch<attention_shape<64, 3, 4, 4>, bf16>(props, stream, a)
                              : launch<attention_shape<128, 2, 2, 2>, bf16>(props, stream, a);
}

int ft_cuda_attend_kv_prefill_wgmma(const ft_cuda_device_props *props, void *stream,
                                    const ft_attend_kv_params *a)
{
    bool bf16 = a->q_dtype == FT_BF16;
    if (!props->has_wgmma || a->head_size > 128 || (a->q_dtype != FT_F16 && !bf16) ||
        a->y_dtype != a->q_dtype || a->cache_dtype != a->q_dtype || a->cache_indirection != NULL)
        return (int) cudaErrorNotSupported;
    return bf16 ? launch_width<true>(props, stream, a) : launch_width<false>(props, stream, a);
}
