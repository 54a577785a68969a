/*
 * simd_norm.h - the reductions of a norm in the order of kernels/norm.h, with vectors of any width.
 *
 * Eight vectors hold neighbouring partial sums. Adding vectors pairwise reduces them to one vector,
 * each element of which is the sum of eight neighbours. Every addition fills a whole vector, so 256
 * partial sums take 14 or 28 additions, and only the last 32 numbers are reduced within vectors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BASE_SIMD_NORM_H
#define FT_KERNELS_CPU_BASE_SIMD_NORM_H

#include "kernels/cpu/base/simd.h"
#include "kernels/norm.h"

#include <stdbool.h>
#include <stddef.h>

/* Partial sums in eight vectors, and how many such chunks there are. */
enum { CHUNK = 8 * LANES, CHUNKS = FT_NORM_PARTIALS / CHUNK };

#if defined __AVX512F__ && !defined FT_SIMD_SCALAR

/* Adds elements 4 apart in each group of eight: those of a, then those of b. */
FT_INLINE vf add_distance_4(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

/* Adds elements 2 apart in each group of four: two of a, two of b. */
FT_INLINE vf add_distance_2(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
}

/* Adds neighbouring elements: two sums of a, two of b. */
FT_INLINE vf add_distance_1(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}

/*
 * The last four levels of the tree. add_distance_4() has placed the halves of a vector next to each
 * other: elements 1 apart in the tree are 4 apart here.
 */
FT_INLINE float reduce_last(vf v)
{
    __m256 x8 = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    x8 = _mm256_add_ps(x8, _mm256_permute_ps(x8, 0x4e));
    x8 = _mm256_add_ps(x8, _mm256_permute_ps(x8, 0xb1));
    return _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(x8), _mm256_extractf128_ps(x8, 1)));
}

#elif defined __AVX2__ && !defined FT_SIMD_SCALAR

FT_INLINE vf add_distance_4(vf a, vf b)
{
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

FT_INLINE vf add_distance_2(vf a, vf b)
{
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
}

FT_INLINE vf add_distance_1(vf a, vf b)
{
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
}

FT_INLINE float reduce_last(vf v)
{
    __m128 x4 = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x4 = _mm_add_ps(x4, _mm_movehl_ps(x4, x4));
    return _mm_cvtss_f32(_mm_add_ss(x4, _mm_movehdup_ps(x4)));
}

#elif defined __aarch64__ && !defined FT_SIMD_SCALAR

/* A group of eight neighbours fills two vectors. */
FT_INLINE vf add_distance_4(vf low, vf high)
{
    return low + high;
}

/* Adds elements 2 apart: two sums of a, two of b. */
FT_INLINE vf add_distance_2(vf a, vf b)
{
    return vcombine_f32(vget_low_f32(a), vget_low_f32(b)) +
           vcombine_f32(vget_high_f32(a), vget_high_f32(b));
}

/* The sums of eight neighbours, in order. */
FT_INLINE vf reduce_x8(const vf v[8])
{
    vf low = add_distance_2(add_distance_4(v[0], v[1]), add_distance_4(v[2], v[3]));
    vf high = add_distance_2(add_distance_4(v[4], v[5]), add_distance_4(v[6], v[7]));
    return vpaddq_f32(low, high);
}

FT_INLINE float reduce_last(vf v)
{
    float32x2_t x2 = vget_low_f32(v) + vget_high_f32(v);
    return vget_lane_f32(x2, 0) + vget_lane_f32(x2, 1);
}

#else

/* A vector is one partial sum, so the vectors are added as they are. */
FT_INLINE vf reduce_x8(const vf v[8])
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

FT_INLINE float reduce_last(vf v)
{
    return v;
}

#endif

#if defined __AVX2__ && !defined FT_SIMD_SCALAR

/* The sums of eight neighbours; reduce_last() knows in which order they lie. */
FT_INLINE vf reduce_x8(const vf v[8])
{
    vf even = add_distance_2(add_distance_4(v[0], v[4]), add_distance_4(v[1], v[5]));
    vf odd = add_distance_2(add_distance_4(v[2], v[6]), add_distance_4(v[3], v[7]));
    return add_distance_1(even, odd);
}

#endif

/* partial += x, or (x - mean)^2 */
FT_INLINE void accumulate_chunk(vf partial[8], const float *x, float mean, bool squares)
{
    FT_UNROLL
    for (int i = 0; i < 8; i++) {
        vf value = vf_load(x + i * LANES), delta = value - vf_set(mean);
        if (squares)
            partial[i] = vf_fma(delta, delta, partial[i]);
        else
            partial[i] = partial[i] + value;
    }
}

/*
 * The partial sums of one chunk; the row is padded with zeros, or with the mean if squares are
 * summed.
 */
FT_INLINE vf chunk_sum(const float *x, size_t n, float mean, bool squares)
{
    vf partial[8];
    size_t offset = 0;
    FT_UNROLL
    for (int i = 0; i < 8; i++)
        partial[i] = vf_set(0.0f);
    for (; offset + CHUNK <= n; offset += FT_NORM_PARTIALS)
        accumulate_chunk(partial, x + offset, mean, squares);
    if (offset < n) {
        float padded[CHUNK];
        for (int i = 0; i < CHUNK; i += LANES)
            vf_store(padded + i, vf_set(squares ? mean : 0.0f));
        memcpy(padded, x + offset, (n - offset) * sizeof *x);
        accumulate_chunk(partial, padded, mean, squares);
    }
    return reduce_x8(partial);
}

FT_INLINE float norm_reduce(const float *x, size_t n, float mean, bool squares)
{
    vf sum[CHUNKS];
    for (size_t i = 0; i < CHUNKS; i++)
        sum[i] =
            i * CHUNK < n ? chunk_sum(x + i * CHUNK, n - i * CHUNK, mean, squares) : vf_set(0.0f);
    for (size_t distance = CHUNKS / 2; distance > 0; distance /= 2)
        for (size_t i = 0; i < distance; i++)
            sum[i] = sum[i] + sum[i + distance];
    return reduce_last(sum[0]);
}

/* The sum of x. */
FT_INLINE float norm_sum(const float *x, size_t n)
{
    return norm_reduce(x, n, 0.0f, false);
}

/* The sum of (x - mean)^2. */
FT_INLINE float norm_square_sum(const float *x, size_t n, float mean)
{
    return norm_reduce(x, n, mean, true);
}

#endif
