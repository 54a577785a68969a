/*
 * gemv_input.cuh - prologue of gemv_fused.cu: quantizes the row in each thread block.
 *
 * Every thread block repeats this. It is mostly the latency of loading the row, which a kernel that
 * reads the quantized row has too, and saves the kernel that would write it. Thread i of 256 holds
 * the elements of partial sum i of a norm (kernels/norm.h), so that they never leave its registers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_GEMV_INPUT_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_GEMV_INPUT_CUH

#include "kernels/cuda/gemm/int8/gemv.cuh"
#include "kernels/cuda/gemm/int8/gemv_fused.h"
#include "kernels/cuda/rowwise/amax.cuh"
#include "kernels/cuda/rowwise/norm.cuh"

enum {
    GEMV_ROW_THREADS = 32 * GEMV_WARPS, /* hold the row */
    GEMV_NORM_MAX_K = 8192,
    GEMV_VALUES_MAX_K = 8192,
    GEMV_PRODUCTS_MAX_K = 16384
};
static_assert((int) GEMV_ROW_THREADS == (int) FT_NORM_PARTIALS, "a thread adds a partial sum");

/* Shared memory of the prologue. */
struct gemv_input_smem {
    float vector_sums[FT_NORM_VECTORS], warp_amax[32];
};

/*
 * A thread's part of the row. All threads call prefetch() before the predecessor has ended, and
 * load(), which returns the amax of the row; GEMV_ROW_THREADS of them write it quantized.
 */
template <ft_gemv_source source, int max_k> struct gemv_row;

template <int max_k> struct gemv_row<FT_GEMV_NORM, max_k> {
    static constexpr int count = max_k / GEMV_ROW_THREADS;
    float value[count], weight[count];

    /* The weights do not depend on the predecessor. */
    __device__ __forceinline__ void prefetch(const ft_gemv_input &from, int k)
    {
#pragma unroll
        for (int i = 0; i < count; i++)
            if (i * GEMV_ROW_THREADS < k)
                weight[i] = from.weight[i * GEMV_ROW_THREADS + threadIdx.x % GEMV_ROW_THREADS];
    }
    __device__ __forceinline__ float load(const ft_gemv_input &from, int k, gemv_input_smem &s)
    {
        bool adds = from.residual != nullptr;
        const float *x = (const float *) from.x + threadIdx.x % GEMV_ROW_THREADS;
        const float *residual = from.residual + threadIdx.x % GEMV_ROW_THREADS;
        float added[count], part = 0.0f, amax = 0.0f;
#pragma unroll
        for (int i = 0; i < count; i++)
            if (i * GEMV_ROW_THREADS < k) {
                value[i] = x[i * GEMV_ROW_THREADS];
                if (adds)
                    added[i] = residual[i * GEMV_ROW_THREADS];
            }
#pragma unroll
        for (int i = 0; i < count; i++)
            if (i * GEMV_ROW_THREADS < k) {
                if (adds)
                    value[i] += added[i];
                if (from.sum != nullptr && blockIdx.x == 0 && threadIdx.x < GEMV_ROW_THREADS)
                    from.sum[i * GEMV_ROW_THREADS + threadIdx.x] = value[i];
                part = fmaf(value[i], value[i], part);
            }
        float cols = (float) k;
        float square = ft_norm_mean(ft_block_sum_parts(part, s.vector_sums), cols, 1.0f / cols);
        float factor = ft_norm_factor(square, from.eps);
#pragma unroll
        for (int i = 0; i < count; i++)
            if (i * GEMV_ROW_THREADS < k) {
                value[i] = value[i] * factor * weight[i];
                amax = ft_amax(amax, value[i]);
            }
        return ft_block_amax(amax, s.warp_amax);
    }
    __device__ __forceinline__ void store(char *to, int k, float inverse) const
    {
#pragma unroll
        for (int i = 0; i < count; i++)
            if (i * GEMV_ROW_THREADS < k)
                to[i * GEMV_ROW_THREADS + threadIdx.x] = (char) ft_quantize_bits(value[i], inverse);
    }
};

/* A row in memory, of which a thread loads vectors of `width` values. */
template <ft_dtype dtype, int width, int max_k> struct gemv_raw_row {
    static constexpr int count = max_k / (width * GEMV_ROW_THREADS);
    ft_raw_vec<width> raw[count];

    static __device__ __forceinline__ int at(int i)
    {
        return width * (i * GEMV_ROW_THREADS + (int) threadIdx.x);
    }
    __device__ __forceinline__ void prefetch(const ft_gemv_input &, int) {}
    __device__ __forceinline__ void load_raw(const ft_gemv_input &from, int k)
    {
#pragma unroll
        for (int i = 0; i < count; i++)
            if (threadIdx.x < GEMV_ROW_THREADS && at(i) < k)
                ft_load_raw_as<dtype, width>(raw[i], (void *) from.x, at(i));
    }
    __device__ __forceinline__ void store(char *to, int k, float inverse) const
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            float value[width];
            ft_unpack_as<dtype, width>(value, raw[i]);
            if (at(i) < k)
                ft_store_quantized_as<FT_I8, width>(to, at(i), value, inverse);
        }
    }
};

template <int max_k> struct gemv_row<FT_GEMV_VALUES, max_k> : gemv_raw_row<FT_F16, 8, max_k> {
    __device__ __forceinline__ float load(const ft_gemv_input &from, int k, gemv_input_smem &s)
    {
        float amax = 0.0f;
#pragma unroll
        for (int i = 0; i < this->count; i++)
            this->raw[i] = {};
        this->load_raw(from, k);
#pragma unroll
        for (int i = 0; i < this->count; i++) {
            float value[8];
            ft_unpack_as<FT_F16, 8>(value, this->raw[i]);
#pragma unroll
            for (int j = 0; j < 8; j++)
                amax = ft_amax(amax, value[j]);
        }
        return ft_block_amax(amax, s.warp_amax);
    }
};

/* Their amax is that of the parts which the thread blocks of the gate found. */
template <int max_k> struct gemv_row<FT_GEMV_PRODUCTS, max_k> : gemv_raw_row<FT_F32, 4, max_k> {
    __device__ __forceinline__ float load(const ft_gemv_input &from, int k, gemv_input_smem &s)
    {
        float amax = (int) threadIdx.x < from.parts ? from.amax[threadIdx.x] : 0.0f;
        this->load_raw(from, k);
        return ft_block_amax(amax, s.warp_amax);
    }
};

#endif
