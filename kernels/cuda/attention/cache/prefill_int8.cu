/*
 * prefill_int8.cu - prefill attention over a paged KV cache in int8, sm_90a: heads of up to 128
 * elements, f16 and bf16.
 *
 * A producer warpgroup loads keys and values, 128 at a time, and converts them to f16 in a pipeline
 * in shared memory, each as the rounded float value * scale. Two consumer warpgroups process 64
 * queries each, with the arithmetic of prefill_wgmma.cu: so an int8 cache gives the same result as
 * a cache of those f16 values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/prefill_int8.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Consumer warpgroups -------------------------------------------------------------------- */

template <class STORAGE>
static __device__ __forceinline__ void consumer_release(STORAGE *r, int fill)
{
    __syncwarp();
    ft_pipeline_consumer_release(*r, fill % STAGES);
}

template <class STORAGE> static __device__ __forceinline__ void consumer_wait(STORAGE *r, int fill)
{
    ft_pipeline_consumer_wait(*r, ft_pipeline_state_after(fill, STAGES));
}

/* Issues s = q . k^T. */
template <int width, bool bf16>
static __device__ __forceinline__ void issue_qk(float (&s)[KEYS / 2], const uint8_t *query,
                                                const uint8_t *keys)
{
    ft_wgmma_fence();
#pragma unroll
    for (int i = 0; i < width / 16; i++) {
        int at = i / 4 * PANEL + i % 4 * 32;
        ft_wgmma_f16<KEYS, bf16>(s, ft_wgmma_descriptor(query + at), ft_wgmma_descriptor(keys + at),
                                 i > 0);
    }
    ft_wgmma_commit();
}

/* Issues sums += weights . v. */
template <int width, bool bf16>
static __device__ __forceinline__ void
issue_pv(float (&acc)[width / 2], const uint32_t (&weights)[KEYS / 16][4], const uint8_t *values)
{
    ft_wgmma_fence();
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++)
        ft_wgmma_f16_register_a_trans_b<width, bf16>(
            acc, weights[i], ft_wgmma_descriptor_trans(values + i * 16 * 128, PANEL));
    ft_wgmma_commit();
}

template <bool bf16>
static __device__ __forceinline__ void pack_weights(uint32_t (&to)[KEYS / 16][4],
                                                    const float (&s)[KEYS / 2])
{
#pragma unroll
    for (int i = 0; i < KEYS / 4; i++)
        to[i / 4][i % 4] = pack_f16x2<bf16>(s[2 * i], s[2 * i + 1]);
}

/* Masking and online softmax of a tile; `last_visible` is that of the warp's first row. */
static __device__ __forceinline__ row_rescale mask_and_softmax(float (&s)[KEYS / 2],
                                                               softmax_stats *rows,
                                                               const ft_attend_kv_params &a,
                                                               int last_visible, int base)
{
    ft_wgmma_fence_acc(s);
    ft_mask_scores<KEYS>((float(*)[4]) s, a, last_visible, base);
    row_rescale rescale = softmax_tile<true>(s, rows, a.score_scale);
    ft_wgmma_fence_acc(s);
    return rescale;
}

template <int width, bool bf16>
static __device__ __forceinline__ void
consume(shared_storage<width> *r, const ft_attend_kv_params &a, const cta_work &w, int consumer)
{
    int row = 64 * consumer + (int) threadIdx.x % WARPGROUP / 32 * 16;
    int last_visible = ft_last_visible_key(a, w.query_tile, row);
    int tiles = tile_count(w);
    const uint8_t *query = r->query + 64 * consumer * 128;
    float s[KEYS / 2], acc[width / 2] = {};
    uint32_t weights[KEYS / 16][4];
    softmax_stats rows = { { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
    ft_mbarrier_wait(&r->queries_full, 0);
    consumer_wait(r, 0);
    issue_qk<width, bf16>(s, query, r->stage[0]);
    ft_wgmma_wait<0>();
    consumer_release(r, 0);
    mask_and_softmax(s, &rows, a, last_visible, w.first);
    pack_weights<bf16>(weights, s);
    for (int i = 1; i < tiles; i++) {
        int keys = 2 * i, values = 2 * i - 1;
        consumer_wait(r, keys);
        issue_qk<width, bf16>(s, query, r->stage[keys % STAGES]);
        consumer_wait(r, values);
        issue_pv<width, bf16>(acc, weights, r->stage[values % STAGES]);
        ft_wgmma_wait<1>();
        consumer_release(r, keys);
        row_rescale rescale = mask_and_softmax(s, &rows, a, last_visible, w.first + i * KEYS);
        if (rescale.needed) { /* a branch, above which no wait can move */
            ft_wgmma_wait<0>();
            ft_wgmma_fence_acc(acc);
            rescale_rows(acc, rescale);
        }
        ft_wgmma_wait<0>();
        ft_wgmma_fence_acc(acc);
        consumer_release(r, values);
        pack_weights<bf16>(weights, s);
    }
    consumer_wait(r, 2 * tiles - 1);
    issue_pv<width, bf16>(acc, weights, r->stage[(2 * tiles - 1) % STAGES]);
    ft_wgmma_wait<0>();
    ft_wgmma_fence_acc(acc);
    size_t cols = (size_t) a.heads * (size_t) a.head_size;
    output_rows to = { (uint16_t *) a.y + w.query_tile.row * cols + (size_t) (w.head * a.head_size),
                       cols, w.query_tile.rows, a.head_size };
    store<width, bf16>(to, row, &rows, (const float(*)[4]) acc);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* Later query tiles of a prompt see more keys, so they come first. */
static __device__ __forceinline__ cta_work cta_work_of(const ft_attend_kv_params &a)
{
    cta_work w;
    size_t index = blockIdx.x / (unsigned) a.heads;
    w.query_tile = ft_query_tile_at(a, a.n_query_tiles - 1 - index, QUERIES);
    w.head = (int) (blockIdx.x % (unsigned) a.heads);
    w.kv_head = w.head / a.group;
    w.first = ft_first_visible_key(a, w.query_tile.position) / KEYS * KEYS;
    w.last = ft_last_visible_key(a, w.query_tile, w.query_tile.rows - 1);
    return w;
}

/* Consumer warpgroups that have queries. */
static __device__ __forceinline__ int consumer_count(const cta_work &w)
{
    return (w.query_tile.rows + 63) / 64;
}

template <int width>
static __device__ __forceinline__ void init_barriers(shared_storage<width> *r, int consumers)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++)
            ft_pipeline_init_stage(*r, i, WARPGROUP, (unsigned) (4 * consumers));
        ft_mbarrier_init(&r->queries_full, WARPGROUP);
        ft_mbarrier_fence_init();
    }
    __syncthreads();
}

#endif

template <int width, bool bf16>
static __global__ void __launch_bounds__(THREADS, 1)
    prefill_int8_kernel(const __grid_constant__ ft_attend_kv_params a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) uint8_t shared[];
    shared_storage<width> *r = (shared_storage<width> *) shared;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    cta_work w = cta_work_of(a);
    if (w.query_tile.rows == 0)
        return;
    int consumer = (int) threadIdx.x / WARPGROUP - 1;
    init_barriers(r, consumer_count(w));
    if (consumer >= 0) {
        increase_registers<CONSUMER_REGISTERS>();
        if (consumer < consumer_count(w))
            consume<width, bf16>(r, a, w, consumer);
    } else {
        decrease_registers<PRODUCER_REGISTERS>();
        produce<width, bf16>(r, a, w);
    }
#endif
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <int width, bool bf16>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_attend_kv_params *a)
{
    const size_t bytes = sizeof(shared_storage<width>);
    dim3 grid((unsigned) (a->n_query_tiles * (size_t) a->heads));
    cudaError_t status = cudaFuncSetAttribute(
        prefill_int8_kernel<width, bf16>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(prefill_int8_kernel<width, bf16>, grid, dim3(THREADS), bytes, stream,
                     props->has_pdl, 1, *a);
}

template <bool bf16>
static int launch_width(const ft_cuda_device_props *props, void *stream,
                        const ft_attend_kv_params *a)
{
    return a->head_size <= 64 ? launch<64, bf16>(props, stream, a)
                              : launch<128, bf16>(props, stream, a);
}

int ft_cuda_attend_kv_prefill_int8(const ft_cuda_device_props *props, void *stream,
                                   const ft_attend_kv_params *a)
{
    bool bf16 = a->q_dtype == FT_BF16;
    if (!props->has_wgmma || a->head_size > 128 || (a->q_dtype != FT_F16 && !bf16) ||
        a->y_dtype != a->q_dtype || a->cache_dtype != FT_I8 || a->cache_indirection != NULL)
        return (int) cudaErrorNotSupported;
    return bf16 ? launch_width<true>(props, stream, a) : launch_width<false>(props, stream, a);
}
