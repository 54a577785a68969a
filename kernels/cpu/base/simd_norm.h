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
enum { GROUP = 8 * LANES, GROUPS = FT_NORM_PARTS / GROUP };

#if defined __AVX512F__ && !defined FT_SIMD_SCALAR

/* Adds elements 4 apart in each group of eight: those of a, then those of b. */
FT_INLINE vf add_fours(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

/* Adds elements 2 apart in each group of four: two of a, two of b. */
FT_INLINE vf add_twos(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
}

/* Adds neighbouring elements: two sums of a, two of b. */
FT_INLINE vf add_ones(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}

/*
 * The last four levels of the tree. add_distance_4() has placed the halves of a vector next to each
 * other: elements 1 apart in the tree are 4 apart here.
 */
FT_INLINE float add_last(vf v)
{
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    eight = _mm256_add_ps(eight, _mm256_permute_ps(eight, 0x4e));
    eight = _mm256_add_ps(eight, _mm256_permute_ps(eight, 0xb1));
    return _mm_cvtss_f32(
        _mm_add_ss(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1)));
}

#elif defined __AVX2__ && !defined FT_SIMD_SCALAR

FT_INLINE vf add_fours(vf a, vf b)
{
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

FT_INLINE vf add_twos(vf a, vf b)
{
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
}

FT_INLINE vf add_ones(vf a, vf b)
{
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
}

FT_INLINE float add_last(vf v)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

#else

/* A vector is one partial sum, so the vectors are added as they are. */
FT_INLINE vf add_eights(const vf v[8])
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

FT_INLINE float add_last(vf v)
{
    return v;
}

#endif

#if defined __AVX2__ && !defined FT_SIMD_SCALAR

/* The sums of eight neighbours; reduce_last() knows in which order they lie. */
FT_INLINE vf add_eights(const vf v[8])
{
    vf even = add_twos(add_fours(v[0], v[4]), add_fours(v[1], v[5]));
    vf odd = add_twos(add_fours(v[2], v[6]), add_fours(v[3], v[7]));
    return add_ones(even, odd);
}

#endif

/* partial += x, or (x - mean)^2 */
FT_INLINE void add_group(vf part[8], const float *x, float mean, bool squares)
{
    FT_UNROLL
    for (int i = 0; i < 8; i++) {
        vf value = vf_load(x + i * LANES), distance = value - vf_set(mean);
        if (squares)
            part[i] = vf_fma(distance, distance, part[i]);
        else
            part[i] = part[i] + value;
    }
}

/*
 * The partial sums of one chunk; the row is padded with zeros, or with the mean if squares are
 * summed.
 */
FT_INLINE vf group_sum(const float *x, size_t n, float mean, bool squares)
{
    vf part[8];
    size_t at = 0;
    FT_UNROLL
    for (int i = 0; i < 8; i++)
        part[i] = vf_set(0.0f);
    for (; at + GROUP <= n; at += FT_NORM_PARTS)
        add_group(part, x + at, mean, squares);
    if (at < n) {
        float padded[GROUP];
        for (int i = 0; i < GROUP; i += LANES)
            vf_store(padded + i, vf_set(squares ? mean : 0.0f));
        memcpy(padded, x + at, (n - at) * sizeof *x);
        add_group(part, padded, mean, squares);
    }
    return add_eights(part);
}

FT_INLINE float norm_sum_of(const float *x, size_t n, float mean, bool squares)
{
    vf sum[GROUPS];
    for (size_t i = 0; i < GROUPS; i++)
        sum[i] =
            i * GROUP < n ? group_sum(x + i * GROUP, n - i * GROUP, mean, squares) : vf_set(0.0f);
    for (size_t half = GROUPS / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            sum[i] = sum[i] + sum[i + half];
    return add_last(sum[0]);
}

/* The sum of x. */
FT_INLINE float norm_sum(const float *x, size_t n)
{
    return norm_sum_of(x, n, 0.0f, false);
}

/* The sum of (x - mean)^2. */
FT_INLINE float norm_square_sum(const float *x, size_t n, float mean)
{
    return norm_sum_of(x, n, mean, true);
}

#endif
