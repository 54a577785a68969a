/*
 * rows.cuh - vectorized loads and stores of any dtype for row-wise kernels.
 *
 * Arithmetic is in float: narrower types are converted on load and rounded half to even on store,
 * so an operation has one kernel instead of one per pair of dtypes. The switch over dtypes is
 * uniform across threads. Loading has two steps: ft_load_raw() only issues the load, ft_unpack()
 * waits for it. (With both in one switch every load waited for the previous one, and pooling F16
 * took six times longer.)
 *
 * Pointers to activations are neither const nor __restrict__: with both, the compiler may use the
 * read-only cache and hoist the load above ft_pdl_wait().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ROWS_CUH
#define FT_KERNELS_CUDA_ROWS_CUH

#include "kernels/activation.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/epilogue.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* N raw elements: N = 8 or 4 neighbours, the first at an index that is a multiple of N, or 1. */
template <int N> struct alignas(4 * N) ft_raw_vec {
    uint32_t word[N];
};

/* Address of element `at`. */
template <typename T> __device__ __forceinline__ T *ft_element(void *data, size_t at)
{
    return (T *) data + at;
}

/* ---- Loads --------------------------------------------------------------------------------- */

template <ft_dtype dtype, int N>
__device__ __forceinline__ void ft_load_raw_as(ft_raw_vec<N> &bits, void *data, size_t at)
{
    if constexpr (dtype == FT_F32)
        bits = *(ft_raw_vec<N> *) ft_element<uint32_t>(data, at);
    else if constexpr (N == 1 && dtype == FT_I8)
        bits.word[0] = *ft_element<uint8_t>(data, at);
    else if constexpr (N == 1)
        bits.word[0] = *ft_element<uint16_t>(data, at);
    else if constexpr (dtype == FT_I8)
        *(ft_raw_vec<N / 4> *) bits.word = *(ft_raw_vec<N / 4> *) ft_element<uint8_t>(data, at);
    else
        *(ft_raw_vec<N / 2> *) bits.word = *(ft_raw_vec<N / 2> *) ft_element<uint16_t>(data, at);
}

template <int N>
__device__ __forceinline__ void ft_load_raw(ft_raw_vec<N> &bits, void *data, ft_dtype dtype,
                                            size_t at)
{
    switch (dtype) {
    case FT_F16:
    case FT_BF16:
        return ft_load_raw_as<FT_F16, N>(bits, data, at);
    case FT_I8:
        return ft_load_raw_as<FT_I8, N>(bits, data, at);
    default:
        return ft_load_raw_as<FT_F32, N>(bits, data, at);
    }
}

/*
 * An int8 value plus 128 in the lowest byte of the float 2^23 is the float 2^23 + value + 128. This
 * avoids int-to-float conversions, of which an SM issues only 16 per cycle.
 */
__device__ __forceinline__ float ft_unpack_i8(uint32_t word, int i)
{
    return __uint_as_float(__byte_perm(word ^ 0x80808080, 0x4b000000, 0x7440 + i)) - 8388736.0f;
}

template <ft_dtype dtype, int N>
__device__ __forceinline__ void ft_unpack_as(float v[N], const ft_raw_vec<N> &bits)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        uint32_t raw = bits.word[i / 2] >> 16 * (i % 2);
        if constexpr (dtype == FT_F16)
            v[i] = __half2float(__ushort_as_half((unsigned short) raw));
        else if constexpr (dtype == FT_BF16)
            v[i] = __uint_as_float(raw << 16);
        else if constexpr (dtype == FT_I8)
            v[i] = ft_unpack_i8(bits.word[i / 4], i % 4);
        else
            v[i] = __uint_as_float(bits.word[i]);
    }
}

template <int N>
__device__ __forceinline__ void ft_unpack(float v[N], const ft_raw_vec<N> &bits, ft_dtype dtype)
{
    switch (dtype) {
    case FT_F16:
        return ft_unpack_as<FT_F16, N>(v, bits);
    case FT_BF16:
        return ft_unpack_as<FT_BF16, N>(v, bits);
    case FT_I8:
        return ft_unpack_as<FT_I8, N>(v, bits);
    default:
        return ft_unpack_as<FT_F32, N>(v, bits);
    }
}

template <int N>
__device__ __forceinline__ void ft_load(float v[N], void *data, ft_dtype dtype, size_t at)
{
    ft_raw_vec<N> bits;
    ft_load_raw(bits, data, dtype, at);
    ft_unpack(v, bits, dtype);
}

/* ---- Stores -------------------------------------------------------------------------------- */

/* One f16 or bf16 value in the low half of a word, or a pair of them. */
template <ft_dtype dtype> __device__ __forceinline__ uint32_t ft_pack_f16(float value)
{
    if constexpr (dtype == FT_F16)
        return __half_as_ushort(__float2half_rn(value));
    else
        return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

template <ft_dtype dtype> __device__ __forceinline__ uint32_t ft_pack_f16x2(float low, float high)
{
    if constexpr (dtype == FT_F16) {
        __half2 pair = __floats2half2_rn(low, high);
        return *(uint32_t *) &pair;
    } else {
        __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        return *(uint32_t *) &pair;
    }
}

/* Store floats; v is replaced by the rounded values. */
template <ft_dtype dtype, int N>
__device__ __forceinline__ void ft_store_as(void *data, size_t at, float v[N])
{
    ft_raw_vec<N> bits;
    if constexpr (dtype == FT_F32) {
#pragma unroll
        for (int i = 0; i < N; i++)
            bits.word[i] = __float_as_uint(v[i]);
        *(ft_raw_vec<N> *) ft_element<float>(data, at) = bits;
    } else if constexpr (N == 1) {
        bits.word[0] = ft_pack_f16<dtype>(v[0]);
        *ft_element<uint16_t>(data, at) = (uint16_t) bits.word[0];
        ft_unpack_as<dtype, N>(v, bits);
    } else {
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            bits.word[i] = ft_pack_f16x2<dtype>(v[2 * i], v[2 * i + 1]);
        *(ft_raw_vec<N / 2> *) ft_element<uint16_t>(data, at) = *(ft_raw_vec<N / 2> *) bits.word;
        ft_unpack_as<dtype, N>(v, bits);
    }
}

template <int N>
__device__ __forceinline__ void ft_store(void *data, ft_dtype dtype, size_t at, float v[N])
{
    switch (dtype) {
    case FT_F16:
        return ft_store_as<FT_F16, N>(data, at, v);
    case FT_BF16:
        return ft_store_as<FT_BF16, N>(data, at, v);
    default:
        return ft_store_as<FT_F32, N>(data, at, v);
    }
}

/* Quantize and store, as int8 or as integers in float. */
template <ft_dtype dtype, int N>
__device__ __forceinline__ void ft_store_quantized_as(void *data, size_t at, const float v[N],
                                                      float inverse)
{
    if constexpr (dtype != FT_I8) {
        float quantized[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            quantized[i] = ft_quantize_to_float(v[i], inverse);
        ft_store_as<FT_F32, N>(data, at, quantized);
    } else if constexpr (N == 1) {
        *ft_element<int8_t>(data, at) = ft_quantize(v[0], inverse);
    } else {
        ft_raw_vec<N / 4> bits;
#pragma unroll
        for (int i = 0; i < N; i += 4)
            bits.word[i / 4] = ft_pack_i8x4(
                ft_quantize_bits(v[i], inverse), ft_quantize_bits(v[i + 1], inverse),
                ft_quantize_bits(v[i + 2], inverse), ft_quantize_bits(v[i + 3], inverse));
        *(ft_raw_vec<N / 4> *) ft_element<int8_t>(data, at) = bits;
    }
}

template <int N>
__device__ __forceinline__ void ft_store_quantized(void *data, ft_dtype dtype, size_t at,
                                                   const float v[N], float inverse)
{
    if (dtype == FT_I8)
        ft_store_quantized_as<FT_I8, N>(data, at, v, inverse);
    else
        ft_store_quantized_as<FT_F32, N>(data, at, v, inverse);
}

/* ---- Activations ---------------------------------------------------------------------------- */

template <ft_activation activation, int N>
__device__ __forceinline__ void ft_activate_vec_as(float v[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = ft_activate(activation, v[i]);
}

/*
 * ft_silu() of N values. An IEEE division checks for each quotient whether the fast path is exact,
 * and branches. Here it always is, except for large values and NaN; so one check covers all N
 * values, and below 80 the exponential needs no clamping. (Verified equal to ft_silu() for all 2^32
 * floats.)
 */
template <int N> __device__ __forceinline__ void ft_silu_vec(float v[N])
{
    bool in_range = true;
#pragma unroll
    for (int i = 0; i < N; i++)
        in_range &= fabsf(v[i]) < 80.0f;
    if (!in_range)
        return ft_activate_vec_as<FT_ACT_SILU, N>(v);
#pragma unroll
    for (int i = 0; i < N; i++) {
        float divisor = ft_exp_bounded(-v[i]) + 1.0f, inverse;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(divisor));
        inverse = fmaf(fmaf(-divisor, inverse, 1.0f), inverse, inverse);
        float quotient = v[i] * inverse;
        float residue = fmaf(divisor, quotient, -v[i]); /* +0 where exact: keeps -0 */
        v[i] = fmaf(-residue, inverse, quotient);
    }
}

/* ft_activate() of N values with a single switch. */
template <int N>
__device__ __forceinline__ void ft_activate_vec(ft_activation activation, float v[N])
{
    switch (activation) {
    case FT_ACT_NONE:
        break;
    case FT_ACT_GELU:
        return ft_activate_vec_as<FT_ACT_GELU, N>(v);
    case FT_ACT_GELU_APPROX:
        return ft_activate_vec_as<FT_ACT_GELU_APPROX, N>(v);
    case FT_ACT_GELU_TANH:
        return ft_activate_vec_as<FT_ACT_GELU_TANH, N>(v);
    case FT_ACT_RELU:
        return ft_activate_vec_as<FT_ACT_RELU, N>(v);
    case FT_ACT_TANH:
        return ft_activate_vec_as<FT_ACT_TANH, N>(v);
    case FT_ACT_SILU:
        return ft_silu_vec<N>(v);
    }
}

#endif
