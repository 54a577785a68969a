/*
 * prefill_dequantized.cu - prefill attention over a paged KV cache in int8, by way of an f16 or
 * bf16 copy of what the queries see.
 *
 * One kernel writes the visible pages, each value as the rounded float value * scale, to a cache in
 * scratch memory with a page table of its own, and prefill_wgmma.cu computes with that cache.
 * prefill_int8.cu gives the same bits without a copy, but it converts a tile of keys again for each
 * 128 queries of each head.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/attend_kv.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

enum {
    THREADS = 256,
    CHUNK = 8,      /* elements that a thread converts at once */
    ROWS = 4,       /* rows of them that it loads before it stores any */
    TILE_PAGES = 2, /* of a tile of keys in prefill_wgmma.cu */
    CTAS_PER_SM = 8,
    TABLE_ALIGN = 256
};

/* ---- Scratch memory ------------------------------------------------------------------------- */

/* The copy: keys, values and the page table. */
typedef struct float_cache {
    uint16_t *keys, *values;
    int32_t *table; /* [sequences, max_pages] */
} float_cache;

static size_t page_elements(int kv_heads, int head_size)
{
    return (size_t) FT_PAGE_TOKENS * (size_t) kv_heads * (size_t) head_size;
}

size_t ft_cuda_prefill_pages(const ft_limits *limits)
{
    size_t tokens = 2 * limits->tokens + limits->context, most = 1 << 16;
    return ft_pages_for_tokens(tokens < most ? tokens : most);
}

size_t ft_cuda_attend_kv_prefill_scratch(const ft_limits *limits, int kv_heads, int head_size)
{
    size_t table = limits->sequences * (limits->context / FT_PAGE_TOKENS) * sizeof(int32_t);
    size_t pages = 2 * ft_cuda_prefill_pages(limits) * page_elements(kv_heads, head_size);
    return pages * sizeof(uint16_t) + (table + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN;
}

/* As many pages as the scratch memory has room for beside the table. */
static size_t place(float_cache *out, const ft_attend_kv_params *a, void *scratch, size_t bytes)
{
    size_t table = a->sequences * a->max_pages * sizeof(int32_t);
    size_t before = (table + TABLE_ALIGN - 1) / TABLE_ALIGN * TABLE_ALIGN;
    size_t elements = page_elements(a->kv_heads, a->head_size);
    size_t pages = bytes > before ? (bytes - before) / (2 * elements * sizeof(uint16_t)) : 0;
    out->table = (int32_t *) scratch;
    out->keys = (uint16_t *) ((char *) scratch + before);
    out->values = out->keys + pages * elements;
    return pages;
}

/* ---- The copy ------------------------------------------------------------------------------- */

#ifdef FT_HAS_WGMMA

/* The number of pages of a sequence up to its last query; 0 for a sequence without queries. */
static __device__ __forceinline__ int pages_of(const ft_attend_kv_params &a, int sequence)
{
    int queries = a.start[sequence + 1] - a.start[sequence];
    return queries > 0 ? (a.n_past[sequence] + queries - 1) / FT_PAGE_TOKENS + 1 : 0;
}

/* The number of pages of all sequences before this one. */
static __device__ __forceinline__ int pages_before(const ft_attend_kv_params &a, int sequence)
{
    __shared__ int sum[THREADS / 32];
    int mine = 0, total = 0;
    for (int i = (int) threadIdx.x; i < sequence; i += THREADS)
        mine += pages_of(a, i);
    mine = __reduce_add_sync(~0u, mine);
    if (threadIdx.x % 32 == 0)
        sum[threadIdx.x / 32] = mine;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++)
        total += sum[i];
    return total;
}

/*
 * Dequantizes the rows of one head in a page. Each thread takes the same elements of several rows,
 * and loads them before it stores any.
 */
template <bool bf16>
static __device__ __forceinline__ void dequantize_head(uint16_t *to, const int8_t *from,
                                                       const float *scale, int head_size)
{
    int chunks = head_size / CHUNK, step = THREADS / chunks;
    int first = (int) threadIdx.x / chunks, column = (int) threadIdx.x % chunks * CHUNK;
    for (int base = first; first < step && base < FT_PAGE_TOKENS; base += ROWS * step) {
        uint2 quantized[ROWS];
        float factor[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            int row = min(base + i * step, FT_PAGE_TOKENS - 1);
            quantized[i] = *(const uint2 *) (from + row * head_size + column);
            factor[i] = scale[row];
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            int row = base + i * step;
            uint4 values;
            ft_dequantize_x8<bf16>((uint32_t *) &values, quantized[i], factor[i]);
            if (row < FT_PAGE_TOKENS)
                *(uint4 *) (to + row * head_size + column) = values;
        }
    }
}

#endif

/* blockIdx.x is a sequence, the heads of whose pages are divided among gridDim.y CTAs. */
template <bool bf16>
static __global__ void __launch_bounds__(THREADS)
    dequantize_kernel(const __grid_constant__ ft_attend_kv_params a, float_cache to)
{
#ifdef FT_HAS_WGMMA
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    int sequence = (int) blockIdx.x, before = pages_before(a, sequence);
    int end = pages_of(a, sequence) * 2 * a.kv_heads;
    int first = ft_first_visible_key(a, a.n_past[sequence]) / FT_PAGE_TOKENS;
    first -= first % TILE_PAGES;
    for (int i = first * 2 * a.kv_heads + (int) blockIdx.y; i < end; i += (int) gridDim.y) {
        int page = i / (2 * a.kv_heads), head = i / 2 % a.kv_heads;
        size_t entry = (size_t) sequence * a.max_pages + (size_t) page;
        size_t from = ft_cache_row((size_t) a.pages[entry], (size_t) head, (size_t) a.kv_heads, 0);
        size_t at = ft_cache_row((size_t) (before + page), (size_t) head, (size_t) a.kv_heads, 0);
        size_t width = (size_t) a.head_size;
        bool is_key = i % 2 == 0;
        dequantize_head<bf16>((is_key ? to.keys : to.values) + at * width,
                              (const int8_t *) (is_key ? a.keys : a.values) + from * width,
                              (is_key ? a.key_scales : a.value_scales) + from, a.head_size);
        if (i % (2 * a.kv_heads) == 0 && threadIdx.x == 0)
            to.table[entry] = before + page;
    }
#endif
}

/* ---- Launch --------------------------------------------------------------------------------- */

static int dequantize(const ft_cuda_device_props *props, void *stream, const ft_attend_kv_params *a,
                      float_cache to)
{
    size_t ctas = (size_t) (CTAS_PER_SM * props->sm_count), y = ctas / a->sequences;
    size_t most = 2 * (size_t) a->kv_heads * a->max_pages;
    y = y < 1 ? 1 : y < most ? y : most;
    dim3 grid((unsigned) a->sequences, (unsigned) y);
    return ft_launch(a->q_dtype == FT_BF16 ? dequantize_kernel<true> : dequantize_kernel<false>,
                     grid, dim3(THREADS), 0, stream, props->has_pdl, 1, *a, to);
}

int ft_cuda_attend_kv_prefill_dequantized(const ft_cuda_device_props *props, void *stream,
                                          const ft_attend_kv_params *a, void *scratch,
                                          size_t scratch_bytes)
{
    float_cache copy;
    if (!props->has_wgmma || a->head_size > 128 ||
        (a->q_dtype != FT_F16 && a->q_dtype != FT_BF16) || a->y_dtype != a->q_dtype ||
        a->cache_dtype != FT_I8 || a->cache_indirection != NULL || a->non_causal)
        return (int) cudaErrorNotSupported;
    size_t pages = place(&copy, a, scratch, scratch_bytes);
    int status = dequantize(props, stream, a, copy);
    ft_attend_kv_params over_copy = *a;
    over_copy.keys = copy.keys;
    over_copy.values = copy.values;
    over_copy.pages = copy.table;
    over_copy.cache_dtype = a->q_dtype;
    over_copy.cached_rows = pages * FT_PAGE_TOKENS * (size_t) a->kv_heads;
    return status != 0 ? status : ft_cuda_attend_kv_prefill_wgmma(props, stream, &over_copy);
}
