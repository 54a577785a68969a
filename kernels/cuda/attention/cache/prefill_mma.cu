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
    return (size_t) (2 * width) * (FT_CUDA_QUERIES + 4 * tile_keys<width>);
}

/* A query tile of one head. */
typedef struct work {
    ft_attend_task task;
    int head, kv_head;
    int last; /* the last key that is visible to any row */
} work;

/* ---- Tiles ---------------------------------------------------------------------------------- */

/* Starts the copy of f16 rows of one head of the cache, from `cache_row` on. */
template <int width>
static __device__ __forceinline__ void stage_halves(uint8_t *to, const void *from,
                                                    const ft_attend_job &a, size_t place, int count)
{
    int bytes = 2 * a.head_size;
    ft_rows_of rows = ft_rows_for_thread<2 * width, threads<width>>(
        (const uint8_t *) from + place * (size_t) bytes, count, bytes, (uint32_t) bytes, 16);
    ft_stage_rows<2 * width, tile_keys<width>, threads<width>>(to, rows);
}

/* The same for int8 values, eight at a time with four loads in flight. */
template <int width, bool bf16>
static __device__ __forceinline__ void stage_codes(uint8_t *to, const void *from,
                                                   const float *scales, const ft_attend_job &a,
                                                   size_t place, int count)
{
    constexpr int keys = tile_keys<width>, pieces = width / 8, loads = 4;
#pragma unroll 1
    for (int first = (int) threadIdx.x; first < keys * pieces; first += loads * threads<width>) {
        uint2 word[loads];
        float scale[loads];
#pragma unroll
        for (int i = 0; i < loads; i++) {
            int at = first + i * threads<width>, row = at / pieces, piece = at % pieces;
            bool inside = row < count && 8 * piece < a.head_size;
            size_t key = place + (size_t) row;
            const uint8_t *data = (const uint8_t *) from + key * (size_t) a.head_size + 8 * piece;
            word[i] = inside ? *(const uint2 *) data : make_uint2(0, 0);
            scale[i] = inside ? scales[key] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < loads; i++) {
            int at = first + i * threads<width>;
            uint4 halves;
            ft_scale_codes<bf16>((uint32_t *) &halves, word[i], scale[i]);
            *(uint4 *) (to + ft_panel_offset<2 * width, keys>(at / pieces, at % pieces)) = halves;
        }
    }
}

/* Starts the load of the tile whose first key is `base` into a stage, if a row sees it. */
template <int width, bool bf16, bool codes>
static __device__ __forceinline__ void fetch(uint8_t *slot, const ft_attend_job &a, const work &w,
                                             int base)
{
    if (base <= w.last) {
        uint8_t *values = slot + tile_keys<width> * 2 * width;
        int count = min(w.last + 1 - base, tile_keys<width>);
        size_t place =
            ft_cache_find(w.task.pages, (size_t) base, (size_t) w.kv_head, (size_t) a.kv_heads);
        if (codes) {
            stage_codes<width, bf16>(slot, a.keys, a.key_scales, a, place, count);
            stage_codes<width, bf16>(values, a.values, a.value_scales, a, place, count);
        } else {
            stage_halves<width>(slot, a.keys, a, place, count);
            stage_halves<width>(values, a.values, a, place, count);
        }
    }
    ft_copy_commit();
}

template <int width>
static __device__ __forceinline__ void fetch_queries(uint8_t *to, const ft_attend_job &a,
                                                     const work &w)
{
    uint32_t stride = 2 * (uint32_t) (a.heads * a.head_size);
    const uint8_t *data = (const uint8_t *) a.q + w.task.row * stride + 2 * w.head * a.head_size;
    ft_rows_of rows = ft_rows_for_thread<2 * width, threads<width>>(data, w.task.rows,
                                                                    2 * a.head_size, stride, 16);
    ft_stage_rows<2 * width, FT_CUDA_QUERIES, threads<width>>(to, rows);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* Later query tiles of a prompt see more keys, so they come first. */
static __device__ __forceinline__ work take(const ft_attend_job &a)
{
    work w;
    size_t index = blockIdx.x / (unsigned) a.heads;
    w.task = ft_attend_take(a, a.nblocks - 1 - index);
    w.head = (int) (blockIdx.x % (unsigned) a.heads);
    w.kv_head = w.head / a.group;
    w.last = ft_attend_last_key(a, w.task, w.task.rows - 1);
    return w;
}

template <int width, bool bf16, bool codes>
static __global__ void __launch_bounds__(threads<width>)
    attend_kernel(const __grid_constant__ ft_attend_job a)
{
    extern __shared__ uint4 shared[];
    constexpr int keys = tile_keys<width>, slot_bytes = 2 * keys * 2 * width;
    uint8_t *queries = (uint8_t *) shared, *slots = queries + FT_CUDA_QUERIES * 2 * width;
    __shared__ work w; /* kept out of registers, because the accumulators leave few */
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (threadIdx.x == 0)
        w = take(a);
    __syncthreads();
    if (w.task.rows == 0)
        return;
    int begin = ft_attend_first_key(a, w.task.position) / keys * keys;
    fetch_queries<width>(queries, a, w);
    fetch<width, bf16, codes>(slots, a, w, begin);

    int row = (int) threadIdx.x / 32 * 16 * tiles<width>;
    float s[tiles<width>][keys / 8][4], sums[tiles<width>][width / 8][4] = {};
    softmax rows[tiles<width>];
#pragma unroll
    for (int m = 0; m < tiles<width>; m++)
        rows[m] = softmax{ { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
    for (int base = begin, step = 0; base <= w.last; base += keys, step++) {
        const uint8_t *slot = slots + step % 2 * slot_bytes;
        fetch<width, bf16, codes>(slots + (step + 1) % 2 * slot_bytes, a, w, base + keys);
        ft_copy_wait<1>();
        __syncthreads();
        if (row < w.task.rows) {
            score<width, keys, bf16>(s, queries, row, slot);
#pragma unroll
            for (int m = 0; m < tiles<width>; m++) {
                float shrink[2];
                ft_attend_hide<keys>(s[m], a, ft_attend_last_key(a, w.task, row + 16 * m), base);
                weigh<keys, true>(s[m], &rows[m], shrink, a.score_scale);
                shrink_sums<width>(sums[m], shrink);
            }
            mix<width, keys, bf16>(sums, s, slot + keys * 2 * width);
        }
        __syncthreads(); /* all warps have read the stage that is filled next */
    }
    size_t cols = (size_t) a.heads * (size_t) a.head_size;
    results to = { (uint16_t *) a.y + w.task.row * cols + (size_t) (w.head * a.head_size), cols,
                   w.task.rows, a.head_size };
    if (row < w.task.rows)
#pragma unroll
        for (int m = 0; m < tiles<width>; m++)
            store<width, bf16>(to, row + 16 * m, &rows[m], sums[m]);
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <int width, bool bf16, bool codes>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    const size_t bytes = shared_bytes<width>();
    if (bytes + sizeof(work) > chip->shared)
        return (int) cudaErrorNotSupported;
    dim3 grid((unsigned) (a->nblocks * (size_t) a->heads));
    cudaError_t status =
        cudaFuncSetAttribute(attend_kernel<width, bf16, codes>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(attend_kernel<width, bf16, codes>, grid, dim3(threads<width>), bytes, stream,
                     chip->overlaps, 1, *a);
}

template <bool bf16, bool codes>
static int launch_width(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    return a->head_size <= 64    ? launch<64, bf16, codes>(chip, stream, a)
           : a->head_size <= 128 ? launch<128, bf16, codes>(chip, stream, a)
                                 : launch<256, bf16, codes>(chip, stream, a);
}

int ft_cuda_attend_mma(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    bool bf16 = a->q_dtype == FT_BF16, codes = a->cache_dtype == FT_I8;
    if ((a->q_dtype != FT_F16 && !bf16) || a->y_dtype != a->q_dtype ||
        (bf16 && chip->capability < 80) || (!codes && a->cache_dtype != a->q_dtype) ||
        a->origin != NULL)
        return (int) cudaErrorNotSupported;
    if (bf16)
        return codes ? launch_width<true, true>(chip, stream, a)
                     : launch_width<true, false>(chip, stream, a);
    return codes ? launch_width<false, true>(chip, stream, a)
                 : launch_width<false, false>(chip, stream, a);
}
