/*
 * decode_dispatch.cuh - inside decode.cu and decode_short.cu: launch dimensions, and dispatch of
 * the kernel template by dtypes and head size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_DISPATCH_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_DISPATCH_CUH

#include "kernels/cuda/attention/cache/decode_load.cuh"

static size_t parts_within(size_t context, size_t smallest)
{
    size_t parts = (context + smallest - 1) / smallest;
    return parts < MOST_PARTS ? parts : MOST_PARTS;
}

static size_t groups_of(int kv_heads, int columns)
{
    return (size_t) kv_heads * (size_t) ((columns + HEADS - 1) / HEADS);
}

/* Groups of heads; rows, or groups of rows that read the same keys; splits of the longest row. */
typedef struct extent {
    size_t groups, rows, parts;
    int heads; /* heads per group */
} extent;

static extent extent_of(const ft_attend_job *a, size_t smallest)
{
    int columns = a->group * a->together;
    extent e = { groups_of(a->kv_heads, columns),
                 (a->sequences + (size_t) a->together - 1) / (size_t) a->together,
                 parts_within(a->context, smallest), columns < HEADS ? columns : HEADS };
    if (a->window > 0) { /* the window may begin and end inside a split */
        size_t touched = ((size_t) a->window + smallest - 2) / smallest + 1;
        e.parts = touched < e.parts ? touched : e.parts;
    }
    return e;
}

/* Raises the kernel's limit of dynamic shared memory. */
template <typename... Parameters>
static int allow_shared(const ft_cuda_chip *chip, void (*kernel)(Parameters...), size_t bytes)
{
    if (bytes > chip->shared)
        return (int) cudaErrorNotSupported;
    return (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int) chip->shared);
}

/* ---- Dispatch ------------------------------------------------------------------------------- */

/* launcher<beams, kv_dtype, width, bf16>::launch() for these parameters. */
template <template <bool, ft_dtype, int, bool> class launcher> struct forms {
    template <bool lanes, ft_dtype stored, bool bf16>
    static int by_width(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
    {
        return a->head_size <= 64    ? launcher<lanes, stored, 64, bf16>::launch(chip, stream, a)
               : a->head_size <= 128 ? launcher<lanes, stored, 128, bf16>::launch(chip, stream, a)
                                     : launcher<lanes, stored, 256, bf16>::launch(chip, stream, a);
    }
    template <ft_dtype stored, bool bf16>
    static int by_lanes(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
    {
        return a->origin != NULL ? by_width<true, stored, bf16>(chip, stream, a)
                                 : by_width<false, stored, bf16>(chip, stream, a);
    }
    static int launch(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
    {
        bool bf16 = a->q_dtype == FT_BF16;
        size_t bytes = (size_t) a->head_size * (a->cache_dtype == FT_I8 ? 1 : 2);
        if ((a->q_dtype != FT_F16 && !bf16) || bytes % 16 != 0 || (bf16 && chip->capability < 80) ||
            (a->cache_dtype != FT_I8 && a->cache_dtype != a->q_dtype) ||
            a->cached_rows > UINT32_MAX)
            return (int) cudaErrorNotSupported;
        if (a->cache_dtype == FT_I8)
            return bf16 ? by_lanes<FT_I8, true>(chip, stream, a)
                        : by_lanes<FT_I8, false>(chip, stream, a);
        return bf16 ? by_lanes<FT_BF16, true>(chip, stream, a)
                    : by_lanes<FT_F16, false>(chip, stream, a);
    }
};

#endif
