/*
 * attention_i8.cu - encoder attention on int8 values, with the bits of
 * kernels/cpu/attention/attention_i8.c.
 *
 * There are two passes over the keys. The first finds the maximum score of each row. The second
 * recomputes the scores, quantizes the softmax weights and accumulates the context. Recomputing
 * takes fewer instructions than keeping the scores and subtracting the maximum, because an MMA can
 * start from an initial accumulator. For heads of 64 elements, sm_90 code has 11 instructions per
 * score: 1.5 in the first pass and 9.5 in the second.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/encoder/attention_i8.cuh"
#include "kernels/cuda/attention/encoder/attention_i8_pipeline.cuh"

/* ---- The passes ---------------------------------------------------------------------------- */

/* A warp's `m_tiles` tiles of 16 queries. A warp without queries only helps to copy. */
template <int width, int blocks> struct work {
    feed from;
    bool busy;
    int length;
    uint32_t q[blocks][width / 32][4];
};

/* First pass: the maximum score of each row. */
template <int width, int blocks>
static __device__ __forceinline__ void first_sweep(work<width, blocks> *w, int32_t most[blocks][2])
{
    const int32_t zero[blocks][2] = {};
    for (int key = 0; key < w->length; key += 2 * TILE) {
        const uint8_t *slot = take<width>(&w->from);
        int keys = w->busy ? min(w->length - key, 2 * TILE) : 0;
        for (int row = 0; row < keys; row += CHUNK) {
            scores c[blocks];
            score<width, blocks>(c, zero, w->q, slot + row / TILE * tile_bytes<width>, row % TILE);
#pragma unroll
            for (int b = 0; b < blocks; b++) {
                if (keys - row < CHUNK)
                    forget(&c[b], keys - row, INT32_MIN);
                raise_most(most[b], &c[b]);
            }
        }
    }
#pragma unroll
    for (int b = 0; b < blocks; b++)
        settle_most(most[b]);
}

/* Second pass: quantized softmax weights, and the context. */
template <int width, int blocks>
static __device__ __forceinline__ void second_sweep(work<width, blocks> *w, sums<width> to[blocks],
                                                    const int32_t most[blocks][2], float step)
{
    int32_t start[blocks][2];
#pragma unroll
    for (int i = 0; i < 2 * blocks; i++)
        start[i / 2][i % 2] = (int32_t) (FROM_LARGEST - (uint32_t) most[i / 2][i % 2]);
    for (int key = 0; key < w->length; key += TILE) {
        const uint8_t *slot = take<width>(&w->from);
        int keys = w->busy ? min(w->length - key, TILE) : 0;
        for (int row = 0; row < keys; row += CHUNK) {
            scores c[blocks];
            uint32_t codes[blocks][4];
            score<width, blocks>(c, start, w->q, slot, row);
#pragma unroll
            for (int b = 0; b < blocks; b++) {
                if (keys - row < CHUNK)
                    forget(&c[b], keys - row, __float_as_int(-INFINITY));
                encode(codes[b], &c[b], step);
            }
            mix<width, blocks>(to, codes, slot + tile_bytes<width>, row);
        }
    }
}

/* ---- The kernel ---------------------------------------------------------------------------- */

static constexpr int most_blocks(int width, int blocks)
{
    return width > 128 ? 2 : width > 64 || blocks == 2 ? 3 : 4;
}

/*
 * CTAs of 64 * m_tiles queries. With 128 queries every other entry of the query tile list is
 * skipped.
 */
template <int width, int blocks>
static __global__ void __launch_bounds__(THREADS, most_blocks(width, blocks))
    attend_kernel(const __grid_constant__ ft_cuda_heads a, int unit, float step)
{
    extern __shared__ uint4 shared[];
    enum { QUERIES = 16 * WARPS * blocks };
    ft_attention_task task;
    work<width, blocks> w;
    int32_t most[blocks][2];
    int first = (int) threadIdx.x / 32 * 16 * blocks;
    ft_wait_for_predecessor();
    if (!ft_take_task(&task, a, QUERIES))
        return;
    w.busy = first < task.queries;
    w.length = task.length;
    begin<width>(&w.from, a, task, (uint8_t *) shared, unit);
    ft_let_successor_begin();

    ft_copy_wait<slots<width> - 2>();
    __syncthreads();
    const uint8_t *queries = (const uint8_t *) shared + (slots<width> - 1) * slot_bytes<width> +
                             first / TILE * tile_bytes<width>;
#pragma unroll
    for (int b = 0; b < blocks; b++) {
        load_queries<width>(w.q[b], queries, first % TILE + 16 * b);
        most[b][0] = most[b][1] = INT32_MIN;
    }
    sums<width> to[blocks] = {};
    first_sweep<width, blocks>(&w, most);
    second_sweep<width, blocks>(&w, to, most, step);
    __syncthreads();
    if (w.busy)
        store<width, blocks>(a, task, first, to, (uint8_t *) shared);
}

/* ---- Launch -------------------------------------------------------------------------------- */

template <int width, int blocks>
static int attend(const ft_cuda_chip *chip, void *stream, const ft_cuda_heads *a)
{
    size_t bytes = slots<width> * slot_bytes<width>;
    int unit = ft_stage_unit((size_t) a->head_size, a->q, a->k, a->v);
    cudaError_t status = cudaFuncSetAttribute(
        attend_kernel<width, blocks>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(attend_kernel<width, blocks>, ft_attention_grid(a), dim3(THREADS), bytes,
                     stream, chip->overlaps, 1, *a, unit, ft_softmax_step(a->score_scale));
}

/*
 * Two tiles of queries per warp halve the shared memory loads, but leave too few warps for small
 * batches. The threshold of 5 CTAs per multiprocessor was measured on an H200, for 12 heads of 64
 * elements and sequences of 128 tokens. docs/experiments has the table.
 */
int ft_cuda_attend_i8(const ft_cuda_chip *chip, void *stream, const ft_cuda_heads *a)
{
    bool large = a->nblocks * (size_t) a->heads >= 5 * (size_t) chip->multiprocessors;
    if (a->head_size > 128)
        return attend<256, 1>(chip, stream, a);
    if (a->head_size > 96)
        return attend<128, 1>(chip, stream, a);
    if (a->head_size > 64)
        return attend<96, 1>(chip, stream, a);
    if (a->head_size <= 32)
        return large ? attend<32, 2>(chip, stream, a) : attend<32, 1>(chip, stream, a);
    if (large)
        return attend<64, 2>(chip, stream, a);
    return chip->has_wgmma ? ft_cuda_attend_i8_wgmma(chip, stream, a)
                           : attend<64, 1>(chip, stream, a);
}
