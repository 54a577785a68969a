/*
 * attention_f16.cu - encoder attention in f16 and bf16: f16_warp.cuh over contiguous keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/f16_warp.cuh"

/* ---- The kernel ---------------------------------------------------------------------------- */

/* Keys per tile: the most that let a head of 256 elements fit the 64 KiB of Turing. */
template <int width> static constexpr int tile_keys = 4096 / width;

/* The queries, and two stages of keys and values. */
template <int width> static constexpr size_t shared_bytes()
{
    return (size_t) (2 * width) * (FT_CUDA_QUERY_TILE + 4 * tile_keys<width>);
}

/* The next tile of keys and values to copy. */
typedef struct kv_loader {
    ft_thread_rows keys;
    ptrdiff_t to_values;
} kv_loader;

/* Starts the copy of the next tile of keys and values, if there is one. */
template <int width> static __device__ __forceinline__ void load_next(uint8_t *stage, kv_loader *f)
{
    constexpr int keys = tile_keys<width>;
    if (f->keys.count > 0) {
        ft_thread_rows values = f->keys;
        values.data += f->to_values;
        ft_copy_rows<2 * width, keys, threads<width>>(stage, f->keys);
        ft_copy_rows<2 * width, keys, threads<width>>(stage + keys * 2 * width, values);
        f->keys.data += (size_t) keys * f->keys.stride;
        f->keys.count -= keys;
    }
    ft_cp_async_commit();
}

/* Prologue: the queries and the first tile. */
template <int width>
static __device__ __forceinline__ void prologue(kv_loader *f, uint8_t *queries, uint8_t *stage,
                                                const ft_cuda_attention_args &a,
                                                const ft_attention_tile &query_tile, int unit)
{
    uint32_t stride = 2 * (uint32_t) (a.heads * a.head_size);
    const uint8_t *data = (const uint8_t *) a.q + query_tile.first * stride + 2 * query_tile.column;
    ft_thread_rows rows =
        ft_thread_rows_of<2 * width, threads<width>>(data, 0, 2 * a.head_size, stride, unit);
    f->keys = rows;
    f->keys.data += (size_t) query_tile.query * stride;
    f->keys.count = query_tile.queries;
    ft_copy_rows<2 * width, FT_CUDA_QUERY_TILE, threads<width>>(queries, f->keys);
    f->keys.data = rows.data + ((const uint8_t *) a.k - (const uint8_t *) a.q);
    f->keys.count = query_tile.length;
    f->to_values = (const uint8_t *) a.v - (const uint8_t *) a.k;
    load_next<width>(stage, f);
}

template <int width, bool bf16>
static __global__ void __launch_bounds__(threads<width>)
    attention_kernel(const __grid_constant__ ft_cuda_attention_args a, float scale, int unit)
{
    extern __shared__ uint4 shared[];
    constexpr int keys = tile_keys<width>, stage_bytes = 2 * keys * 2 * width;
    uint8_t *queries = (uint8_t *) shared, *stages = queries + FT_CUDA_QUERY_TILE * 2 * width;
    ft_attention_tile query_tile;
    ft_pdl_wait();
    if (!ft_attention_tile_of(&query_tile, a))
        return;
    kv_loader f;
    prologue<width>(&f, queries, stages, a, query_tile, unit);
    ft_pdl_launch_dependents();

    int row = (int) threadIdx.x / 32 * 16 * m_tiles<width>;
    float s[m_tiles<width>][keys / 8][4], acc[m_tiles<width>][width / 8][4] = {};
    softmax_stats rows[m_tiles<width>];
#pragma unroll
    for (int m = 0; m < m_tiles<width>; m++)
        rows[m] = softmax_stats{ { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
    for (int first = 0, iteration = 0; first < query_tile.length; first += keys, iteration++) {
        const uint8_t *stage = stages + iteration % 2 * stage_bytes;
        load_next<width>(stages + (iteration + 1) % 2 * stage_bytes, &f);
        ft_cp_async_wait<1>();
        __syncthreads();
        if (row < query_tile.queries) {
            compute_qk<width, keys, bf16>(s, queries, row, stage);
#pragma unroll
            for (int m = 0; m < m_tiles<width>; m++) {
                float rescale[2];
                if (first + keys > query_tile.length)
                    mask_tail<keys>(s[m], query_tile.length - first);
                online_softmax<keys, false>(s[m], &rows[m], rescale, scale);
                rescale_acc<width>(acc[m], rescale);
            }
            accumulate_pv<width, keys, bf16>(acc, s, stage + keys * 2 * width);
        }
        __syncthreads(); /* all warps have read the stage that is filled next */
    }
    size_t cols = (size_t) a.heads * (size_t) a.head_size;
    output_rows to = { (uint16_t *) a.y + (query_tile.first + query_tile.query) * cols +
                           query_tile.column,
                       cols, query_tile.queries, a.head_size };
    if (row < query_tile.queries)
#pragma unroll
        for (int m = 0; m < m_tiles<width>; m++)
            store<width, bf16>(to, row + 16 * m, &rows[m], acc[m]);
}

/* ---- Launch -------------------------------------------------------------------------------- */

template <int width, bool bf16>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_attention_args *a)
{
    const float log2_e = 1.44269504f;
    int unit = ft_rows_alignment(2 * (size_t) a->head_size, a->q, a->k, a->v);
    cudaError_t status = cudaFuncSetAttribute(attention_kernel<width, bf16>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              (int) shared_bytes<width>());
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(attention_kernel<width, bf16>, ft_attention_grid(a), dim3(threads<width>),
                     shared_bytes<width>(), stream, props->has_pdl, 1, *a, a->score_scale * log2_e,
                     unit);
}

template <bool bf16>
static int launch_head_dim(const ft_cuda_device_props *props, void *stream,
                           const ft_cuda_attention_args *a)
{
    return a->head_size <= 64    ? launch<64, bf16>(props, stream, a)
           : a->head_size <= 128 ? launch<128, bf16>(props, stream, a)
                                 : launch<256, bf16>(props, stream, a);
}

int ft_cuda_attention_f16(const ft_cuda_device_props *props, void *stream,
                          const ft_cuda_attention_args *a)
{
    if (a->dtype == FT_F16)
        return launch_head_dim<false>(props, stream, a);
    if (props->capability < 80)
        return (int) cudaErrorNotSupported; /* Turing has no bf16 */
    return launch_head_dim<true>(props, stream, a);
}
