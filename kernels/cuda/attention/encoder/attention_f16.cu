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
    return (size_t) (2 * width) * (FT_CUDA_QUERIES + 4 * tile_keys<width>);
}

/* The next tile of keys and values to copy. */
typedef struct feed {
    ft_rows_of keys;
    ptrdiff_t to_values;
} feed;

/* Starts the copy of the next tile of keys and values, if there is one. */
template <int width> static __device__ __forceinline__ void fetch(uint8_t *slot, feed *f)
{
    constexpr int keys = tile_keys<width>;
    if (f->keys.count > 0) {
        ft_rows_of values = f->keys;
        values.data += f->to_values;
        ft_stage_rows<2 * width, keys, threads<width>>(slot, f->keys);
        ft_stage_rows<2 * width, keys, threads<width>>(slot + keys * 2 * width, values);
        f->keys.data += (size_t) keys * f->keys.stride;
        f->keys.count -= keys;
    }
    ft_copy_commit();
}

/* Prologue: the queries and the first tile. */
template <int width>
static __device__ __forceinline__ void begin(feed *f, uint8_t *queries, uint8_t *slot,
                                             const ft_cuda_heads &a, const ft_attention_task &task,
                                             int unit)
{
    uint32_t stride = 2 * (uint32_t) (a.heads * a.head_size);
    const uint8_t *data = (const uint8_t *) a.q + task.first * stride + 2 * task.column;
    ft_rows_of rows =
        ft_rows_for_thread<2 * width, threads<width>>(data, 0, 2 * a.head_size, stride, unit);
    f->keys = rows;
    f->keys.data += (size_t) task.query * stride;
    f->keys.count = task.queries;
    ft_stage_rows<2 * width, FT_CUDA_QUERIES, threads<width>>(queries, f->keys);
    f->keys.data = rows.data + ((const uint8_t *) a.k - (const uint8_t *) a.q);
    f->keys.count = task.length;
    f->to_values = (const uint8_t *) a.v - (const uint8_t *) a.k;
    fetch<width>(slot, f);
}

template <int width, bool bf16>
static __global__ void __launch_bounds__(threads<width>)
    attend_kernel(const __grid_constant__ ft_cuda_heads a, float scale, int unit)
{
    extern __shared__ uint4 shared[];
    constexpr int keys = tile_keys<width>, slot_bytes = 2 * keys * 2 * width;
    uint8_t *queries = (uint8_t *) shared, *slots = queries + FT_CUDA_QUERIES * 2 * width;
    ft_attention_task task;
    ft_wait_for_predecessor();
    if (!ft_take_task(&task, a))
        return;
    feed f;
    begin<width>(&f, queries, slots, a, task, unit);
    ft_let_successor_begin();

    int row = (int) threadIdx.x / 32 * 16 * tiles<width>;
    float s[tiles<width>][keys / 8][4], sums[tiles<width>][width / 8][4] = {};
    softmax rows[tiles<width>];
#pragma unroll
    for (int m = 0; m < tiles<width>; m++)
        rows[m] = softmax{ { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
    for (int first = 0, step = 0; first < task.length; first += keys, step++) {
        const uint8_t *slot = slots + step % 2 * slot_bytes;
        fetch<width>(slots + (step + 1) % 2 * slot_bytes, &f);
        ft_copy_wait<1>();
        __syncthreads();
        if (row < task.queries) {
            score<width, keys, bf16>(s, queries, row, slot);
#pragma unroll
            for (int m = 0; m < tiles<width>; m++) {
                float shrink[2];
                if (first + keys > task.length)
                    hide<keys>(s[m], task.length - first);
                weigh<keys, false>(s[m], &rows[m], shrink, scale);
                shrink_sums<width>(sums[m], shrink);
            }
            mix<width, keys, bf16>(sums, s, slot + keys * 2 * width);
        }
        __syncthreads(); /* all warps have read the stage that is filled next */
    }
    size_t cols = (size_t) a.heads * (size_t) a.head_size;
    results to = { (uint16_t *) a.y + (task.first + task.query) * cols + task.column, cols,
                   task.queries, a.head_size };
    if (row < task.queries)
#pragma unroll
        for (int m = 0; m < tiles<width>; m++)
            store<width, bf16>(to, row + 16 * m, &rows[m], sums[m]);
}

/* ---- Launch -------------------------------------------------------------------------------- */

template <int width, bool bf16>
static int attend(const ft_cuda_chip *chip, void *stream, const ft_cuda_heads *a)
{
    const float log2_e = 1.44269504f;
    int unit = ft_stage_unit(2 * (size_t) a->head_size, a->q, a->k, a->v);
    cudaError_t status = cudaFuncSetAttribute(attend_kernel<width, bf16>,
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              (int) shared_bytes<width>());
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(attend_kernel<width, bf16>, ft_attention_grid(a), dim3(threads<width>),
                     shared_bytes<width>(), stream, chip->overlaps, 1, *a, a->score_scale * log2_e,
                     unit);
}

template <bool bf16>
static int attend_width(const ft_cuda_chip *chip, void *stream, const ft_cuda_heads *a)
{
    return a->head_size <= 64    ? attend<64, bf16>(chip, stream, a)
           : a->head_size <= 128 ? attend<128, bf16>(chip, stream, a)
                                 : attend<256, bf16>(chip, stream, a);
}

int ft_cuda_attend_f16(const ft_cuda_chip *chip, void *stream, const ft_cuda_heads *a)
{
    if (a->dtype == FT_F16)
        return attend_width<false>(chip, stream, a);
    if (chip->capability < 80)
        return (int) cudaErrorNotSupported; /* Turing has no bf16 */
    return attend_width<true>(chip, stream, a);
}
