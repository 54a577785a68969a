/*
 * attention_i8.cu - encoder attention on int8 values, with the bits of
 * kernels/cpu/attention/attention_i8.c.
 *
 * There are two passes over the keys. The first finds the maximum score of each row. The second
 * recomputes the scores, quantizes the softmax weights and accumulates the context. Recomputing
 * takes fewer instructions than keeping the scores and subtracting the maximum, because an MMA can
 * start from an initial accumulator. For heads of 64 elements, sm_90 code has 10.6 instructions
 * per score: 1.6 in the first pass and 9 in the second.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/encoder/attention_i8.cuh"
#include "kernels/cuda/attention/encoder/attention_i8_pipeline.cuh"

/* ---- The passes ---------------------------------------------------------------------------- */

/* A warp's `m_tiles` tiles of 16 queries. A warp without queries only helps to copy. */
template <int width, int m_tiles> struct warp_state {
    kv_loader from;
    bool has_queries;
    int length;
    uint32_t q[m_tiles][width / 32][4];
};

/* First pass: the maximum score of each row. */
template <int width, int m_tiles>
static __device__ __forceinline__ void max_pass(warp_state<width, m_tiles> *w,
                                                int32_t row_max[m_tiles][2])
{
    const int32_t zero[m_tiles][2] = {};
    for (int key = 0; key < w->length; key += 2 * TILE) {
        const uint8_t *stage = wait_stage<width>(&w->from);
        int keys = w->has_queries ? min(w->length - key, 2 * TILE) : 0;
        for (int row = 0; row < keys; row += CHUNK) {
            scores c[m_tiles];
            compute_qk<width, m_tiles>(c, zero, w->q, stage + row / TILE * tile_bytes<width>,
                                       row % TILE);
#pragma unroll
            for (int b = 0; b < m_tiles; b++) {
                if (keys - row < CHUNK)
                    mask_tail(&c[b], keys - row, INT32_MIN);
                update_max(row_max[b], &c[b]);
            }
        }
    }
#pragma unroll
    for (int b = 0; b < m_tiles; b++)
        reduce_max(row_max[b]);
}

/* Second pass: quantized softmax weights, and the context. */
template <int width, int m_tiles>
static __device__ __forceinline__ void context_pass(warp_state<width, m_tiles> *w,
                                                    context_acc<width> to[m_tiles],
                                                    const int32_t row_max[m_tiles][2], float step)
{
    int32_t bias[m_tiles][2];
#pragma unroll
    for (int i = 0; i < 2 * m_tiles; i++)
        bias[i / 2][i % 2] = (int32_t) (MAX_BIAS - (uint32_t) row_max[i / 2][i % 2]);
    for (int key = 0; key < w->length; key += TILE) {
        const uint8_t *stage = wait_stage<width>(&w->from);
        int keys = w->has_queries ? min(w->length - key, TILE) : 0;
        for (int row = 0; row < keys; row += CHUNK) {
            scores c[m_tiles];
            uint32_t quantized[m_tiles][4];
            compute_qk<width, m_tiles>(c, bias, w->q, stage, row);
#pragma unroll
            for (int b = 0; b < m_tiles; b++) {
                if (keys - row < CHUNK)
                    mask_tail(&c[b], keys - row, __float_as_int(-INFINITY));
                quantize_weights(quantized[b], &c[b], step);
            }
            accumulate_pv<width, m_tiles>(to, quantized, stage + tile_bytes<width>, row);
        }
    }
}

/* ---- The kernel ---------------------------------------------------------------------------- */

static constexpr int min_ctas(int width, int m_tiles)
{
    return width > 128 ? 2 : width > 64 || m_tiles == 2 ? 3 : 4;
}

/*
 * CTAs of 64 * m_tiles queries. With 128 queries every other entry of the query tile list is
 * skipped.
 */
template <int width, int m_tiles>
static __global__ void __launch_bounds__(THREADS, min_ctas(width, m_tiles))
    attention_kernel(const __grid_constant__ ft_cuda_attention_args a, int unit, float step)
{
    extern __shared__ uint4 shared[];
    enum { QUERIES = 16 * WARPS * m_tiles };
    ft_attention_tile query_tile;
    warp_state<width, m_tiles> w;
    int32_t row_max[m_tiles][2];
    int first = (int) threadIdx.x / 32 * 16 * m_tiles;
    ft_pdl_wait();
    if (!ft_attention_tile_of(&query_tile, a, QUERIES))
        return;
    w.has_queries = first < query_tile.queries;
    w.length = query_tile.length;
    prologue<width>(&w.from, a, query_tile, (uint8_t *) shared, unit);
    ft_pdl_launch_dependents();

    ft_cp_async_wait<stages<width> - 2>();
    __syncthreads();
    const uint8_t *queries = (const uint8_t *) shared + (stages<width> - 1) * stage_bytes<width> +
                             first / TILE * tile_bytes<width>;
#pragma unroll
    for (int b = 0; b < m_tiles; b++) {
        load_queries<width>(w.q[b], queries, first % TILE + 16 * b);
        row_max[b][0] = row_max[b][1] = INT32_MIN;
    }
    context_acc<width> to[m_tiles] = {};
    max_pass<width, m_tiles>(&w, row_max);
    context_pass<width, m_tiles>(&w, to, row_max, step);
    __syncthreads();
    if (w.has_queries)
        store<width, m_tiles>(a, query_tile, first, to, (uint8_t *) shared);
}

/* ---- Launch -------------------------------------------------------------------------------- */

template <int width, int m_tiles>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_attention_args *a)
{
    size_t bytes = stages<width> * stage_bytes<width>;
    int unit = ft_rows_alignment((size_t) a->head_size, a->q, a->k, a->v);
    cudaError_t status = cudaFuncSetAttribute(
        attention_kernel<width, m_tiles>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(attention_kernel<width, m_tiles>, ft_attention_grid(a), dim3(THREADS), bytes,
                     stream, props->has_pdl, 1, *a, unit, ft_softmax_step(a->score_scale));
}

/*
 * Two tiles of queries per warp halve the shared memory loads, but leave too few warps for small
 * batches. The threshold of 5 CTAs per multiprocessor was measured on an H200, for 12 heads of 64
 * elements and sequences of 128 tokens. docs/experiments has the table.
 */
int ft_cuda_attention_i8(const ft_cuda_device_props *props, void *stream,
                         const ft_cuda_attention_args *a)
{
    bool is_large_batch = a->n_query_tiles * (size_t) a->heads >= 5 * (size_t) props->sm_count;
    int status = ft_cuda_attention_i8_wgmma(props, stream, a);
    if (status != (int) cudaErrorNotSupported)
        return status;
    if (a->head_size > 128)
        return launch<256, 1>(props, stream, a);
    if (a->head_size > 96)
        return launch<128, 1>(props, stream, a);
    if (a->head_size > 64)
        return launch<96, 1>(props, stream, a);
    if (a->head_size <= 32)
        return is_large_batch ? launch<32, 2>(props, stream, a) : launch<32, 1>(props, stream, a);
    return is_large_batch ? launch<64, 2>(props, stream, a) : launch<64, 1>(props, stream, a);
}
