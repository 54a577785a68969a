/*
 * simd.h - a portable vector of floats, as wide as the file is compiled for.
 *
 * Files of one instruction set include this header and write their arithmetic once. All operations
 * are exact per element, so a result never depends on the vector width. Define FT_SIMD_SCALAR
 * before including it to get one-element vectors on any target.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BASE_SIMD_H
#define FT_KERNELS_CPU_BASE_SIMD_H

#include "kernels/half.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Without UBSan: clang takes minutes to instrument every access of unrolled code. */
#define FT_INLINE static inline __attribute__((always_inline, no_sanitize("undefined")))

/* A loop over registers must be fully unrolled, or the registers are spilled to memory. */
#if defined __clang__
#define FT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FT_UNROLL _Pragma("GCC unroll 32")
#endif

/*
 * vf_min and vf_max return the second argument if one is NaN. vf_ldexp(p, n) is p * 2^n for an
 * integer n and a normal result. vf_load_f16(x), vf_load_bf16(x), vf_load_i8(x) and vf_load_i32(x)
 * load LANES numbers of another type and convert them to float. vf_store_f16(y, v) rounds to LANES
 * F16, half to even. vf_reduce_max(v) and vf_reduce_add(v) reduce VF_REDUCE_WIDTH numbers, however
 * many vectors they fill; the sum adds elements at distance 8, then 4, 2, 1. vf_store_i8(y, v)
 * rounds four vectors of values in [-127, 127] half to even and stores 4 LANES bytes.
 * vf_transpose(v) transposes a square of LANES vectors in place.
 */
enum { VF_REDUCE_WIDTH = 16 };

#if defined __AVX512F__ && !defined FT_SIMD_SCALAR

#include <immintrin.h>

enum { LANES = 16 };
typedef __m512 vf;

FT_INLINE vf vf_load(const float *from)
{
    return _mm512_loadu_ps(from);
}

FT_INLINE vf vf_load_i32(const int32_t *from)
{
    return _mm512_cvtepi32_ps(_mm512_loadu_si512(from));
}

FT_INLINE vf vf_load_f16(const uint16_t *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) from));
}

FT_INLINE vf vf_load_bf16(const uint16_t *from)
{
    __m512i widened = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *) from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(widened, 16));
}

FT_INLINE vf vf_load_i8(const int8_t *from)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *) from)));
}

FT_INLINE void vf_store(float *to, vf v)
{
    _mm512_storeu_ps(to, v);
}

FT_INLINE vf vf_set(float value)
{
    return _mm512_set1_ps(value);
}

FT_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

FT_INLINE vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

FT_INLINE vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

FT_INLINE vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

FT_INLINE vf vf_rint(vf v)
{
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

FT_INLINE vf vf_ldexp(vf p, vf n)
{
    __m512i exponent = _mm512_slli_epi32(_mm512_cvtps_epi32(n), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), exponent));
}

FT_INLINE void vf_store_f16(uint16_t *to, vf v)
{
    _mm256_storeu_si256((__m256i *) to, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

FT_INLINE void vf_store_i8(int8_t *to, const vf v[4])
{
    const __m512i unpack_order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i low = _mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1]));
    __m512i high = _mm512_packs_epi32(_mm512_cvtps_epi32(v[2]), _mm512_cvtps_epi32(v[3]));
    __m512i packed = _mm512_packs_epi16(low, high);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi32(unpack_order, packed));
}

FT_INLINE float vf_reduce_max(const vf v[1])
{
    __m256 x8 = _mm256_max_ps(_mm512_castps512_ps256(v[0]), _mm512_extractf32x8_ps(v[0], 1));
    __m128 x4 = _mm_max_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    x4 = _mm_max_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_max_ss(x4, _mm_movehdup_ps(x4)));
}

FT_INLINE float vf_reduce_add(const vf v[1])
{
    __m256 x8 = _mm256_add_ps(_mm512_castps512_ps256(v[0]), _mm512_extractf32x8_ps(v[0], 1));
    __m128 x4 = _mm_add_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    x4 = _mm_add_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_add_ss(x4, _mm_movehdup_ps(x4)));
}

/* vf_reduce_add() of four vectors at once, with half the operations. */
FT_INLINE void vf_reduce_add_x4(float to[4], vf a, vf b, vf c, vf d)
{
    vf ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    vf cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    vf all = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    all = _mm512_add_ps(all, _mm512_permute_ps(all, 0x4e));
    all = _mm512_add_ps(all, _mm512_permute_ps(all, 0xb1));
    const __m512i lane0 = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm_storeu_ps(to, _mm512_castps512_ps128(_mm512_permutexvar_ps(lane0, all)));
}

/* Transposes the four 4 x 4 squares of the 128-bit lanes of four vectors. */
FT_INLINE void vf_transpose_lanes(vf v[4])
{
    __m512d ab_low = _mm512_castps_pd(_mm512_unpacklo_ps(v[0], v[1]));
    __m512d ab_high = _mm512_castps_pd(_mm512_unpackhi_ps(v[0], v[1]));
    __m512d cd_low = _mm512_castps_pd(_mm512_unpacklo_ps(v[2], v[3]));
    __m512d cd_high = _mm512_castps_pd(_mm512_unpackhi_ps(v[2], v[3]));
    v[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_low, cd_low));
    v[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_low, cd_low));
    v[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, cd_high));
    v[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, cd_high));
}

FT_INLINE void vf_transpose(vf v[16])
{
    FT_UNROLL
    for (int i = 0; i < 4; i++)
        vf_transpose_lanes(v + 4 * i);
    FT_UNROLL
    for (int i = 0; i < 4; i++) {
        vf ab_even = _mm512_shuffle_f32x4(v[i], v[i + 4], 0x88);
        vf ab_odd = _mm512_shuffle_f32x4(v[i], v[i + 4], 0xdd);
        vf cd_even = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0x88);
        vf cd_odd = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0xdd);
        v[i] = _mm512_shuffle_f32x4(ab_even, cd_even, 0x88);
        v[i + 4] = _mm512_shuffle_f32x4(ab_odd, cd_odd, 0x88);
        v[i + 8] = _mm512_shuffle_f32x4(ab_even, cd_even, 0xdd);
        v[i + 12] = _mm512_shuffle_f32x4(ab_odd, cd_odd, 0xdd);
    }
}

#elif defined __AVX2__ && !defined FT_SIMD_SCALAR

#include <immintrin.h>

enum { LANES = 8 };
typedef __m256 vf;

FT_INLINE vf vf_load(const float *from)
{
    return _mm256_loadu_ps(from);
}

FT_INLINE vf vf_load_i32(const int32_t *from)
{
    return _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *) from));
}

FT_INLINE vf vf_load_f16(const uint16_t *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) from));
}

FT_INLINE vf vf_load_bf16(const uint16_t *from)
{
    __m256i widened = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *) from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(widened, 16));
}

FT_INLINE vf vf_load_i8(const int8_t *from)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *) from)));
}

FT_INLINE void vf_store(float *to, vf v)
{
    _mm256_storeu_ps(to, v);
}

FT_INLINE vf vf_set(float value)
{
    return _mm256_set1_ps(value);
}

FT_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

FT_INLINE vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

FT_INLINE vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

FT_INLINE vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

FT_INLINE vf vf_rint(vf v)
{
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

FT_INLINE vf vf_ldexp(vf p, vf n)
{
    __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
}

FT_INLINE void vf_store_f16(uint16_t *to, vf v)
{
    _mm_storeu_si128((__m128i *) to, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

FT_INLINE void vf_store_i8(int8_t *to, const vf v[4])
{
    const __m256i unpack_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i low = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]));
    __m256i high = _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3]));
    __m256i packed = _mm256_packs_epi16(low, high);
    _mm256_storeu_si256((__m256i *) to, _mm256_permutevar8x32_epi32(packed, unpack_order));
}

FT_INLINE float vf_reduce_max(const vf v[2])
{
    __m256 x8 = _mm256_max_ps(v[0], v[1]);
    __m128 x4 = _mm_max_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    x4 = _mm_max_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_max_ss(x4, _mm_movehdup_ps(x4)));
}

FT_INLINE float vf_reduce_add(const vf v[2])
{
    __m256 x8 = _mm256_add_ps(v[0], v[1]);
    __m128 x4 = _mm_add_ps(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1));
    x4 = _mm_add_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_add_ss(x4, _mm_movehdup_ps(x4)));
}

/* vf_reduce_add() of two sums at once. */
FT_INLINE void vf_reduce_add_x2(float to[2], const vf a[2], const vf b[2])
{
    __m256 a8 = _mm256_add_ps(a[0], a[1]), b8 = _mm256_add_ps(b[0], b[1]);
    __m256 both =
        _mm256_add_ps(_mm256_permute2f128_ps(a8, b8, 0x20), _mm256_permute2f128_ps(a8, b8, 0x31));
    both = _mm256_add_ps(both, _mm256_permute_ps(both, 0x4e));
    both = _mm256_add_ps(both, _mm256_permute_ps(both, 0xb1));
    to[0] = _mm_cvtss_f32(_mm256_castps256_ps128(both));
    to[1] = _mm_cvtss_f32(_mm256_extractf128_ps(both, 1));
}

/* Transposes the two 4 x 4 squares of the 128-bit lanes of four vectors. */
FT_INLINE void vf_transpose_lanes(vf v[4])
{
    __m256d ab_low = _mm256_castps_pd(_mm256_unpacklo_ps(v[0], v[1]));
    __m256d ab_high = _mm256_castps_pd(_mm256_unpackhi_ps(v[0], v[1]));
    __m256d cd_low = _mm256_castps_pd(_mm256_unpacklo_ps(v[2], v[3]));
    __m256d cd_high = _mm256_castps_pd(_mm256_unpackhi_ps(v[2], v[3]));
    v[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab_low, cd_low));
    v[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab_low, cd_low));
    v[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab_high, cd_high));
    v[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab_high, cd_high));
}

FT_INLINE void vf_transpose(vf v[8])
{
    vf_transpose_lanes(v);
    vf_transpose_lanes(v + 4);
    FT_UNROLL
    for (int i = 0; i < 4; i++) {
        vf low = _mm256_permute2f128_ps(v[i], v[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(v[i], v[i + 4], 0x31);
        v[i] = low;
    }
}

#elif defined __aarch64__ && !defined FT_SIMD_SCALAR

#include "kernels/cpu/base/simd_neon.h"

#else

enum { LANES = 1 };
typedef float vf;

FT_INLINE vf vf_load(const float *from)
{
    return *from;
}

FT_INLINE vf vf_load_i32(const int32_t *from)
{
    return (float) *from;
}

FT_INLINE vf vf_load_f16(const uint16_t *from)
{
    return ft_float_from_f16(*from);
}

FT_INLINE vf vf_load_bf16(const uint16_t *from)
{
    return ft_float_from_bf16(*from);
}

FT_INLINE vf vf_load_i8(const int8_t *from)
{
    return (float) *from;
}

FT_INLINE void vf_store(float *to, vf v)
{
    *to = v;
}

FT_INLINE vf vf_set(float value)
{
    return value;
}

/*
 * fmaf() without a call where the processor has no such instruction. The product of two floats is
 * exact in double. The sum rounded to double and then to float is the sum rounded once, unless it
 * lies on the midpoint of two floats, or is a subnormal float.
 */
FT_INLINE vf vf_fma(vf a, vf b, vf c)
{
#ifdef __FP_FAST_FMAF
    return fmaf(a, b, c);
#else
    double sum = (double) a * (double) b + (double) c;
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    bool is_midpoint = (bits & 0x1fffffff) == 0x10000000;
    bool is_subnormal = fabs(sum) < (double) FLT_MIN && sum != 0.0;
    return is_midpoint || is_subnormal ? fmaf(a, b, c) : (float) sum;
#endif
}

FT_INLINE vf vf_add(vf a, vf b)
{
    return a + b;
}

FT_INLINE vf vf_min(vf a, vf b)
{
    return a < b ? a : b;
}

FT_INLINE vf vf_max(vf a, vf b)
{
    return a > b ? a : b;
}

FT_INLINE vf vf_rint(vf v)
{
    return rintf(v);
}

FT_INLINE vf vf_ldexp(vf p, vf n)
{
    uint32_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits += (uint32_t) (int32_t) n << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}

FT_INLINE void vf_store_f16(uint16_t *to, vf v)
{
    *to = ft_f16_from_float(v);
}

FT_INLINE void vf_store_i8(int8_t *to, const vf v[4])
{
    for (int i = 0; i < 4; i++)
        to[i] = (int8_t) rintf(v[i]);
}

FT_INLINE float vf_reduce_max(const vf v[VF_REDUCE_WIDTH])
{
    float max = v[0];
    for (int i = 1; i < VF_REDUCE_WIDTH; i++)
        max = vf_max(max, v[i]);
    return max;
}

FT_INLINE float vf_reduce_add(const vf v[VF_REDUCE_WIDTH])
{
    float partial[VF_REDUCE_WIDTH / 2];
    for (int i = 0; i < VF_REDUCE_WIDTH / 2; i++)
        partial[i] = v[i] + v[i + VF_REDUCE_WIDTH / 2];
    for (int distance = VF_REDUCE_WIDTH / 4; distance > 0; distance /= 2)
        for (int i = 0; i < distance; i++)
            partial[i] += partial[i + distance];
    return partial[0];
}

FT_INLINE void vf_transpose(vf v[1])
{
    (void) v;
}

#endif
#endif
