/*
 * groupwise_activations.h - quantizes x to one or two digits of one byte, in the order of quads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_ACTIVATIONS_H
#define FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_ACTIVATIONS_H

#include "kernels/cpu/gemm/groupwise/groupwise.h"
#include "kernels/cpu/base/simd_i32.h"
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

FT_INLINE void order_k_block(int8_t *to, const int32_t values[FT_PANEL_K_BLOCK], size_t digits,
                             int bits)
{
    __m512i first = _mm512_loadu_si512(values), second = _mm512_loadu_si512(values + 16);
    uint8_t position[64];
    for (size_t i = 0; i < 64; i++)
        position[i] = (uint8_t) (4 * quad_column(i % 32, bits) + (digits - 1 - i / 32) % 4);
    __m512i bytes = _mm512_permutex2var_epi8(first, _mm512_loadu_si512(position), second);
    if (digits == 2)
        _mm512_storeu_si512(to, bytes);
    else
        _mm256_storeu_si256((__m256i *) to, _mm512_castsi512_si256(bytes));
}

#elif defined __AVX2__ && !defined FT_SIMD_SCALAR

/*
 * Reorders columns 0 .. 3, 8 .. 11, 16 .. 19, 24 .. 27, and those 4 further in the other half, into
 * quads.
 */
FT_INLINE __m256i order_digit(__m256i digit, int bits)
{
    const __m256i words = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
    const __m256i nibbles = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 8, 1, 9, 4, 12, 5, 13, 2, 10, 3, 11, 6, 14, 7, 15));
    return bits == 8 ? _mm256_shuffle_epi8(_mm256_permute4x64_epi64(digit, 0xd8), words)
                     : _mm256_shuffle_epi8(digit, nibbles);
}

FT_INLINE void order_k_block(int8_t *to, const int32_t values[FT_PANEL_K_BLOCK], size_t digits,
                             int bits)
{
    const __m256i by_digit = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(1, 5, 9, 13, 0, 4, 8, 12, 2, 6, 10, 14, 3, 7, 11, 15));
    __m256i x4[4]; /* each half starts with two bytes of four columns: the second, the lowest */
    FT_UNROLL
    for (size_t i = 0; i < 4; i++)
        x4[i] =
            _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *) (values + 8 * i)), by_digit);
    __m256i first = _mm256_unpacklo_epi32(x4[0], x4[1]);
    __m256i second = _mm256_unpacklo_epi32(x4[2], x4[3]);
    __m256i *digit = (__m256i *) to;
    if (digits == 2)
        _mm256_storeu_si256(digit++, order_digit(_mm256_unpacklo_epi64(first, second), bits));
    _mm256_storeu_si256(digit, order_digit(_mm256_unpackhi_epi64(first, second), bits));
}

#elif defined __aarch64__ && !defined FT_SIMD_SCALAR

FT_INLINE void order_k_block(int8_t *to, const int32_t values[FT_PANEL_K_BLOCK], size_t digits,
                             int bits)
{
    uint8_t column[FT_PANEL_K_BLOCK];
    for (size_t i = 0; i < FT_PANEL_K_BLOCK; i++)
        column[i] = (uint8_t) quad_column(i, bits);
    uint8x16x4_t low = vld4q_u8((const uint8_t *) values); /* each digit in a vector */
    uint8x16x4_t high = vld4q_u8((const uint8_t *) (values + 16));
    FT_UNROLL
    for (size_t p = 0; p < digits; p++, to += FT_PANEL_K_BLOCK) {
        uint8x16x2_t digit = { { low.val[digits - 1 - p], high.val[digits - 1 - p] } };
        vst1q_s8(to, vreinterpretq_s8_u8(vqtbl2q_u8(digit, vld1q_u8(column))));
        vst1q_s8(to + 16, vreinterpretq_s8_u8(vqtbl2q_u8(digit, vld1q_u8(column + 16))));
    }
}

#else

FT_INLINE void order_k_block(int8_t *to, const int32_t values[FT_PANEL_K_BLOCK], size_t digits,
                             int bits)
{
    for (size_t p = 0; p < digits; p++, to += FT_PANEL_K_BLOCK)
        for (size_t i = 0; i < FT_PANEL_K_BLOCK; i++)
            to[i] = (int8_t) (values[quad_column(i, bits)] >> (8 * (digits - 1 - p)));
}

#endif

#if defined __AVX2__ && !defined FT_SIMD_SCALAR

FT_INLINE int32_t sum_k_block(const int8_t *x)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *) x);
    __m256i sums_of_8 =
        _mm256_sad_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
    __m128i sums_of_16 =
        _mm_add_epi32(_mm256_castsi256_si128(sums_of_8), _mm256_extracti128_si256(sums_of_8, 1));
    return _mm_cvtsi128_si32(
               _mm_add_epi32(sums_of_16, _mm_unpackhi_epi64(sums_of_16, sums_of_16))) -
           128 * FT_PANEL_K_BLOCK;
}

#elif defined __aarch64__ && !defined FT_SIMD_SCALAR

FT_INLINE int32_t sum_k_block(const int8_t *x)
{
    return vaddlvq_s8(vld1q_s8(x)) + vaddlvq_s8(vld1q_s8(x + 16));
}

#else

FT_INLINE int32_t sum_k_block(const int8_t *x)
{
    int32_t sum = 0;
    for (size_t i = 0; i < FT_PANEL_K_BLOCK; i++)
        sum += x[i];
    return sum;
}

#endif

/* The largest elements of x and of -x, at least 0: maxima of ft_positive_bits(). */
FT_INLINE void range_of(const float *x, size_t n, float *high, float *minus_low)
{
    vi highs = vi_set(0), lows = vi_set(0);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vi bits = vi_load((const void *) (x + i));
        highs = vi_max(highs, bits);
        lows = vi_max(lows, vi_xor(bits, vi_set(INT32_MIN)));
    }
    int32_t high_bits = vi_reduce_max(highs), low_bits = vi_reduce_max(lows);
    for (; i < n; i++) {
        int32_t bits = ft_positive_bits(x[i]), minus_bits = ft_positive_bits(-x[i]);
        high_bits = bits > high_bits ? bits : high_bits;
        low_bits = minus_bits > low_bits ? minus_bits : low_bits;
    }
    *high = ft_float_from_bits((uint32_t) high_bits);
    *minus_low = ft_float_from_bits((uint32_t) low_bits);
}

/*
 * The two digits of an integer, as the two lowest bytes: adding 128 rounds to the nearest high
 * digit, and flipping the bit makes the low one signed again.
 */
FT_INLINE int32_t digits_of(int32_t number)
{
    return (number + 0x80) ^ 0x80;
}

/*
 * A k_tile of float activations: their scale is ft_groupwise_float_scale(), and NaN where high or
 * minus_low is not finite.
 */
FT_INLINE ft_groupwise_x_params float_params(float high, float minus_low)
{
    ft_groupwise_x_params params = { 0 };
    uint32_t high_bits = ft_bits_from_float(high), low_bits = ft_bits_from_float(minus_low);
    float amax = ft_float_from_bits(high_bits > low_bits ? high_bits : low_bits);
    params.scale = ft_groupwise_float_scale(amax, &params.inverse);
    return params;
}

/* Quantizes a k_block of x and adds up its integers. */
FT_INLINE void quantize_k_block(int8_t *to, int32_t *sum, const float *x,
                                const ft_groupwise_x_params *params, size_t digits, int bits)
{
    int32_t values[FT_PANEL_K_BLOCK];
    if (digits == 1)
        for (size_t i = 0; i < FT_PANEL_K_BLOCK; i++)
            values[i] = (int32_t) ft_groupwise_quantize_to_float(x[i], params);
    else
        for (size_t i = 0; i < FT_PANEL_K_BLOCK; i++)
            values[i] = digits_of((int32_t) rintf(x[i] * params->inverse));
    order_k_block(to, values, digits, bits);
    *sum += sum_k_block(to + (digits - 1) * FT_PANEL_K_BLOCK);
    if (digits == 2)
        *sum += 256 * sum_k_block(to);
    *sum -= FT_PANEL_K_BLOCK * params->zero;
}

FT_INLINE void quantize_k_tile(int8_t *to, int32_t *sum, const float *x, size_t cols,
                               const ft_groupwise_x_params *params, size_t digits, int bits)
{
    size_t at = 0;
    for (; at + FT_PANEL_K_BLOCK <= cols; at += FT_PANEL_K_BLOCK, to += digits * FT_PANEL_K_BLOCK)
        quantize_k_block(to, sum, x + at, params, digits, bits);
    if (at < cols) {
        float tail[FT_PANEL_K_BLOCK] = { 0 };
        memcpy(tail, x + at, (cols - at) * sizeof *tail);
        quantize_k_block(to, sum, tail, params, digits, bits);
    }
}

/* As vi_pair(). */
FT_INLINE int32_t pair_of(int32_t low, int32_t high)
{
    return (int32_t) (((uint32_t) low & 0xffff) | (uint32_t) high << 16);
}

/* Quantizes a row [cols] of x. A k_tile with a non-finite element becomes zeros with scale NaN. */
FT_INLINE void quantize_columns(const ft_groupwise_x *to, size_t row, const ft_groupwise_weights *w,
                                const float *x, size_t cols, size_t digits, int bits)
{
    int8_t *bytes = to->q + row * to->stride;
    size_t first = row * to->k_tiles;
    int32_t common_zero = w->zero != NULL ? 1 : 1 << (bits - 1);
    size_t k_tile_cols = w->k_tile * FT_PANEL_K_BLOCK;
    for (size_t at = 0, i = first; at < cols;
         at += k_tile_cols, bytes += k_tile_cols * digits, i++) {
        size_t n = ft_min_size(k_tile_cols, cols - at);
        float high, minus_low;
        int32_t sum = 0;
        range_of(x + at, n, &high, &minus_low);
        ft_groupwise_x_params params =
            digits == 1 ? ft_groupwise_x_params_of(high, minus_low) : float_params(high, minus_low);
        if (params.inverse > 0.0f)
            quantize_k_tile(bytes, &sum, x + at, n, &params, digits, bits);
        else
            memset(bytes, 0, digits * ft_round_up(n, FT_PANEL_K_BLOCK));
        to->scale_x[i] = params.scale;
        to->zero[i] = params.zero;
        to->sum[i] =
            ft_groupwise_has_pairs(w, digits) ? pair_of(-params.zero, -sum) : -common_zero * sum;
    }
}

static void quant_x(const ft_groupwise_x *to, size_t row, const ft_groupwise_weights *w,
                    const float *x, size_t cols)
{
    if (to->digits == 1 && w->bits == 4)
        quantize_columns(to, row, w, x, cols, 1, 4);
    else if (to->digits == 1)
        quantize_columns(to, row, w, x, cols, 1, 8);
    else if (w->bits == 4)
        quantize_columns(to, row, w, x, cols, FT_PANEL_DIGITS, 4);
    else
        quantize_columns(to, row, w, x, cols, FT_PANEL_DIGITS, 8);
}

#endif
