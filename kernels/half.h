/*
 * half.h - IEEE binary16 and bfloat16 on host and device, exact both ways (round half to even).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_HALF_H
#define FT_KERNELS_HALF_H

#include "kernels/layout.h"

#include <stdint.h>
#include <string.h>

FT_HOST_DEVICE float ft_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

FT_HOST_DEVICE uint32_t ft_bits_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

FT_HOST_DEVICE float ft_float_from_bf16(uint16_t bits)
{
    return ft_float_from_bits((uint32_t) bits << 16);
}

FT_HOST_DEVICE float ft_float_from_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t) (bits & 0x8000) << 16;
    uint32_t magnitude = bits & 0x7fff;
    if (magnitude > 0x7c00) /* NaN becomes quiet, as in hardware */
        return ft_float_from_bits(sign | 0x7fc00000 | (magnitude & 0x3ff) << 13);
    if (magnitude == 0x7c00)
        return ft_float_from_bits(sign | 0x7f800000);
    if (magnitude >= 0x400)
        return ft_float_from_bits(sign | ((magnitude << 13) + (112u << 23)));
    float subnormal = (float) magnitude * 0x1p-24f;
    return sign ? -subnormal : subnormal;
}

FT_HOST_DEVICE uint16_t ft_bf16_from_float(float value)
{
    uint32_t bits = ft_bits_from_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000) /* NaN stays NaN */
        return (uint16_t) (bits >> 16 | 0x40);
    return (uint16_t) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

FT_HOST_DEVICE uint16_t ft_f16_from_float(float value)
{
    uint32_t bits = ft_bits_from_float(value);
    uint16_t sign = (uint16_t) (bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t) (sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) /* rounds to 65536 or more */
        return (uint16_t) (sign | 0x7c00);
    if (magnitude < 0x38800000) { /* subnormal: adding 0.5 rounds at 2^-24, half to even */
        float rounded = ft_float_from_bits(magnitude) + 0.5f;
        return (uint16_t) (sign | (ft_bits_from_float(rounded) - 0x3f000000));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t) (sign | ((magnitude - (112u << 23)) >> 13));
}

#endif
