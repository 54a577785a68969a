/*
 * simd_neon.h - the vector of simd.h with NEON: four floats. The including file defines FT_INLINE.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BASE_SIMD_NEON_H
#define FT_KERNELS_CPU_BASE_SIMD_NEON_H

#include <arm_neon.h>

enum { LANES = 4 };
typedef float32x4_t vf;

FT_INLINE vf vf_load(const float *from)
{
    return vld1q_f32(from);
}

FT_INLINE vf vf_load_i32(const int32_t *from)
{
    return vcvtq_f32_s32(vld1q_s32(from));
}

FT_INLINE vf vf_load_f16(const uint16_t *from)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
}

FT_INLINE vf vf_load_bf16(const uint16_t *from)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from), 16));
}

FT_INLINE vf vf_load_i8(const int8_t *from)
{
    uint32_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    int16x4_t widened = vget_low_s16(vmovl_s8(vcreate_s8(bytes)));
    return vcvtq_f32_s32(vmovl_s16(widened));
}

FT_INLINE void vf_store(float *to, vf v)
{
    vst1q_f32(to, v);
}

FT_INLINE vf vf_set(float value)
{
    return vdupq_n_f32(value);
}

FT_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}

FT_INLINE vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}

/* fmin and fmax treat NaN and signed zeros in another way. */
FT_INLINE vf vf_min(vf a, vf b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

FT_INLINE vf vf_max(vf a, vf b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

FT_INLINE vf vf_rint(vf v)
{
    return vrndnq_f32(v);
}

FT_INLINE vf vf_ldexp(vf p, vf n)
{
    int32x4_t exponent = vshlq_n_s32(vcvtnq_s32_f32(n), 23);
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(p), exponent));
}

FT_INLINE void vf_store_f16(uint16_t *to, vf v)
{
    vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(v)));
}

FT_INLINE void vf_store_i8(int8_t *to, const vf v[4])
{
    int16x8_t low = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(v[0])), vmovn_s32(vcvtnq_s32_f32(v[1])));
    int16x8_t high = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(v[2])), vmovn_s32(vcvtnq_s32_f32(v[3])));
    vst1q_s8(to, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

FT_INLINE float vf_reduce_max(const vf v[4])
{
    vf x4 = vf_max(vf_max(v[0], v[2]), vf_max(v[1], v[3]));
    x4 = vf_max(x4, vextq_f32(x4, x4, 2));
    return vgetq_lane_f32(vf_max(x4, vextq_f32(x4, x4, 1)), 0);
}

FT_INLINE float vf_reduce_add(const vf v[4])
{
    vf x4 = (v[0] + v[2]) + (v[1] + v[3]);
    float32x2_t x2 = vget_low_f32(x4) + vget_high_f32(x4);
    return vget_lane_f32(x2, 0) + vget_lane_f32(x2, 1);
}

/* vf_reduce_add() of two sums at once. */
FT_INLINE void vf_reduce_add_x2(float to[2], const vf a[4], const vf b[4])
{
    vf a4 = (a[0] + a[2]) + (a[1] + a[3]), b4 = (b[0] + b[2]) + (b[1] + b[3]);
    vf ab = vcombine_f32(vget_low_f32(a4), vget_low_f32(b4)) +
            vcombine_f32(vget_high_f32(a4), vget_high_f32(b4));
    vst1_f32(to, vget_low_f32(vpaddq_f32(ab, ab)));
}

FT_INLINE void vf_transpose(vf v[4])
{
    float64x2_t low01 = vreinterpretq_f64_f32(vzip1q_f32(v[0], v[1]));
    float64x2_t high01 = vreinterpretq_f64_f32(vzip2q_f32(v[0], v[1]));
    float64x2_t low23 = vreinterpretq_f64_f32(vzip1q_f32(v[2], v[3]));
    float64x2_t high23 = vreinterpretq_f64_f32(vzip2q_f32(v[2], v[3]));
    v[0] = vreinterpretq_f32_f64(vzip1q_f64(low01, low23));
    v[1] = vreinterpretq_f32_f64(vzip2q_f64(low01, low23));
    v[2] = vreinterpretq_f32_f64(vzip1q_f64(high01, high23));
    v[3] = vreinterpretq_f32_f64(vzip2q_f64(high01, high23));
}

#endif
