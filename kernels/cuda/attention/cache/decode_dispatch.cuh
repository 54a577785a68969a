/*
 * decode_dispatch.cuh - inside decode.cu and decode_short.cu: launch dimensions, and dispatch of
 * the kernel template by dtypes and head size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_DISPATCH_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_DISPATCH_CUH

#include "kernels/cuda/attention/cache/decode_load.cuh"

static size_t max_splits(size_t context, size_t min_keys)
{
    size_t splits = (context + min_keys - 1) / min_keys;
    return splits < MAX_SPLITS ? splits : MAX_SPLITS;
}

static size_t head_groups_of(int kv_heads, int head_columns)
{
    return (size_t) kv_heads * (size_t) ((head_columns + MAX_HEADS - 1) / MAX_HEADS);
}

/* Groups of heads; rows, or groups of rows that read the same keys; splits of the longest row. */
typedef struct launch_extent {
    size_t groups, rows, splits;
    int heads; /* heads per group */
} launch_extent;

static launch_extent launch_extent_of(const ft_attend_kv_params *a, size_t min_keys)
{
    int head_columns = a->group * a->sequences_per_kv;
    launch_extent e = { head_groups_of(a->kv_heads, head_columns),
                        (a->sequences + (size_t) a->sequences_per_kv - 1) /
                            (size_t) a->sequences_per_kv,
                        max_splits(a->context, min_keys),
                        head_columns < MAX_HEADS ? head_columns : MAX_HEADS };
    if (a->window > 0) { /* the window may begin and end inside a split */
        size_t window_splits = ((size_t) a->window + min_keys - 2) / min_keys + 1;
        e.splits = window_splits < e.splits ? window_splits : e.splits;
    }
    return e;
}

/* Raises the kernel's limit of dynamic shared memory. */
template <typename... Parameters>
static int set_max_smem(const ft_cuda_device_props *props, void (*kernel)(Parameters...),
                        size_t bytes)
{
    if (bytes > props->smem_bytes)
        return (int) cudaErrorNotSupported;
    return (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int) props->smem_bytes);
}

/* ---- Dispatch ------------------------------------------------------------------------------- */

/* launcher<beams, kv_dtype, width, bf16>::launch() for these parameters. */
template <template <bool, ft_dtype, int, bool> class launcher> struct decode_dispatch {
    template <bool has_beams, ft_dtype kv_dtype, bool bf16>
    static int dispatch_head_dim(const ft_cuda_device_props *props, void *stream,
                                 const ft_attend_kv_params *a)
    {
        return a->head_size <= 64
                   ? launcher<has_beams, kv_dtype, 64, bf16>::launch(props, stream, a)
               : a->head_size <= 128
                   ? launcher<has_beams, kv_dtype, 128, bf16>::launch(props, stream, a)
                   : launcher<has_beams, kv_dtype, 256, bf16>::launch(props, stream, a);
    }
    template <ft_dtype kv_dtype, bool bf16>
    static int dispatch_beams(const ft_cuda_device_props *props, void *stream,
                              const ft_attend_kv_params *a)
    {
        return a->cache_indirection != NULL
                   ? dispatch_head_dim<true, kv_dtype, bf16>(props, stream, a)
                   : dispatch_head_dim<false, kv_dtype, bf16>(props, stream, a);
    }
    static int launch(const ft_cuda_device_props *props, void *stream, const ft_attend_kv_params *a)
    {
        bool bf16 = a->q_dtype == FT_BF16;
        size_t bytes = (size_t) a->head_size * (a->cache_dtype == FT_I8 ? 1 : 2);
        if ((a->q_dtype != FT_F16 && !bf16) || bytes % 16 != 0 ||
            (bf16 && props->capability < 80) ||
            (a->cache_dtype != FT_I8 && a->cache_dtype != a->q_dtype) ||
            a->cached_rows > UINT32_MAX)
            return (int) cudaErrorNotSupported;
        if (a->cache_dtype == FT_I8)
            return bf16 ? dispatch_beams<FT_I8, true>(props, stream, a)
                        : dispatch_beams<FT_I8, false>(props, stream, a);
        return bf16 ? dispatch_beams<FT_BF16, true>(props, stream, a)
                    : dispatch_beams<FT_F16, false>(props, stream, a);
    }
};

#endif
