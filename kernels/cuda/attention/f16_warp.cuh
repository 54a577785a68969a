/*
 * f16_warp.cuh - attention of one warp in f16 and bf16, with float32 accumulators.
 *
 * A warp owns one or two tiles of 16 queries and passes over the keys once: the accumulators are
 * rescaled whenever a larger score appears (online softmax). The scores of two tiles of 8 keys are
 * an operand of the next MMA without data movement, and ldmatrix transposes the values, so only the
 * row maximum crosses lanes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_F16_WARP_CUH
#define FT_KERNELS_CUDA_ATTENTION_F16_WARP_CUH

#include "kernels/cuda/attention/attention.cuh"
#include "kernels/cuda/ptx/mma.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/*
 * Tiles of 16 queries per warp. Two tiles share the loads from shared memory, which are the
 * bottleneck otherwise: 8 x 1024 keys took 161 us with one and 111 with two. A head of 256 elements
 * fills the registers with one.
 */
template <int width> static constexpr int m_tiles = width <= 128 ? 2 : 1;
template <int width> static constexpr int threads = 2 * FT_CUDA_QUERY_TILE / m_tiles<width>;

/* Softmax statistics of rows g (0) and g + 8 (1) of a tile; `sum` covers this lane's keys only. */
typedef struct softmax_stats {
    float row_max[2], sum[2];
} softmax_stats;

/* Two floats as a word, the first in the low half. */
template <bool bf16> static __device__ __forceinline__ uint32_t pack_f16x2(float low, float high)
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

/* Queries `row` .. + 15 of their tile, elements 16 step .. + 15 of the head. */
template <int width>
static __device__ __forceinline__ void load_queries(uint32_t q[4], const uint8_t *tile, int row,
                                                    int step)
{
    int lane = threadIdx.x % 32;
    ft_ldmatrix_x4(q, tile + ft_panel_offset<2 * width, FT_CUDA_QUERY_TILE>(row + lane % 16,
                                                                            2 * step + lane / 16));
}

/* The warp's queries times `keys` keys. A lane holds keys 2t, 2t + 1 of each 8. */
template <int width, int keys, bool bf16>
static __device__ __forceinline__ void compute_qk(float s[][keys / 8][4], const uint8_t *queries,
                                                  int row, const uint8_t *tile)
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < m_tiles<width> * keys / 2; i++)
        s[i / (keys / 2)][i / 4 % (keys / 8)][i % 4] = 0.0f;
#pragma unroll
    for (int step = 0; step < width / 16; step += 2) {
        uint32_t q[m_tiles<width>][2][4];
#pragma unroll
        for (int m = 0; m < m_tiles<width>; m++) {
            load_queries<width>(q[m][0], queries, row + 16 * m, step);
            load_queries<width>(q[m][1], queries, row + 16 * m, step + 1);
        }
#pragma unroll
        for (int j = 0; j < keys / 8; j++) {
            uint32_t k[4];
            ft_ldmatrix_x4(
                k, tile + ft_panel_offset<2 * width, keys>(8 * j + lane % 8, 2 * step + lane / 8));
#pragma unroll
            for (int m = 0; m < m_tiles<width>; m++) {
                ft_mma_f16<bf16>(s[m][j], q[m][0], k[0], k[1]);
                ft_mma_f16<bf16>(s[m][j], q[m][1], k[2], k[3]);
            }
        }
    }
}

/* Masks keys from `left` on, which do not exist. */
template <int keys>
static __device__ __forceinline__ void mask_tail(float s[keys / 8][4], int n_keys)
{
    int t = threadIdx.x % 4;
#pragma unroll
    for (int j = 0; j < keys / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (8 * j + 2 * t + i % 2 >= n_keys)
                s[j][i] = -INFINITY;
}

/*
 * Online softmax: scores become weights 2^(score * scale - max), and `rescale` brings the sums of
 * earlier tiles to the new maximum. `scale` contains log2(e). With `may_be_empty` a row may not
 * have seen any key yet; its weights are 0 then.
 */
template <int keys, bool may_be_empty>
static __device__ __forceinline__ void online_softmax(float s[keys / 8][4], softmax_stats *rows,
                                                      float rescale[2], float scale)
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float row_max = rows->row_max[row];
#pragma unroll
        for (int j = 0; j < keys / 8; j++)
            row_max = fmaxf(row_max, fmaxf(s[j][2 * row], s[j][2 * row + 1]));
        row_max = fmaxf(row_max, __shfl_xor_sync(~0u, row_max, 1));
        row_max = fmaxf(row_max, __shfl_xor_sync(~0u, row_max, 2));
        float max_or_zero = may_be_empty && row_max == -INFINITY ? 0.0f : row_max,
              offset = -max_or_zero * scale;
        rescale[row] = ft_exp2_approx((rows->row_max[row] - max_or_zero) * scale);
        float sum = rows->sum[row] * rescale[row];
        rows->row_max[row] = row_max;
#pragma unroll
        for (int j = 0; j < keys / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float *at = &s[j][2 * row + i];
                *at = ft_exp2_approx(fmaf(*at, scale, offset));
                sum += *at;
            }
        rows->sum[row] = sum;
    }
}

template <int width>
static __device__ __forceinline__ void rescale_acc(float acc[width / 8][4], const float rescale[2])
{
#pragma unroll
    for (int j = 0; j < width / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            acc[j][i] *= rescale[i / 2];
}

template <int width, int keys, bool bf16>
static __device__ __forceinline__ void
accumulate_pv(float acc[][width / 8][4], const float s[][keys / 8][4], const uint8_t *tile)
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < keys / 16; step++) {
        uint32_t p[m_tiles<width>][4];
#pragma unroll
        for (int m = 0; m < m_tiles<width>; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float *pair = &s[m][2 * step + i / 2][i % 2 * 2];
                p[m][i] = pack_f16x2<bf16>(pair[0], pair[1]);
            }
#pragma unroll
        for (int j = 0; j < width / 16; j++) {
            uint32_t v[4];
            ft_ldmatrix_x4_trans(v, tile + ft_panel_offset<2 * width, keys>(16 * step + lane % 16,
                                                                            2 * j + lane / 16));
#pragma unroll
            for (int m = 0; m < m_tiles<width>; m++) {
                ft_mma_f16<bf16>(acc[m][2 * j], p[m], v[0], v[1]);
                ft_mma_f16<bf16>(acc[m][2 * j + 1], p[m], v[2], v[3]);
            }
        }
    }
}

/* Destination of the results: the row of query 0, elements of one head. */
typedef struct output_rows {
    uint16_t *row;
    size_t stride; /* elements between rows */
    int queries, head_size;
} output_rows;

/* Writes the 16 queries from `first` on, of which some may not exist. */
template <int width, bool bf16>
static __device__ __forceinline__ void
store(const output_rows &to, int first, const softmax_stats *rows, const float acc[width / 8][4])
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float sum = rows->sum[row] + __shfl_xor_sync(~0u, rows->sum[row], 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        float inverse_sum = 1.0f / sum;
        int query = first + g + 8 * row;
        uint16_t *y = to.row + (size_t) query * to.stride;
        if (query < to.queries)
#pragma unroll
            for (int j = 0; j < width / 8; j++) {
                int col = 8 * j + 2 * t;
                uint32_t word = pack_f16x2<bf16>(acc[j][2 * row] * inverse_sum,
                                                 acc[j][2 * row + 1] * inverse_sum);
                if (col + 1 < to.head_size && to.head_size % 2 == 0)
                    *(uint32_t *) (y + col) = word;
                else
                    for (int i = 0; i < 2 && col + i < to.head_size; i++)
                        y[col + i] = (uint16_t) (word >> (16 * i));
            }
    }
}

#endif
