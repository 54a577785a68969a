/*
 * attention_f16.cu - attention on f16 and bf16, with sums in float.
 *
 * A warp owns 16 queries and passes over the keys once: the sums that it has are scaled down
 * whenever a larger score appears (online softmax).  Scores of two tiles of 8 keys are one operand
 * of the next product as they lie, and ldmatrix turns the values, so that nothing moves between
 * lanes but each row's largest score.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/mma.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/*
 * Tiles of 16 queries in a warp.  Two share what is read from shared memory, which else is the
 * limit: 8 x 1024 keys took 161 us with one and 111 with two.  A head of 256 fills the registers
 * with one.
 */
template <int width> static constexpr int tiles = width <= 128 ? 2 : 1;
template <int width> static constexpr int threads = 2 * FT_CUDA_QUERIES / tiles<width>;

/* Rows g (0) and g + 8 (1) of a tile; `sum` is of this lane's keys only. */
typedef struct softmax {
    float most[2], sum[2];
} softmax;

/* 2^x, within two units in the last place; 0 for -inf. */
static __device__ __forceinline__ float power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Two floats as a word, the first in the low half. */
template <bool bf16> static __device__ __forceinline__ uint32_t pack(float low, float high)
{
    uint32_t word;
    if (bf16) {
        __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        memcpy(&word, &pair, sizeof word);
    } else {
        __half2 pair = __floats2half2_rn(low, high);
        memcpy(&word, &pair, sizeof word);
    }
    return word;
}

/* Queries `row` .. + 15 of their area, elements 16 step .. + 15 of the head. */
template <int width>
static __device__ __forceinline__ void load_queries(uint32_t q[4], const uint8_t *area, int row,
                                                    int step)
{
    int lane = threadIdx.x % 32;
    ft_load_tiles(q, area + ft_panel_offset<2 * width, FT_CUDA_QUERIES>(row + lane % 16,
                                                                        2 * step + lane / 16));
}

/* The warp's queries times `keys` keys; a lane has keys 2t, 2t + 1 of each 8. */
template <int width, int keys, bool bf16>
static __device__ __forceinline__ void score(float s[][keys / 8][4], const uint8_t *queries,
                                             int row, const uint8_t *area)
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < tiles<width> * keys / 2; i++)
        s[i / (keys / 2)][i / 4 % (keys / 8)][i % 4] = 0.0f;
#pragma unroll
    for (int step = 0; step < width / 16; step += 2) {
        uint32_t q[tiles<width>][2][4];
#pragma unroll
        for (int m = 0; m < tiles<width>; m++) {
            load_queries<width>(q[m][0], queries, row + 16 * m, step);
            load_queries<width>(q[m][1], queries, row + 16 * m, step + 1);
        }
#pragma unroll
        for (int j = 0; j < keys / 8; j++) {
            uint32_t k[4];
            ft_load_tiles(
                k, area + ft_panel_offset<2 * width, keys>(8 * j + lane % 8, 2 * step + lane / 8));
#pragma unroll
            for (int m = 0; m < tiles<width>; m++) {
                ft_mma_halves<bf16>(s[m][j], q[m][0], k[0], k[1]);
                ft_mma_halves<bf16>(s[m][j], q[m][1], k[2], k[3]);
            }
        }
    }
}

/* Keys from `left` on do not exist. */
template <int keys> static __device__ __forceinline__ void hide(float s[keys / 8][4], int left)
{
    int t = threadIdx.x % 4;
#pragma unroll
    for (int j = 0; j < keys / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (8 * j + 2 * t + i % 2 >= left)
                s[j][i] = -INFINITY;
}

/*
 * Scores become weights 2^(score * scale - most), sums of earlier tiles are brought to the new
 * largest score.  `scale` contains log2(e).
 */
template <int width, int keys>
static __device__ __forceinline__ void weigh(float s[keys / 8][4], softmax *rows,
                                             float sums[width / 8][4], float scale)
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float most = rows->most[row];
#pragma unroll
        for (int j = 0; j < keys / 8; j++)
            most = fmaxf(most, fmaxf(s[j][2 * row], s[j][2 * row + 1]));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
        float shrink = power_of_two((rows->most[row] - most) * scale), offset = -most * scale;
        float sum = rows->sum[row] * shrink;
        rows->most[row] = most;
#pragma unroll
        for (int j = 0; j < keys / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float *at = &s[j][2 * row + i];
                *at = power_of_two(fmaf(*at, scale, offset));
                sum += *at;
            }
        rows->sum[row] = sum;
#pragma unroll
        for (int j = 0; j < width / 8; j++) {
            sums[j][2 * row] *= shrink;
            sums[j][2 * row + 1] *= shrink;
        }
    }
}

template <int width, int keys, bool bf16>
static __device__ __forceinline__ void mix(float sums[][width / 8][4], const float s[][keys / 8][4],
                                           const uint8_t *area)
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < keys / 16; step++) {
        uint32_t p[tiles<width>][4];
#pragma unroll
        for (int m = 0; m < tiles<width>; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float *pair = &s[m][2 * step + i / 2][i % 2 * 2];
                p[m][i] = pack<bf16>(pair[0], pair[1]);
            }
#pragma unroll
        for (int j = 0; j < width / 16; j++) {
            uint32_t v[4];
            ft_load_transposed(v, area + ft_panel_offset<2 * width, keys>(16 * step + lane % 16,
                                                                          2 * j + lane / 16));
#pragma unroll
            for (int m = 0; m < tiles<width>; m++) {
                ft_mma_halves<bf16>(sums[m][2 * j], p[m], v[0], v[1]);
                ft_mma_halves<bf16>(sums[m][2 * j + 1], p[m], v[2], v[3]);
            }
        }
    }
}

template <int width, bool bf16>
static __device__ __forceinline__ void store(const ft_cuda_heads &a, const ft_attention_task &task,
                                             int first, const softmax *rows,
                                             const float sums[width / 8][4])
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    size_t cols = (size_t) a.heads * (size_t) a.head_size;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float sum = rows->sum[row] + __shfl_xor_sync(~0u, rows->sum[row], 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        float share = 1.0f / sum;
        int query = first + g + 8 * row;
        uint16_t *y = (uint16_t *) a.y + (task.first + task.query + query) * cols + task.column;
        if (query < task.queries)
#pragma unroll
            for (int j = 0; j < width / 8; j++) {
                int col = 8 * j + 2 * t;
                uint32_t word = pack<bf16>(sums[j][2 * row] * share, sums[j][2 * row + 1] * share);
                if (col + 1 < a.head_size && a.head_size % 2 == 0)
                    *(uint32_t *) (y + col) = word;
                else
                    for (int i = 0; i < 2 && col + i < a.head_size; i++)
                        y[col + i] = (uint16_t) (word >> (16 * i));
            }
    }
}

/* ---- The kernel -------------------------------------------------------------------------------
 */

/* Keys of a tile: as many as let a head of 256 run in the 64 KiB of Turing. */
template <int width> static constexpr int tile_keys = 4096 / width;

/* The queries, and two slots of keys and values. */
template <int width> static constexpr size_t shared_bytes()
{
    return (size_t) (2 * width) * (FT_CUDA_QUERIES + 4 * tile_keys<width>);
}

/* Keys and values, of which the next tile is copied. */
typedef struct feed {
    ft_rows_of keys;
    ptrdiff_t to_values;
} feed;

/* Begin to copy the next tile of keys and values, if there is one. */
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

/* The queries and the first tile. */
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
                if (first + keys > task.length)
                    hide<keys>(s[m], task.length - first);
                weigh<width, keys>(s[m], &rows[m], sums[m], scale);
            }
            mix<width, keys, bf16>(sums, s, slot + keys * 2 * width);
        }
        __syncthreads(); /* everybody has left the slot that is filled next */
    }
    if (row < task.queries)
#pragma unroll
        for (int m = 0; m < tiles<width>; m++)
            store<width, bf16>(a, task, row + 16 * m, &rows[m], sums[m]);
}

/* ------------------------------------------------------------------------------------------ */

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
