/*
 * groupwise_ymm.h - the vector operations shared by the instruction sets with 256-bit vectors; see
 * groupwise_impl.h. The including file defines vi_dot().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_YMM_H
#define FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_YMM_H

#include "kernels/cpu/gemm/groupwise/groupwise.h"
#include "kernels/cpu/base/simd.h"

typedef __m256i vi;
enum { VI_LANES = 8 };

FT_INLINE vi vi_set(int32_t x)
{
    return _mm256_set1_epi32(x);
}

FT_INLINE vi vi_load(const uint32_t *x)
{
    return _mm256_loadu_si256((const __m256i *) x);
}

FT_INLINE vi vi_bytes(const uint8_t *x)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *) x));
}

FT_INLINE vi vi_nibbles(vi w, int high)
{
    return _mm256_and_si256(high ? _mm256_srli_epi32(w, 4) : w, _mm256_set1_epi8(15));
}

FT_INLINE vi vi_mul(vi a, vi b)
{
    return _mm256_mullo_epi32(a, b);
}

FT_INLINE vf vf_from_i32(vi v)
{
    return _mm256_cvtepi32_ps(v);
}

FT_INLINE vi broadcast_quad(const int8_t *x)
{
    int32_t quad;
    memcpy(&quad, x, sizeof quad);
    return _mm256_set1_epi32(quad);
}

#endif
