/*
 * simd_i32.h - a portable vector of int32, with as many elements as that of simd.h, and dot
 * products of quads: four neighbouring bytes.
 *
 * vi_load(x), vi_load_u8(x) and vi_broadcast(x) load words, load bytes as words, and put the quad
 * at x into each word; vi_store(x, v) stores words. vi_nibbles(w, high) is the lower or the higher
 * four bits of each byte. vi_mul(a, b), vi_add(a, b), vi_sub(a, b) and vi_shift_left(a, bits) are
 * modulo 2^32; vi_xor(a, b) are differing bits, vi_max(a, b) the larger words, and
 * vi_reduce_max(v) is the largest one.
 *
 * A pair is a word of two signed integers of 16 bits. vi_pair(low, high) makes them of the lower
 * halves of two words; vi_dot_pairs(a, b) is the dot product of each two pairs.
 *
 * vi_dot_u8(&acc, w, x) adds to each word the dot product of a quad of w, unsigned, and one of x,
 * signed; vi_dot_u8_broadcast() reads one quad of x from memory. They need VNNI, and are an asm,
 * whose operand stays in place: with the intrinsic, the compiler moves the accumulator between
 * registers (gcc 12: a third of the speed).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BASE_SIMD_I32_H
#define FT_KERNELS_CPU_BASE_SIMD_I32_H

#include "kernels/cpu/base/simd.h"

#if defined __AVX512F__ && !defined FT_SIMD_SCALAR

typedef __m512i vi;

FT_INLINE vi vi_set(int32_t x)
{
    return _mm512_set1_epi32(x);
}

FT_INLINE vi vi_load(const void *from)
{
    return _mm512_loadu_si512(from);
}

FT_INLINE void vi_store(int32_t *to, vi v)
{
    _mm512_storeu_si512(to, v);
}

FT_INLINE vi vi_load_u8(const uint8_t *from)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *) from));
}

FT_INLINE vi vi_nibbles(vi w, int high)
{
    return _mm512_and_si512(high ? _mm512_srli_epi32(w, 4) : w, _mm512_set1_epi8(15));
}

FT_INLINE vi vi_mul(vi a, vi b)
{
    return _mm512_mullo_epi32(a, b);
}

FT_INLINE vi vi_pair(vi low, vi high)
{
    return _mm512_mask_blend_epi16(0xaaaaaaaa, low, _mm512_slli_epi32(high, 16));
}

FT_INLINE vi vi_dot_pairs(vi a, vi b)
{
    return _mm512_madd_epi16(a, b);
}

FT_INLINE vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}

FT_INLINE vi vi_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}

FT_INLINE vi vi_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}

FT_INLINE vi vi_max(vi a, vi b)
{
    return _mm512_max_epi32(a, b);
}

FT_INLINE int32_t vi_reduce_max(vi v)
{
    return _mm512_reduce_max_epi32(v);
}

FT_INLINE vi vi_shift_left(vi a, int bits)
{
    return _mm512_slli_epi32(a, (unsigned) bits);
}

FT_INLINE vf vf_from_i32(vi v)
{
    return _mm512_cvtepi32_ps(v);
}

FT_INLINE void vi_dot_u8(vi *sum, vi w, vi x)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(w), "v"(x));
}

FT_INLINE void vi_dot_u8_broadcast(vi *sum, vi w, const int8_t *x)
{
    struct quad {
        int8_t x[4];
    };
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(*sum) : "v"(w), "m"(*(const struct quad *) x));
}

#elif defined __AVX2__ && !defined FT_SIMD_SCALAR

typedef __m256i vi;

FT_INLINE vi vi_set(int32_t x)
{
    return _mm256_set1_epi32(x);
}

FT_INLINE vi vi_load(const void *from)
{
    return _mm256_loadu_si256(from);
}

FT_INLINE void vi_store(int32_t *to, vi v)
{
    _mm256_storeu_si256((__m256i *) to, v);
}

FT_INLINE vi vi_load_u8(const uint8_t *from)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *) from));
}

FT_INLINE vi vi_nibbles(vi w, int high)
{
    return _mm256_and_si256(high ? _mm256_srli_epi32(w, 4) : w, _mm256_set1_epi8(15));
}

FT_INLINE vi vi_mul(vi a, vi b)
{
    return _mm256_mullo_epi32(a, b);
}

FT_INLINE vi vi_pair(vi low, vi high)
{
    return _mm256_blend_epi16(low, _mm256_slli_epi32(high, 16), 0xaa);
}

FT_INLINE vi vi_dot_pairs(vi a, vi b)
{
    return _mm256_madd_epi16(a, b);
}

FT_INLINE vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}

FT_INLINE vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}

FT_INLINE vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}

FT_INLINE vi vi_max(vi a, vi b)
{
    return _mm256_max_epi32(a, b);
}

FT_INLINE int32_t vi_reduce_max(vi v)
{
    __m128i max = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    max = _mm_max_epi32(max, _mm_unpackhi_epi64(max, max));
    return _mm_cvtsi128_si32(_mm_max_epi32(max, _mm_shuffle_epi32(max, 1)));
}

FT_INLINE vi vi_shift_left(vi a, int bits)
{
    return _mm256_slli_epi32(a, bits);
}

FT_INLINE vf vf_from_i32(vi v)
{
    return _mm256_cvtepi32_ps(v);
}

FT_INLINE void vi_dot_u8(vi *sum, vi w, vi x)
{
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(*sum) : "x"(w), "x"(x));
}

#elif defined __aarch64__ && !defined FT_SIMD_SCALAR

typedef int32x4_t vi;

FT_INLINE vi vi_set(int32_t x)
{
    return vdupq_n_s32(x);
}

FT_INLINE vi vi_load(const void *from)
{
    return vld1q_s32(from);
}

FT_INLINE void vi_store(int32_t *to, vi v)
{
    vst1q_s32(to, v);
}

FT_INLINE vi vi_load_u8(const uint8_t *from)
{
    uint32_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    uint16x4_t widened = vget_low_u16(vmovl_u8(vcreate_u8(bytes)));
    return vreinterpretq_s32_u32(vmovl_u16(widened));
}

FT_INLINE vi vi_nibbles(vi w, int high)
{
    uint8x16_t bytes = vreinterpretq_u8_s32(w);
    return vreinterpretq_s32_u8(high ? vshrq_n_u8(bytes, 4) : vandq_u8(bytes, vdupq_n_u8(15)));
}

FT_INLINE vi vi_mul(vi a, vi b)
{
    return vmulq_s32(a, b);
}

FT_INLINE vi vi_pair(vi low, vi high)
{
    return vsliq_n_s32(low, high, 16);
}

FT_INLINE vi vi_dot_pairs(vi a, vi b)
{
    int16x8_t halves_a = vreinterpretq_s16_s32(a), halves_b = vreinterpretq_s16_s32(b);
    return vpaddq_s32(vmull_s16(vget_low_s16(halves_a), vget_low_s16(halves_b)),
                      vmull_high_s16(halves_a, halves_b));
}

FT_INLINE vi vi_add(vi a, vi b)
{
    return vaddq_s32(a, b);
}

FT_INLINE vi vi_sub(vi a, vi b)
{
    return vsubq_s32(a, b);
}

FT_INLINE vi vi_xor(vi a, vi b)
{
    return veorq_s32(a, b);
}

FT_INLINE vi vi_max(vi a, vi b)
{
    return vmaxq_s32(a, b);
}

FT_INLINE int32_t vi_reduce_max(vi v)
{
    return vmaxvq_s32(v);
}

FT_INLINE vi vi_shift_left(vi a, int bits)
{
    return vshlq_s32(a, vdupq_n_s32(bits));
}

FT_INLINE vf vf_from_i32(vi v)
{
    return vcvtq_f32_s32(v);
}

#else

typedef int32_t vi;

FT_INLINE vi vi_set(int32_t x)
{
    return x;
}

FT_INLINE vi vi_load(const void *from)
{
    int32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

FT_INLINE void vi_store(int32_t *to, vi v)
{
    *to = v;
}

FT_INLINE vi vi_load_u8(const uint8_t *from)
{
    return *from;
}

FT_INLINE vi vi_nibbles(vi w, int high)
{
    return (int32_t) ((uint32_t) w >> 4 * high & 0x0f0f0f0f);
}

FT_INLINE vi vi_mul(vi a, vi b)
{
    return (int32_t) ((uint32_t) a * (uint32_t) b);
}

FT_INLINE vi vi_pair(vi low, vi high)
{
    return (int32_t) (((uint32_t) low & 0xffff) | (uint32_t) high << 16);
}

FT_INLINE vi vi_dot_pairs(vi a, vi b)
{
    return (int16_t) ((uint32_t) a & 0xffff) * (int16_t) ((uint32_t) b & 0xffff) +
           (int16_t) ((uint32_t) a >> 16) * (int16_t) ((uint32_t) b >> 16);
}

FT_INLINE vi vi_add(vi a, vi b)
{
    return (int32_t) ((uint32_t) a + (uint32_t) b);
}

FT_INLINE vi vi_sub(vi a, vi b)
{
    return (int32_t) ((uint32_t) a - (uint32_t) b);
}

FT_INLINE vi vi_xor(vi a, vi b)
{
    return a ^ b;
}

FT_INLINE vi vi_max(vi a, vi b)
{
    return a > b ? a : b;
}

FT_INLINE int32_t vi_reduce_max(vi v)
{
    return v;
}

FT_INLINE vi vi_shift_left(vi a, int bits)
{
    return (int32_t) ((uint32_t) a << bits);
}

FT_INLINE vf vf_from_i32(vi v)
{
    return (float) v;
}

#endif

FT_INLINE vi vi_broadcast(const int8_t *quad)
{
    int32_t word;
    memcpy(&word, quad, sizeof word);
    return vi_set(word);
}

#endif
