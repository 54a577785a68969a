/*
 * groupwise_int8.cuh - int8 activations with group-wise quantized weights: data layout and
 * unpacking of weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_INT8_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_INT8_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"
#include "kernels/cuda/gemm/groupwise/groupwise_tiles.h"
#include "kernels/cuda/gemm/groupwise/int8_x_term.h"

/*
 * int32 accumulators of 32 rows and eight tokens, in the layout of groupwise_acc. Accumulators that
 * start at the bits of the float 1.5 * 2^23 convert integers below 2^22 to float with one
 * subtraction. Sums of small groups stay below that limit: at most 64 * 255 * 255 with 8-bit
 * weights and 128 * 255 * 15 with 4-bit weights.
 */
typedef int32_t int8_acc[2][4];
enum { INT8_FLOAT_MAGIC = 0x4b400000 };

template <int bits> __device__ __forceinline__ constexpr bool int8_is_small(int group)
{
    return group <= (bits == 4 ? 128 : 64);
}

__device__ __forceinline__ constexpr int32_t int8_begin_sum(bool small)
{
    return small ? INT8_FLOAT_MAGIC : 0;
}

__device__ __forceinline__ float int8_sum_to_float(int32_t exact, bool small)
{
    return small ? __uint_as_float((uint32_t) exact) - 12582912.0f : (float) exact;
}

template <int n> __device__ __forceinline__ void int8_begin_sums(int8_acc (&sum)[n], bool small)
{
#pragma unroll
    for (int i = 0; i < n * 8; i++)
        sum[i / 8][i / 4 % 2][i % 4] = int8_begin_sum(small);
}

/*
 * Sums of the lane's four rows of weights: products with eight tokens of ones, which are all equal.
 */
struct int8_weight_sums {
    int8_acc sum;

    __device__ __forceinline__ int8_weight_sums()
    {
        reset();
    }
    __device__ __forceinline__ void reset()
    {
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[i / 4][i % 4] = 0;
    }
    __device__ __forceinline__ void add(const uint32_t (&a)[2][4])
    {
#pragma unroll
        for (int i = 0; i < 2; i++)
            ft_mma_i8(sum[i], a[i], 0x01010101, 0x01010101);
    }
    __device__ __forceinline__ int32_t operator[](int row) const
    {
        return sum[row / 2][row % 2 * 2];
    }
};

/* The parameters of a group from the maxima of some lanes: `lanes` neighbours, a power of two. */
__device__ __forceinline__ ft_groupwise_x_params int8_reduce_params(int32_t high, int32_t minus_low,
                                                                    int lanes)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    if (lanes == 32)
        return ft_groupwise_x_params_of(__int_as_float(__reduce_max_sync(~0u, high)),
                                        __int_as_float(__reduce_max_sync(~0u, minus_low)));
#endif
    for (int lane_distance = lanes / 2; lane_distance > 0; lane_distance /= 2) {
        high = max(high, __shfl_xor_sync(~0u, high, lane_distance));
        minus_low = max(minus_low, __shfl_xor_sync(~0u, minus_low, lane_distance));
    }
    return ft_groupwise_x_params_of(__int_as_float(high), __int_as_float(minus_low));
}

__device__ __forceinline__ int32_t int8_quantize(float x, const ft_groupwise_x_params &params)
{
    return (int32_t) ft_groupwise_quantize_to_float(x, &params);
}

/* Position of a column among its 32, in the order of the mma fragments. */
template <int bits> __device__ __forceinline__ int int8_k_position(int column)
{
    int t = column % 8 / 2, odd = column % 2, m8_tile = column / 8;
    return bits == 4 ? m8_tile % 2 * 16 + 4 * t + 2 * odd + m8_tile / 2
                     : m8_tile / 2 * 16 + 4 * t + m8_tile % 2 * 2 + odd;
}

/* A fragments from the lane's packed weights of 32 columns. */
template <int bits>
__device__ __forceinline__ void int8_unpack_weights(uint32_t (&a)[2][4],
                                                    const uint4 (&block)[bits / 4])
{
    const uint32_t word[4] = { block[0].x, block[0].y, block[0].z, block[0].w };
    const uint4 &next = block[bits / 4 - 1];
    const uint32_t more[4] = { next.x, next.y, next.z, next.w };
#pragma unroll
    for (int i = 0; i < 4; i++)
        if constexpr (bits == 4) {
            a[i / 2][i % 2] = word[i] & 0x0f0f0f0f;
            a[i / 2][i % 2 + 2] = word[i] >> 4 & 0x0f0f0f0f;
        } else {
            a[i / 2][i % 2] = word[i] ^ 0x80808080;
            a[i / 2][i % 2 + 2] = more[i] ^ 0x80808080;
        }
}

/* Zero point of a row relative to the values of int8_unpack_weights(). */
template <int bits> __device__ __forceinline__ int32_t int8_zero_point(uint32_t zeros, int row)
{
    return (int32_t) (zeros >> 8 * row & 0xff) - (bits == 4 ? 0 : 128);
}

/* Few tokens, and group sizes that divide a k tile: groupwise_int8_small_m.cu. */
bool ft_cuda_groupwise_int8_small_m_supports(const ft_cuda_device_props *props,
                                             const ft_cuda_groupwise_args *p);
size_t ft_cuda_groupwise_int8_small_m_scratch(size_t m, size_t k);
int ft_cuda_groupwise_int8_small_m(const ft_cuda_device_props *props, void *stream,
                                   const ft_cuda_groupwise_args *p);

/* Up to 16 tokens whose int8 values fit into shared memory: groupwise_int8_resident.cu. */
bool ft_cuda_groupwise_int8_resident_supports(const ft_cuda_device_props *props,
                                              const ft_cuda_groupwise_args *p);
int ft_cuda_groupwise_int8_resident(const ft_cuda_device_props *props, void *stream,
                                    const ft_cuda_groupwise_args *p);

/* groupwise_int8_wgmma.cu, for its tiles. */
bool ft_cuda_groupwise_int8_wgmma_supports(const ft_cuda_device_props *props,
                                           const ft_cuda_groupwise_args *p);
size_t ft_cuda_groupwise_int8_wgmma_scratch(size_t m, size_t k);
ft_cuda_groupwise_int8_tile ft_cuda_groupwise_int8_wgmma_select(const ft_cuda_device_props *props,
                                                                const ft_cuda_groupwise_args *p,
                                                                double *ns); /* its estimate */
int ft_cuda_groupwise_int8_wgmma(ft_cuda_groupwise_int8_tile tile,
                                 const ft_cuda_device_props *props, void *stream,
                                 const ft_cuda_groupwise_args *p);

#endif
