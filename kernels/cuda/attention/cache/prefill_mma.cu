/*
 * prefill_mma.cu - prefill attention over the paged KV cache in f16 and bf16, with the warp MMAs of
 * f16_warp.cuh.
 *
 * int8 values are converted on their way to shared memory, each as the rounded float value * scale.
 * An int8 cache therefore gives the same result as a cache of those f16 values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/attend_kv.cuh"
#include "kernels/cuda/attention/f16_warp.cuh"
#include "kernels/cuda/rows.cuh"

/*
 * Keys per tile: the most that let a head of 256 elements fit the 64 KiB of Turing. They divide a
 * page.
 */
template <int width> static constexpr int tile_keys = 4096 / width;

/* The queries, and two stages of keys and values. */
template <int width> static constexpr size_t shared_bytes()
{
    return (size_t) (2 * width) * (FT_CUDA_QUERY_TILE + 4 * tile_keys<width>);
}

/* A query tile of one head. */
typedef struct cta_work {
    ft_query_tile query_tile;
    int head, kv_head;
    int last; /* the last key that is visible to any row */
} cta_work;

/* ---- Tiles ---------------------------------------------------------------------------------- */

/* Starts the copy of f16 rows of one head of the cache, from `cache_row` on. */
template <int width>
static __device__ __forceinline__ void copy_f16_rows(uint8_t *to, const void *from,
                                                     const ft_attend_kv_params &a, size_t cache_row,
                                                     int count)
{
    int bytes = 2 * a.head_size;
    ft_thread_rows rows = ft_thread_rows_of<2 * width, threads<width>>(
        (const uint8_t *) from + cache_row * (size_t) bytes, count, bytes, (uint32_t) bytes, 16);
    ft_copy_rows<2 * width, tile_keys<width>, threads<width>>(to, rows);
}

/* The same for int8 values, eight at a time with four loads in flight. */
template <int width, bool bf16>
static __device__ __forceinline__ void
copy_int8_rows(uint8_t *to, const void *from, const float *scales, const ft_attend_kv_params &a,
               size_t cache_row, int count)
{
    constexpr int keys = tile_keys<width>, chunks = width / 8, loads = 4;
#pragma unroll 1
    for (int first = (int) threadIdx.x; first < keys * chunks; first += loads * threads<width>) {
        uint2 word[loads];
        float scale[loads];
#pragma unroll
        for (int i = 0; i < loads; i++) {
            int at = first + i * threads<width>, row = at / chunks, chunk = at % chunks;
            bool inside = row < count && 8 * chunk < a.head_size;
            size_t key = cache_row + (size_t) row;
            const uint8_t *data = (const uint8_t *) from + key * (size_t) a.head_size + 8 * chunk;
            word[i] = inside ? *(const uint2 *) data : make_uint2(0, 0);
            scale[i] = inside ? scales[key] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < loads; i++) {
            int at = first + i * threads<width>;
            uint4 f16x8;
            ft_dequantize_x8<bf16>((uint32_t *) &f16x8, word[i], scale[i]);
            *(uint4 *) (to + ft_panel_offset<2 * width, keys>(at / chunks, at % chunks)) = f16x8;
        }
    }
}

/* Starts the load of the tile whose first key is `base` into a stage, if a row sees it. */
template <int width, bool bf16, bool quantized>
static __device__ __forceinline__ void load_tile(uint8_t *stage, const ft_attend_kv_params &a,
                                                 const cta_work &w, int base)
{
    if (base <= w.last) {
        uint8_t *values = stage + tile_keys<width> * 2 * width;
        int count = min(w.last + 1 - base, tile_keys<width>);
        size_t cache_row = ft_cache_token_row(w.query_tile.pages, (size_t) base, (size_t) w.kv_head,
                                              (size_t) a.kv_heads);
        if (quantized) {
            copy_int8_rows<width, bf16>(stage, a.keys, a.key_scales, a, cache_row, count);
            copy_int8_rows<width, bf16>(values, a.values, a.value_scales, a, cache_row, count);
        } else {
            copy_f16_rows<width>(stage, a.keys, a, cache_row, count);
            copy_f16_rows<width>(values, a.values, a, cache_row, count);
        }
    }
    ft_cp_async_commit();
}

template <int width>
static __device__ __forceinline__ void load_queries_async(uint8_t *to, const ft_attend_kv_params &a,
                                                          const cta_work &w)
{
    uint32_t stride = 2 * (uint32_t) (a.heads * a.head_size);
    const uint8_t *data =
        (const uint8_t *) a.q + w.query_tile.row * stride + 2 * w.head * a.head_size;
    ft_thread_rows rows = ft_thread_rows_of<2 * width, threads<width>>(data, w.query_tile.rows,
                                                                       2 * a.head_size, stride, 16);
    ft_copy_rows<2 * width, FT_CUDA_QUERY_TILE, threads<width>>(to, rows);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* Later query tiles of a prompt see more keys, so they come first. */
static __device__ __forceinline__ cta_work cta_work_of(const ft_attend_kv_params &a)
{
    cta_work w;
    size_t index = blockIdx.x / (unsigned) a.heads;
    w.query_tile = ft_query_tile_at(a, a.n_query_tiles - 1 - index);
    w.head = (int) (blockIdx.x % (unsigned) a.heads);
    w.kv_head = w.head / a.group;
    w.last = ft_last_visible_key(a, w.query_tile, w.query_tile.rows - 1);
    return w;
}

template <int width, bool bf16, bool quantized>
static __global__ void __launch_bounds__(threads<width>)
    prefill_mma_kernel(const __grid_constant__ ft_attend_kv_params a)
{
    extern __shared__ uint4 shared[];
    constexpr int keys = tile_keys<width>, stage_bytes = 2 * keys * 2 * width;
    uint8_t *queries = (uint8_t *) shared, *stages = queries + FT_CUDA_QUERY_TILE * 2 * width;
    __shared__ cta_work w; /* kept out of registers, because the accumulators leave few */
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (threadIdx.x == 0)
        w = cta_work_of(a);
    __syncthreads();
    if (w.query_tile.rows == 0)
        return;
    int begin = ft_first_visible_key(a, w.query_tile.position) / keys * keys;
    load_queries_async<width>(queries, a, w);
    load_tile<width, bf16, quantized>(stages, a, w, begin);

    int row = (int) threadIdx.x / 32 * 16 * m_tiles<width>;
    float s[m_tiles<width>][keys / 8][4], acc[m_tiles<width>][width / 8][4] = {};
    softmax_stats rows[m_tiles<width>];
#pragma unroll
    for (int m = 0; m < m_tiles<width>; m++)
        rows[m] = softmax_stats{ { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
    for (int base = begin, iteration = 0; base <= w.last; base += keys, iteration++) {
        const uint8_t *stage = stages + iteration % 2 * stage_bytes;
        load_tile<width, bf16, quantized>(stages + (iteration + 1) % 2 * stage_bytes, a, w,
                                          base + keys);
        ft_cp_async_wait<1>();
        __syncthreads();
        if (row < w.query_tile.rows) {
            compute_qk<width, keys, bf16>(s, queries, row, stage);
#pragma unroll
            for (int m = 0; m < m_tiles<width>; m++) {
                float rescale[2];
                ft_mask_scores<keys>(s[m], a, ft_last_visible_key(a, w.query_tile, row + 16 * m),
                                     base);
                online_softmax<keys, true>(s[m], &rows[m], rescale, a.score_scale);
                rescale_acc<width>(acc[m], rescale);
            }
            accumulate_pv<width, keys, bf16>(acc, s, stage + keys * 2 * width);
        }
        __syncthreads(); /* all warps have read the stage that is filled next */
    }
    size_t cols = (size_t) a.heads * (size_t) a.head_size;
    output_rows to = { (uint16_t *) a.y + w.query_tile.row * cols + (size_t) (w.head * a.head_size),
                       cols, w.query_tile.rows, a.head_size };
    if (row < w.query_tile.rows)
#pragma unroll
        for (int m = 0; m < m_tiles<width>; m++)
            store<width, bf16>(to, row + 16 * m, &rows[m], acc[m]);
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <int width, bool bf16, bool quantized>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_attend_kv_params *a)
{
    const size_t bytes = shared_bytes<width>();
    if (bytes + sizeof(cta_work) > props->smem_bytes)
        return (int) cudaErrorNotSupported;
    dim3 grid((unsigned) (a->n_query_tiles * (size_t) a->heads));
    cudaError_t status =
        cudaFuncSetAttribute(prefill_mma_kernel<width, bf16, quantized>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(prefill_mma_kernel<width, bf16, quantized>, grid, dim3(threads<width>), bytes,
                     stream, props->has_pdl, 1, *a);
}

template <bool bf16, bool quantized>
static int launch_width(const ft_cuda_device_props *props, void *stream,
                        const ft_attend_kv_params *a)
{
    return a->head_size <= 64    ? launch<64, bf16, quantized>(props, stream, a)
           : a->head_size <= 128 ? launch<128, bf16, quantized>(props, stream, a)
                                 : launch<256, bf16, quantized>(props, stream, a);
}

int ft_cuda_attend_kv_prefill_mma(const ft_cuda_device_props *props, void *stream,
                                  const ft_attend_kv_params *a)
{
    bool bf16 = a->q_dtype == FT_BF16, quantized = a->cache_dtype == FT_I8;
    if ((a->q_dtype != FT_F16 && !bf16) || a->y_dtype != a->q_dtype ||
        (bf16 && props->capability < 80) || (!quantized && a->cache_dtype != a->q_dtype) ||
        a->cache_indirection != NULL)
        return (int) cudaErrorNotSupported;
    if (bf16)
        return quantized ? launch_width<true, true>(props, stream, a)
                         : launch_width<true, false>(props, stream, a);
    return quantized ? launch_width<false, true>(props, stream, a)
                     : launch_width<false, false>(props, stream, a);
}
