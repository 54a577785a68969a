/*
 * attend_kv_int8.cu - decode attention over an int8 KV cache with heads of 128 elements, from sm_90
 * on; limited by memory bandwidth.
 *
 * 64 x 512 tokens of 32 heads are 277 MB, which an H200 reads at 4.3 TB/s. decode.cu takes 89 us
 * for them: 87 for the copies alone, 59 for the arithmetic alone. This kernel takes 66 us. TMA
 * copies tiles of 4 KiB, each warp has a pipeline that continues across work units
 * (attend_kv_int8_pipeline.cuh), and the MMAs consume int8 values directly
 * (attend_kv_int8_mainloop.cuh). The loads have an L2 evict-first policy; without it the kernel
 * takes 10 us longer.
 *
 * Sums are ordered by position. The keys of a row are cut into units, and tiles of 32 keys of a
 * unit are distributed round-robin over the warps. A warp adds its own tiles in order, a unit is
 * the sum of its warps in order, and a row is the sum of its units. The assignment of keys depends
 * on the row's position alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/attend_kv_int8_mainloop.cuh"

/* ---- Shared memory -------------------------------------------------------------------------- */

/*
 * Shared memory before the pipelines. Queries are double-buffered because one unit begins as the
 * previous one ends.
 */
template <int head_sets> struct shared_storage {
    uint64_t full[WARPS][MAX_STAGES];
    quantized_queries q[2][head_sets];
};

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/*
 * Followed by [WARPS, stages, 2, KEY_TILE] scales, then the partial sums of the warps: [2, WARPS,
 * heads, PARTIAL].
 */
template <int head_sets> struct smem_pointers {
    shared_storage<head_sets> *r;
    char *tiles;
    float *scales, *partials;

    __device__ __forceinline__ smem_pointers(char *shared, int stages)
    {
        tiles = shared;
        r = (shared_storage<head_sets> *) (shared + WARPS * stages * STAGE_BYTES);
        scales = (float *) (r + 1);
        partials = scales + WARPS * stages * 2 * KEY_TILE;
    }
};

/* ---- Partial sums of a warp ----------------------------------------------------------------- */

template <int head_sets>
static __device__ __forceinline__ void
accumulate_unit(partial_acc<head_sets> *acc, kv_pipeline *tiles,
                const quantized_queries q[head_sets], const ft_attend_kv_params &a,
                const kv_tensor_maps &tensor_maps, const unit_keys &s)
{
    int lane = (int) threadIdx.x % 32;
    tile_range steps = warp_tiles_of(s);
    uint32_t words[head_sets][8];
    float scale[head_sets];
#pragma unroll
    for (int head_set = 0; head_set < head_sets; head_set++) {
        acc->row_max[head_set] = -INFINITY;
        acc->sum[head_set] = 0.0f;
        scale[head_set] = q[head_set].scale[lane % 4];
#pragma unroll
        for (int i = 0; i < 16; i++)
            acc->y[head_set][i] = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++)
            words[head_set][i] = q[head_set].word[i][lane];
    }
#pragma unroll 1
    for (int base = steps.base; base < steps.end; base += CTA_STRIDE) {
        tiles->consumer_wait();
        process_tile<head_sets>(acc, tiles->stages + tiles->state.stage_index * STAGE_BYTES,
                                tiles->scales + tiles->state.stage_index * 2 * KEY_TILE, words,
                                scale, base, s.first, s.last);
        tiles->consumer_release(a, tensor_maps);
    }
}

template <int head_sets>
static __device__ __forceinline__ void store_partial(float *partials,
                                                     const partial_acc<head_sets> &acc, int heads)
{
    int lane = (int) threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int head_set = 0; head_set < head_sets; head_set++) {
        float sum = ft_column_sum(acc.sum[head_set]),
              *stage_index = partials + (4 * head_set + t) * PARTIAL;
        const float *y = acc.y[head_set];
        if (4 * head_set + t >= heads)
            continue;
#pragma unroll
        for (int i = 0; i < 16; i += 4)
            *(float4 *) (stage_index + 16 * g + i) =
                make_float4(y[i], y[i + 1], y[i + 2], y[i + 3]);
        if (g == 0) {
            stage_index[HEAD_DIM] = acc.row_max[head_set];
            stage_index[HEAD_DIM + 1] = sum;
        }
    }
}

/* ---- Reduction ------------------------------------------------------------------------------ */

/* Four elements of a head: one lane's part of the reduction over warps or units. */
typedef struct head_partial {
    float4 y;
    float row_max, sum;
} head_partial;

/* Reads from shared memory, or from global memory that other CTAs have written. */
template <bool in_smem, typename T>
static __device__ __forceinline__ T load_partial(const float *from)
{
    return in_smem ? *(const T *) from : __ldcg((const T *) from);
}

/* Combines `count` partials (at most `max_count`), `stride` floats apart. */
template <bool in_smem, int max_count>
static __device__ __forceinline__ head_partial combine_partials(const float *partials, int stride,
                                                                int count)
{
    head_partial h = { make_float4(0.0f, 0.0f, 0.0f, 0.0f), -INFINITY, 0.0f };
    float4 y[max_count];
    float2 tail[max_count];
#pragma unroll
    for (int i = 0; i < max_count; i++) {
        tail[i] = make_float2(-INFINITY, 0.0f);
        y[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (i < count) {
            tail[i] = load_partial<in_smem, float2>(partials + i * stride + HEAD_DIM);
            y[i] =
                load_partial<in_smem, float4>(partials + i * stride + (int) threadIdx.x % 32 * 4);
        }
        h.row_max = fmaxf(h.row_max, tail[i].x);
    }
#pragma unroll
    for (int i = 0; i < max_count; i++) {
        float weight = ft_exp2_approx(tail[i].x - h.row_max);
        h.sum = fmaf(tail[i].y, weight, h.sum);
        h.y.x = fmaf(y[i].x, weight, h.y.x);
        h.y.y = fmaf(y[i].y, weight, h.y.y);
        h.y.z = fmaf(y[i].z, weight, h.y.z);
        h.y.w = fmaf(y[i].w, weight, h.y.w);
    }
    return h;
}

static __device__ __forceinline__ void store_output(const ft_attend_kv_params &a, const unit &u,
                                                    int head, const head_partial &h)
{
    float v[4] = { h.y.x / h.sum, h.y.y / h.sum, h.y.z / h.sum, h.y.w / h.sum };
    size_t row = (size_t) u.sequence * (size_t) a.heads + (size_t) (u.first_head + head);
    ft_store<4>(a.y, a.y_dtype, row * HEAD_DIM + threadIdx.x % 32 * 4, v);
}

/*
 * Whether this warp is the last of `units` to finish this head. Each head of a group counts in four
 * bits, which the last warp resets to zero.
 */
static __device__ __forceinline__ bool is_last_arrival(const ft_attend_kv_params &a, const unit &u,
                                                       int head, int units)
{
    uint32_t *split_counters =
        a.split_counters + (size_t) u.sequence * (size_t) a.head_groups + u.group;
    bool last = false;
    __threadfence();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        last = (int) (atomicAdd(split_counters, 1u << 4 * head) >> 4 * head & 15) + 1 == units;
        if (last)
            atomicSub(split_counters, (uint32_t) units << 4 * head);
    }
    last = __shfl_sync(~0u, last, 0);
    __threadfence();
    return last;
}

/*
 * One warp reduces one head of a unit. The last unit to finish also reduces the head over all
 * units.
 */
static __device__ __forceinline__ void reduce_head(const ft_attend_kv_params &a, const unit &u,
                                                   const unit_keys &s, const float *partials,
                                                   int head)
{
    head_partial h =
        combine_partials<true, WARPS>(partials + head * PARTIAL, u.heads * PARTIAL, WARPS);
    if (s.count > 1) {
        size_t row = (size_t) u.sequence * (size_t) a.heads + (size_t) (u.first_head + head);
        float *all = a.partial + row * (size_t) (a.splits * PARTIAL),
              *own = all + u.split * PARTIAL;
        *(float4 *) (own + threadIdx.x % 32 * 4) = h.y;
        if (threadIdx.x % 32 == 0)
            *(float2 *) (own + HEAD_DIM) = make_float2(h.row_max, h.sum);
        if (!is_last_arrival(a, u, head, s.count))
            return;
        h = combine_partials<false, MAX_SPLITS>(all, PARTIAL, s.count);
    }
    store_output(a, u, head, h);
}

/* ---- Work units of a CTA -------------------------------------------------------------------- */

/* Prefetched queries of a unit. */
template <int head_sets> struct prefetched_queries {
    raw_query bits[head_sets];

    __device__ __forceinline__ void fetch(const ft_attend_kv_params &a, const unit &u)
    {
#pragma unroll
        for (int head_set = 0; head_set < head_sets; head_set++)
            load_query(&bits[head_set], a, u, head_set);
    }
    __device__ __forceinline__ void quantize(quantized_queries q[head_sets],
                                             const ft_attend_kv_params &a)
    {
#pragma unroll
        for (int head_set = 0; head_set < head_sets; head_set++)
            quantize_query(&q[head_set], bits[head_set], a);
    }
};

/*
 * Processes up to 32 units. The warps take turns in quantizing the queries of the next unit and in
 * reducing the finished one.
 */
template <int head_sets>
static __device__ __forceinline__ void
process_units(const smem_pointers<head_sets> &p, kv_pipeline *tiles, const ft_attend_kv_params &a,
              const kv_tensor_maps &tensor_maps, const unit_batch &units, int *count)
{
    int warp = (int) threadIdx.x / 32, lane = next_set_bit(units.active, 0);
    prefetched_queries<head_sets> quantized_queries;
    if (warp == 0 && lane < 32) {
        quantized_queries.fetch(a, unit_of_lane(units, lane));
        quantized_queries.quantize(p.r->q[*count % 2], a);
    }
    __syncthreads();
#pragma unroll 1
    for (; lane < 32; ++*count) {
        unit u = unit_of_lane(units, lane);
        unit_keys s = unit_keys_of(a, broadcast(units.position, lane), u.split);
        float *partials = p.partials + *count % 2 * (WARPS * min(a.group, MAX_HEADS) * PARTIAL);
        int role = (warp + *count) % WARPS;
        partial_acc<head_sets> acc;
        lane = next_set_bit(units.active, lane + 1);
        bool prefetches = role == WARPS - 1 && lane < 32;
        if (prefetches)
            quantized_queries.fetch(a, unit_of_lane(units, lane));
        accumulate_unit<head_sets>(&acc, tiles, p.r->q[*count % 2], a, tensor_maps, s);
        store_partial<head_sets>(partials + warp * u.heads * PARTIAL, acc, u.heads);
        if (prefetches)
            quantized_queries.quantize(p.r->q[(*count + 1) % 2], a);
        __syncthreads();
        if (role < u.heads)
            reduce_head(a, u, s, partials, role);
    }
}
#endif

/* Grid: the number of units, or the number of CTAs that run concurrently if this is less. */
template <int head_sets>
static __global__ void __launch_bounds__(THREADS, 1)
    attend_kv_int8_kernel(const __grid_constant__ ft_attend_kv_params a,
                          const __grid_constant__ kv_tensor_maps tensor_maps, int stages)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    extern __shared__ __align__(1024) char shared[];
    int warp = (int) threadIdx.x / 32, count = 0;
    smem_pointers<head_sets> p(shared, stages);
    kv_pipeline tiles = { p.tiles + warp * stages * STAGE_BYTES,
                          p.scales + warp * stages * 2 * KEY_TILE, p.r->full[warp], stages };
    tiles.prologue(a, tensor_maps);
    unit_batch units = lookup_units(a, blockIdx.x);
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    process_units<head_sets>(p, &tiles, a, tensor_maps, units, &count);
#pragma unroll 1
    for (uint32_t first = blockIdx.x + 32 * gridDim.x; first < unit_count(a);
         first += 32 * gridDim.x) {
        units = lookup_units(a, first);
        process_units<head_sets>(p, &tiles, a, tensor_maps, units, &count);
    }
#endif
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <int head_sets> static size_t smem_bytes(int heads, int stages)
{
    return sizeof(shared_storage<head_sets>) +
           (size_t) WARPS * ((size_t) stages * (STAGE_BYTES + 2 * KEY_TILE * sizeof(float)) +
                             2 * (size_t) heads * PARTIAL * sizeof(float));
}

template <int head_sets>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_attend_kv_params *a)
{
    int heads = a->group < MAX_HEADS ? a->group : MAX_HEADS, stages = MAX_STAGES;
    while (stages > 1 && smem_bytes<head_sets>(heads, stages) > props->smem_bytes)
        stages--;
    size_t bytes = smem_bytes<head_sets>(heads, stages);
    if (bytes > props->smem_bytes)
        return (int) cudaErrorNotSupported;
    kv_tensor_maps tensor_maps;
    const CUtensorMapL2promotion none = CU_TENSOR_MAP_L2_PROMOTION_NONE;
    int status =
        ft_tma_map_2d(&tensor_maps.keys, a->keys, a->cached_rows, HEAD_DIM, KEY_TILE, none);
    if (status == 0)
        status =
            ft_tma_map_2d(&tensor_maps.values, a->values, a->cached_rows, HEAD_DIM, KEY_TILE, none);
    if (status == 0)
        status =
            (int) cudaFuncSetAttribute(attend_kv_int8_kernel<head_sets>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != 0)
        return status;
    size_t units = a->sequences * (size_t) a->head_groups * (size_t) a->splits;
    size_t blocks = (size_t) props->sm_count;
    return ft_launch(attend_kv_int8_kernel<head_sets>,
                     dim3((unsigned) (units < blocks ? units : blocks)), dim3(THREADS), bytes,
                     stream, props->has_pdl, 1, *a, tensor_maps, stages);
}

/*
 * Upper bound of the units per row: at least what unit_keys_of() returns, for a sliding window that
 * may begin inside a unit.
 */
static int max_splits(const ft_attend_kv_params *a)
{
    size_t keys =
        a->window > 0 && (size_t) a->window < a->context ? (size_t) a->window : a->context;
    size_t units = (keys >> SPLIT_SHIFT) + 1;
    return (int) (units < MAX_SPLITS ? units : MAX_SPLITS);
}

int ft_cuda_attend_kv_decode_int8(const ft_cuda_device_props *props, void *stream,
                                  const ft_attend_kv_params *params)
{
    ft_attend_kv_params a = *params;
    if (!props->has_pdl || a.cache_dtype != FT_I8 || a.head_size != HEAD_DIM ||
        (a.q_dtype != FT_F16 && a.q_dtype != FT_BF16) || a.cached_rows > INT32_MAX ||
        a.cache_indirection != NULL)
        return (int) cudaErrorNotSupported;
    a.splits = max_splits(&a);
    a.head_groups = a.kv_heads * ((a.group + MAX_HEADS - 1) / MAX_HEADS);
    if (a.sequences * (size_t) a.head_groups * (size_t) a.splits > INT32_MAX / 64)
        return (int) cudaErrorInvalidValue;
    return a.group > 4 ? launch<2>(props, stream, &a) : launch<1>(props, stream, &a);
}
