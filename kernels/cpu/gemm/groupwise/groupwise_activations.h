/*
 * groupwise_activations.h - quantizes x to one or three digits of one byte, in the order of quads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_ACTIVATIONS_H
#define FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_ACTIVATIONS_H

#include "kernels/cpu/gemm/groupwise/groupwise.h"
#include "kernels/cpu/base/simd.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

/*
 * order_k_block(to, values, digits, bits) stores the lowest bytes of 32 integers, digit by digit
 * from the highest on, each in the order of quads: byte i of a digit is that of column
 * quad_column(i, bits). sum_k_block(x) is the sum of 32 bytes.
 */
FT_INLINE size_t quad_column(size_t i, int bits)
{
    if (bits == 8) /* a quad is a word: columns 2t, 2t + 1, 2t + 8, 2t + 9 */
        return i / 16 * 16 + i % 4 / 2 * 8 + i % 16 / 4 * 2 + i % 2;
    return i / 8 * 2 + i / 4 % 2 * 8 + i / 2 % 2 + i % 2 * 16; /* every other nibble of a word */
}

#if defined __AVX512VBMI__ && !defined FT_SIMD_SCALAR

/* Byte positions of one or two digits within 32 integers. */
FT_INLINE void set_places(uint8_t place[64], size_t first, size_t planes, int bits)
{
    for (size_t i = 0; i < 64; i++)
        place[i] = (uint8_t) (4 * quad_column(i % 32, bits) + (planes - 1 - first - i / 32) % 4);
}

FT_INLINE void order_span(int8_t *to, const int32_t whole[FT_PANEL_SPAN], size_t planes, int bits)
{
    __m512i low = _mm512_loadu_si512(whole), high = _mm512_loadu_si512(whole + 16);
    uint8_t place[64];
    if (planes == 3) {
        set_places(place, 0, planes, bits);
        _mm512_storeu_si512(to, _mm512_permutex2var_epi8(low, _mm512_loadu_si512(place), high));
        to += 64;
    }
    set_places(place, planes - 1, planes, bits);
    __m512i last = _mm512_permutex2var_epi8(low, _mm512_loadu_si512(place), high);
    _mm256_storeu_si256((__m256i *) to, _mm512_castsi512_si256(last));
}

#elif defined __AVX2__ && !defined FT_SIMD_SCALAR

/*
 * Reorders columns 0 .. 3, 8 .. 11, 16 .. 19, 24 .. 27, and those 4 further in the other half, into
 * quads.
 */
FT_INLINE __m256i order_plane(__m256i plane, int bits)
{
    const __m256i words = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
    const __m256i nibbles = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 8, 1, 9, 4, 12, 5, 13, 2, 10, 3, 11, 6, 14, 7, 15));
    return bits == 8 ? _mm256_shuffle_epi8(_mm256_permute4x64_epi64(plane, 0xd8), words)
                     : _mm256_shuffle_epi8(plane, nibbles);
}

FT_INLINE void order_span(int8_t *to, const int32_t whole[FT_PANEL_SPAN], size_t planes, int bits)
{
    const __m256i by_plane = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12, 3, 7, 11, 15));
    __m256i
        four[4]; /* each half holds four columns: their highest bytes, the next ones, the lowest */
    FT_UNROLL
    for (size_t i = 0; i < 4; i++)
        four[i] =
            _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *) (whole + 8 * i)), by_plane);
    __m256i upper[2] = { _mm256_unpacklo_epi32(four[0], four[1]),
                         _mm256_unpacklo_epi32(four[2], four[3]) };
    __m256i lower[2] = { _mm256_unpackhi_epi32(four[0], four[1]),
                         _mm256_unpackhi_epi32(four[2], four[3]) };
    __m256i *plane = (__m256i *) to;
    if (planes == 3) {
        _mm256_storeu_si256(plane++, order_plane(_mm256_unpacklo_epi64(upper[0], upper[1]), bits));
        _mm256_storeu_si256(plane++, order_plane(_mm256_unpackhi_epi64(upper[0], upper[1]), bits));
    }
    _mm256_storeu_si256(plane, order_plane(_mm256_unpacklo_epi64(lower[0], lower[1]), bits));
}

#else

FT_INLINE void order_span(int8_t *to, const int32_t whole[FT_PANEL_SPAN], size_t planes, int bits)
{
    for (size_t p = 0; p < planes; p++, to += FT_PANEL_SPAN)
        for (size_t i = 0; i < FT_PANEL_SPAN; i++)
            to[i] = (int8_t) (whole[quad_column(i, bits)] >> (8 * (planes - 1 - p)));
}

#endif

#if defined __AVX2__ && !defined FT_SIMD_SCALAR

FT_INLINE int32_t sum_span(const int8_t *x)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *) x);
    __m256i eights =
        _mm256_sad_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
    __m128i two =
        _mm_add_epi32(_mm256_castsi256_si128(eights), _mm256_extracti128_si256(eights, 1));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_unpackhi_epi64(two, two))) -
           128 * FT_PANEL_SPAN;
}

#else

FT_INLINE int32_t sum_span(const int8_t *x)
{
    int32_t sum = 0;
    for (size_t i = 0; i < FT_PANEL_SPAN; i++)
        sum += x[i];
    return sum;
}

#endif

/* The largest magnitude: bit patterns have the same order, with NaN above all. */
FT_INLINE float largest_of(const float *x, size_t n)
{
    enum { SIDE = 16 };
    uint32_t most[SIDE] = { 0 };
    size_t i = 0;
    for (; i + SIDE <= n; i += SIDE)
        for (size_t j = 0; j < SIDE; j++) {
            uint32_t magnitude = ft_bits_from_float(x[i + j]) & 0x7fffffff;
            most[j] = magnitude > most[j] ? magnitude : most[j];
        }
    for (; i < n; i++) {
        uint32_t magnitude = ft_bits_from_float(x[i]) & 0x7fffffff;
        most[0] = magnitude > most[0] ? magnitude : most[0];
    }
    for (size_t apart = SIDE / 2; apart > 0; apart /= 2)
        for (size_t j = 0; j < apart; j++)
            most[j] = most[j + apart] > most[j] ? most[j + apart] : most[j];
    return ft_float_from_bits(most[0]);
}

/*
 * The three digits of an integer of up to 23 bits, with 65278 in place of 65536. Digits are in -128
 * .. 127: adding 128 to each avoids carries, and subtracting 128 from each again avoids borrows.
 */
FT_INLINE int32_t digits_of(float number)
{
    float high = rintf(number * (1.0f / FT_PANEL_HIGH));
    return ((int32_t) (number + high * (65536 - FT_PANEL_HIGH)) + 0x808080) ^ 0x808080;
}

/* Quantizes a k_block of x. */
FT_INLINE void split_span(int8_t *to, int32_t *sum, const float *x, float inverse, size_t planes,
                          int bits)
{
    int32_t whole[FT_PANEL_SPAN];
    if (planes == 1)
        for (size_t i = 0; i < FT_PANEL_SPAN; i++)
            whole[i] = (int32_t) ft_quantize_to_float(x[i], inverse);
    else
        for (size_t i = 0; i < FT_PANEL_SPAN; i++)
            whole[i] = digits_of(rintf(x[i] * inverse));
    order_span(to, whole, planes, bits);
    for (size_t p = 0; p < planes; p++)
        sum[p] += sum_span(to + p * FT_PANEL_SPAN);
}

FT_INLINE void split_part(int8_t *to, int32_t *sum, const float *x, size_t cols, float inverse,
                          size_t planes, int bits)
{
    size_t at = 0;
    for (; at + FT_PANEL_SPAN <= cols; at += FT_PANEL_SPAN, to += planes * FT_PANEL_SPAN)
        split_span(to, sum, x + at, inverse, planes, bits);
    if (at < cols) {
        float rest[FT_PANEL_SPAN] = { 0 };
        memcpy(rest, x + at, (cols - at) * sizeof *rest);
        split_span(to, sum, rest, inverse, planes, bits);
    }
}

/* Quantizes a row [cols] of x. A k_tile with a non-finite element becomes zeros with scale NaN. */
FT_INLINE void split_row(const ft_panel_x *to, size_t row, const ft_panel_weights *w,
                         const float *x, size_t cols, size_t planes, int bits)
{
    int8_t *bytes = to->bytes + row * to->stride;
    float *unit = to->unit + row * to->parts;
    int32_t *sum = to->sum + row * to->parts * planes;
    int32_t zero = w->zero != NULL ? 1 : 1 << (bits - 1);
    size_t wide = w->part * FT_PANEL_SPAN;
    for (size_t at = 0; at < cols; at += wide, bytes += wide * planes, unit++, sum += planes) {
        size_t n = ft_min_size(wide, cols - at);
        float amax = largest_of(x + at, n), inverse;
        *unit = planes == 1 ? ft_panel_code_unit(amax, &inverse) : ft_panel_unit(amax, &inverse);
        memset(sum, 0, planes * sizeof *sum);
        if (inverse > 0.0f)
            split_part(bytes, sum, x + at, n, inverse, planes, bits);
        else
            memset(bytes, 0, planes * ft_round_up(n, FT_PANEL_SPAN));
        for (size_t plane = 0; plane < planes; plane++)
            sum[plane] *= -zero;
    }
}

static void split(const ft_panel_x *to, size_t row, const ft_panel_weights *w, const float *x,
                  size_t cols)
{
    if (to->planes == 1 && w->bits == 4)
        split_row(to, row, w, x, cols, 1, 4);
    else if (to->planes == 1)
        split_row(to, row, w, x, cols, 1, 8);
    else if (w->bits == 4)
        split_row(to, row, w, x, cols, FT_PANEL_PLANES, 4);
    else
        split_row(to, row, w, x, cols, FT_PANEL_PLANES, 8);
}

#endif
