/*
 * simd_i32.h - a portable vector of int32, with as many elements as that of simd.h, and dot
 * products of quads: four neighbouring bytes.
 *
 * vi_load(x), vi_load_u8(x) and vi_broadcast(x) load words, load bytes as words, and put the quad
 * at x into each word. vi_nibbles(w, high) is the lower or the higher four bits of each byte.
 * vi_mul(a, b), vi_add(a, b), vi_sub(a, b) and vi_shift_left(a, bits) are modulo 2^32.
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

FT_INLINE vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}

FT_INLINE vi vi_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
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

FT_INLINE vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}

FT_INLINE vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
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

FT_INLINE vi vi_add(vi a, vi b)
{
    return vaddq_s32(a, b);
}

FT_INLINE vi vi_sub(vi a, vi b)
{
    return vsubq_s32(a, b);
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

FT_INLINE vi vi_load(const uint32_t *from)
{
    return (int32_t) *from;
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

FT_INLINE vi vi_add(vi a, vi b)
{
    return (int32_t) ((uint32_t) a + (uint32_t) b);
}

FT_INLINE vi vi_sub(vi a, vi b)
{
    return (int32_t) ((uint32_t) a - (uint32_t) b);
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
