/*
 * decode_gemv_load_store.cuh - prologue and epilogue of decode_gemv.cu: x with an optional norm, y
 * with an optional gate.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_LOAD_STORE_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_LOAD_STORE_CUH

#include "kernels/cuda/gemm/groupwise/decode_gemv.cuh"
#include "kernels/cuda/rowwise/norm.cuh"

enum {
    DECODE_NORM_MAX_K = DECODE_THREADS * FT_NORM_VECTOR /* columns of a norm */
};

/* ---- x -------------------------------------------------------------------------------------- */

/* Copy rows to shared memory. A thread has several loads in flight. */
__device__ __forceinline__ void decode_load_x(char *x, const ft_cuda_groupwise_args &p,
                                              const decode_params &s)
{
    constexpr int batch = 3;
    int m8_tiles = s.k / FT_NORM_VECTOR;
#pragma unroll 1
    for (int token = 0; token < (int) p.m; token++) {
        const uint4 *from = (const uint4 *) p.x + (size_t) token * m8_tiles;
        uint4 *to = (uint4 *) (x + token * s.x_stride);
#pragma unroll 1
        for (int first = (int) threadIdx.x; first < m8_tiles; first += batch * DECODE_THREADS) {
            uint4 chunk[batch];
#pragma unroll
            for (int i = 0; i < batch; i++)
                if (first + i * DECODE_THREADS < m8_tiles)
                    chunk[i] = from[first + i * DECODE_THREADS];
#pragma unroll
            for (int i = 0; i < batch; i++)
                if (first + i * DECODE_THREADS < m8_tiles)
                    to[first + i * DECODE_THREADS] = chunk[i];
        }
    }
}

/* A thread's eight norm weights; they do not depend on the predecessor. */
struct decode_norm_weights {
    float4 v[2];

    __device__ __forceinline__ void load(const ft_cuda_groupwise_norm &norm, int k)
    {
        const float4 *own = (const float4 *) norm.weight + threadIdx.x * 2;
        if ((int) threadIdx.x * FT_NORM_VECTOR < k) {
            v[0] = own[0];
            v[1] = own[1];
        }
    }
    __device__ __forceinline__ float at(int i) const
    {
        const float4 &four = v[i / 4];
        return i % 4 == 0 ? four.x : i % 4 == 1 ? four.y : i % 4 == 2 ? four.z : four.w;
    }
};

/* One part of the sum of squares: elements FT_NORM_PARTIALS apart, in order. */
template <ft_dtype dtype>
__device__ __forceinline__ float decode_sum_of_squares(const char *x, int k)
{
    const uint16_t *own = (const uint16_t *) x + threadIdx.x;
    float part = 0.0f;
#pragma unroll 8
    for (int i = 0; i < k; i += FT_NORM_PARTIALS) {
        ft_raw_vec<1> bits;
        float value;
        bits.word[0] = own[i];
        ft_unpack_as<dtype, 1>(&value, bits);
        part = fmaf(value, value, part);
    }
    return part;
}

/*
 * Normalize a row into shared memory. Every thread block repeats this: it is mostly memory latency,
 * which loading x has anyway.
 */
template <ft_dtype dtype>
__device__ __forceinline__ void decode_norm(char *x, const ft_cuda_groupwise_norm &norm,
                                            const decode_norm_weights &weight, int k)
{
    __shared__ float m8_tiles[FT_NORM_VECTORS];
    size_t at = threadIdx.x * FT_NORM_VECTOR;
    bool has = (int) at < k;
    ft_raw_vec<FT_NORM_VECTOR> from = {}, residual = {};
    float v[FT_NORM_VECTOR], more[FT_NORM_VECTOR];
    if (has)
        ft_load_raw_as<dtype, FT_NORM_VECTOR>(from, (void *) norm.from, at);
    if (has && norm.residual != NULL)
        ft_load_raw_as<dtype, FT_NORM_VECTOR>(residual, (void *) norm.residual, at);
    ft_unpack_as<dtype, FT_NORM_VECTOR>(v, from);
    ft_unpack_as<dtype, FT_NORM_VECTOR>(more, residual);
#pragma unroll
    for (int i = 0; i < FT_NORM_VECTOR; i++)
        v[i] = norm.residual != NULL ? v[i] + more[i] : v[i];
    if (has)
        ft_store_as<dtype, FT_NORM_VECTOR>(x, at, v); /* v becomes the rounded values that other
                                                       * kernels read */
    __syncthreads();
    float part = threadIdx.x < FT_NORM_PARTIALS ? decode_sum_of_squares<dtype>(x, k) : 0.0f;
    float square = ft_norm_mean(ft_block_sum_parts(part, m8_tiles), norm.cols, norm.inverse_cols);
    float factor = ft_norm_factor(square, norm.eps);
    if (!has)
        return;
    if (norm.sum != NULL && blockIdx.x == 0)
        ft_store_as<dtype, FT_NORM_VECTOR>(norm.sum, at, v);
#pragma unroll
    for (int i = 0; i < FT_NORM_VECTOR; i++)
        v[i] = v[i] * factor * weight.at(i);
    ft_store_as<dtype, FT_NORM_VECTOR>(x, at, v);
}

/* ---- y -------------------------------------------------------------------------------------- */

/* Sums of splits from those of their k tiles; a row per lane. */
template <bool scales_k_tiles>
__device__ __forceinline__ void decode_reduce_k_tiles(char *shared, const decode_params &s,
                                                      const decode_work_range &range, int tokens,
                                                      int warp)
{
    int lane = (int) threadIdx.x % 32, panels = s.fuses_gate ? 2 * range.panels : range.panels;
    const char *scales = shared + s.scales_offset + lane * sizeof(uint16_t);
    const char *sums = shared + s.acc_offset + lane * sizeof(float);
    char *totals = shared + s.totals_offset + lane * sizeof(float);
#pragma unroll 1
    for (int i = warp; i < panels * s.splits; i += DECODE_WARPS) {
        int panel = groupwise_fast_div(i, s.k_tile_splits_magic),
            k_tile = (i - panel * s.splits) * DECODE_K_TILES_PER_SPLIT;
        int first = panel * s.k_tiles + k_tile;
#pragma unroll 1
        for (int token = 0; token < tokens; token++) {
            float total = 0.0f;
#pragma unroll
            for (int j = first; j < first + DECODE_K_TILES_PER_SPLIT; j++) {
                if (k_tile + j - first >= s.k_tiles)
                    break;
                float sum = *(const float *) (sums + (j * tokens + token) * DECODE_ACC_BYTES);
                float scale = 1.0f;
                if (scales_k_tiles)
                    scale = __half2float(*(const __half *) (scales + j * DECODE_SCALE_BYTES));
                total = fmaf(scale, sum, total);
            }
            *(float *) (totals + (i * tokens + token) * DECODE_ACC_BYTES) = total;
        }
    }
}

/* A row of a panel: its splits and bias. */
__device__ __forceinline__ float decode_reduce_splits(const char *totals,
                                                      const ft_cuda_groupwise_linear &part,
                                                      size_t row, int splits, int split_stride)
{
    float total = *(const float *) totals;
#pragma unroll 4
    for (int i = 1; i < splits; i++)
        total += *(const float *) (totals + i * split_stride);
    return part.bias != NULL && row < part.rows ? total + part.bias[row] : total;
}

/* Round to dtype and back, as through memory. */
template <ft_dtype dtype> __device__ __forceinline__ float decode_round(float value)
{
    ft_raw_vec<1> bits;
    bits.word[0] = ft_pack_f16<dtype>(value);
    ft_unpack_as<dtype, 1>(&value, bits);
    return value;
}

/* Store rows of y or of the gate; the gate has the dtype of x. */
template <ft_dtype dtype, decode_output end>
__device__ __forceinline__ void decode_store(const char *shared, const ft_cuda_groupwise_args &p,
                                             const decode_params &s, const decode_work_range &range,
                                             const ft_cuda_groupwise_gate &gate, int warp)
{
    constexpr int n_inputs = end == DECODE_STORE_LINEARS ? 1 : 2;
    int two = (int) p.m - 1, lane = (int) threadIdx.x % 32,
        split_stride = (int) DECODE_ACC_BYTES << two;
    const char *totals = shared + s.totals_offset + lane * sizeof(float);
    size_t rows = p.linear[range.linear].rows;
#pragma unroll 1
    for (int job = warp; job < range.panels << two; job += DECODE_WARPS) {
        int panel = job >> two, token = job & two;
        size_t row = (size_t) (range.first + panel) * GROUPWISE_PANEL_ROWS + lane;
        const char *own = totals + panel * s.splits * split_stride + token * (int) DECODE_ACC_BYTES;
        float value = 0.0f, first = 0.0f;
#pragma unroll 1
        for (int input = 0; input < n_inputs; input++) {
            first = decode_round<dtype>(value);
            value = decode_reduce_splits(own, p.linear[range.linear + input], row, s.splits,
                                         split_stride);
            own += range.panels * s.splits * split_stride;
        }
        if (end != DECODE_STORE_LINEARS)
            value =
                ft_activate(end == DECODE_STORE_SILU_GATE ? FT_ACT_SILU : gate.activation, first) *
                decode_round<dtype>(value);
        if (row >= rows)
            continue;
        if (end == DECODE_STORE_LINEARS)
            ft_store<1>(p.linear[range.linear].y, p.y_dtype, token * rows + row, &value);
        else
            ft_store_as<dtype, 1>(gate.y, token * rows + row, &value);
    }
}

#endif
