/*
 * decode_gemv_ends.cuh - prologue and epilogue of decode_gemv.cu: x with an optional norm, y with
 * an optional gate.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_ENDS_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_ENDS_CUH

#include "kernels/cuda/gemm/groupwise/decode_gemv.cuh"
#include "kernels/cuda/rowwise/norm.cuh"

enum {
    STEP_WIDEST = STEP_THREADS * FT_EIGHT /* columns of a norm */
};

/* ---- x -------------------------------------------------------------------------------------- */

/* Copy rows to shared memory. A thread has several loads in flight. */
__device__ __forceinline__ void step_fetch_tokens(char *x, const ft_cuda_blocks &p,
                                                  const step_shape &s)
{
    constexpr int batch = 3;
    int eights = s.k / FT_EIGHT;
#pragma unroll 1
    for (int token = 0; token < (int) p.m; token++) {
        const uint4 *from = (const uint4 *) p.x + (size_t) token * eights;
        uint4 *to = (uint4 *) (x + token * s.x_stride);
#pragma unroll 1
        for (int first = (int) threadIdx.x; first < eights; first += batch * STEP_THREADS) {
            uint4 chunk[batch];
#pragma unroll
            for (int i = 0; i < batch; i++)
                if (first + i * STEP_THREADS < eights)
                    chunk[i] = from[first + i * STEP_THREADS];
#pragma unroll
            for (int i = 0; i < batch; i++)
                if (first + i * STEP_THREADS < eights)
                    to[first + i * STEP_THREADS] = chunk[i];
        }
    }
}

/* A thread's eight norm weights; they do not depend on the predecessor. */
struct step_weights {
    float4 v[2];

    __device__ __forceinline__ void load(const ft_cuda_blocks_norm &norm, int k)
    {
        const float4 *own = (const float4 *) norm.weight + threadIdx.x * 2;
        if ((int) threadIdx.x * FT_EIGHT < k) {
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

/* One part of the sum of squares: elements FT_NORM_PARTS apart, in order. */
template <ft_dtype dtype> __device__ __forceinline__ float step_square(const char *x, int k)
{
    const uint16_t *own = (const uint16_t *) x + threadIdx.x;
    float part = 0.0f;
#pragma unroll 8
    for (int i = 0; i < k; i += FT_NORM_PARTS) {
        ft_bits<1> bits;
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
__device__ __forceinline__ void step_make_norm(char *x, const ft_cuda_blocks_norm &norm,
                                               const step_weights &weight, int k)
{
    __shared__ float eights[FT_NORM_EIGHTS];
    size_t at = threadIdx.x * FT_EIGHT;
    bool has = (int) at < k;
    ft_bits<FT_EIGHT> from = {}, residual = {};
    float v[FT_EIGHT], more[FT_EIGHT];
    if (has)
        ft_fetch_as<dtype, FT_EIGHT>(from, (void *) norm.from, at);
    if (has && norm.residual != NULL)
        ft_fetch_as<dtype, FT_EIGHT>(residual, (void *) norm.residual, at);
    ft_unpack_as<dtype, FT_EIGHT>(v, from);
    ft_unpack_as<dtype, FT_EIGHT>(more, residual);
#pragma unroll
    for (int i = 0; i < FT_EIGHT; i++)
        v[i] = norm.residual != NULL ? v[i] + more[i] : v[i];
    if (has)
        ft_store_as<dtype, FT_EIGHT>(x, at, v); /* v becomes the rounded values that other
                                                 * kernels read */
    __syncthreads();
    float part = threadIdx.x < FT_NORM_PARTS ? step_square<dtype>(x, k) : 0.0f;
    float square = ft_norm_mean(ft_add_parts(part, eights), norm.cols, norm.inverse_cols);
    float factor = ft_norm_factor(square, norm.eps);
    if (!has)
        return;
    if (norm.sum != NULL && blockIdx.x == 0)
        ft_store_as<dtype, FT_EIGHT>(norm.sum, at, v);
#pragma unroll
    for (int i = 0; i < FT_EIGHT; i++)
        v[i] = v[i] * factor * weight.at(i);
    ft_store_as<dtype, FT_EIGHT>(x, at, v);
}

/* ---- y -------------------------------------------------------------------------------------- */

/* Sums of splits from those of their k tiles; a row per lane. */
__device__ __forceinline__ void step_add_runs(char *shared, const step_shape &s,
                                              const step_range &range, int tokens, int warp)
{
    int lane = (int) threadIdx.x % 32, panels = s.gates ? 2 * range.panels : range.panels;
    const char *scales = shared + s.scales_at + lane * sizeof(uint16_t);
    const char *sums = shared + s.sums_at + lane * sizeof(float);
    char *totals = shared + s.totals_at + lane * sizeof(float);
#pragma unroll 1
    for (int i = warp; i < panels * s.stretches; i += STEP_WARPS) {
        int panel = blocks_divide(i, s.per_stretch), run = (i - panel * s.stretches) * STEP_RUNS;
        int first = panel * s.runs + run;
#pragma unroll 1
        for (int token = 0; token < tokens; token++) {
            float total = 0.0f;
#pragma unroll
            for (int j = first; j < first + STEP_RUNS; j++) {
                if (run + j - first >= s.runs)
                    break;
                float scale = __half2float(*(const __half *) (scales + j * STEP_SCALES));
                total =
                    fmaf(scale, *(const float *) (sums + (j * tokens + token) * STEP_SUMS), total);
            }
            *(float *) (totals + (i * tokens + token) * STEP_SUMS) = total;
        }
    }
}

/* A row of a panel: its splits and bias. */
__device__ __forceinline__ float step_total(const char *totals, const ft_cuda_blocks_part &part,
                                            size_t row, int stretches, int apart)
{
    float total = *(const float *) totals;
#pragma unroll 4
    for (int i = 1; i < stretches; i++)
        total += *(const float *) (totals + i * apart);
    return part.bias != NULL && row < part.rows ? total + part.bias[row] : total;
}

/* Round to dtype and back, as through memory. */
template <ft_dtype dtype> __device__ __forceinline__ float step_rounded(float value)
{
    ft_bits<1> bits;
    bits.word[0] = ft_pack_half<dtype>(value);
    ft_unpack_as<dtype, 1>(&value, bits);
    return value;
}

/* Store rows of y or of the gate; the gate has the dtype of x. */
template <ft_dtype dtype, step_end end>
__device__ __forceinline__ void step_write(const char *shared, const ft_cuda_blocks &p,
                                           const step_shape &s, const step_range &range,
                                           const ft_cuda_blocks_gate &gate, int warp)
{
    constexpr int halves = end == STEP_PARTS ? 1 : 2;
    int two = (int) p.m - 1, lane = (int) threadIdx.x % 32, apart = (int) STEP_SUMS << two;
    const char *totals = shared + s.totals_at + lane * sizeof(float);
    size_t rows = p.part[range.part].rows;
#pragma unroll 1
    for (int job = warp; job < range.panels << two; job += STEP_WARPS) {
        int panel = job >> two, token = job & two;
        size_t row = (size_t) (range.first + panel) * BLOCKS_PANEL + lane;
        const char *own = totals + panel * s.stretches * apart + token * (int) STEP_SUMS;
        float value = 0.0f, first = 0.0f;
#pragma unroll 1
        for (int half = 0; half < halves; half++) {
            first = step_rounded<dtype>(value);
            value = step_total(own, p.part[range.part + half], row, s.stretches, apart);
            own += range.panels * s.stretches * apart;
        }
        if (end != STEP_PARTS)
            value = ft_activate(end == STEP_SILU ? FT_ACT_SILU : gate.activation, first) *
                    step_rounded<dtype>(value);
        if (row >= rows)
            continue;
        if (end == STEP_PARTS)
            ft_store<1>(p.part[range.part].y, p.y_dtype, token * rows + row, &value);
        else
            ft_store_as<dtype, 1>(gate.y, token * rows + row, &value);
    }
}

#endif
