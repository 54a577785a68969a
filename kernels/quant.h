/*
 * quant.h - the definition of int8 quantization, for all backends and tools.
 *
 * Symmetric int8: quantized values q in -127..127, float value = scale * q, scale = amax / 127,
 * round half to even.  Host code is compiled without contraction and device code uses the same
 * operations, so that quantized values are equal on every machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_QUANT_H
#define FT_KERNELS_QUANT_H

#include "kernels/layout.h"

#include <math.h>

/* Quantized values are -FT_QUANT_MAX .. FT_QUANT_MAX. */
enum { FT_QUANT_MAX = 127 };

/* The scale of a tensor or channel; 0 if amax is 0. */
FT_HOST_DEVICE float ft_scale_from_amax(float amax)
{
    return amax / FT_QUANT_MAX;
}

/* The factor before rounding; 0 for a zero scale, so that all quantized values are 0. */
FT_HOST_DEVICE float ft_inverse_scale(float scale)
{
    return scale > 0.0f ? 1.0f / scale : 0.0f;
}

/* A quantized value as a float integer: value / scale, clamped, rounded half to even. */
FT_HOST_DEVICE float ft_quantize_to_float(float value, float inverse_scale)
{
    float q = value * inverse_scale;
    q = q < FT_QUANT_MAX ? q : FT_QUANT_MAX; /* also for NaN */
    q = q > -FT_QUANT_MAX ? q : -FT_QUANT_MAX;
    return rintf(q) + 0.0f; /* no -0 */
}

FT_HOST_DEVICE int8_t ft_quantize(float value, float inverse_scale)
{
    return (int8_t) ft_quantize_to_float(value, inverse_scale);
}

/* Dequantize an exact int32 sum: scale and bias are one fused multiply-add. */
FT_HOST_DEVICE float ft_dequantize(int32_t sum, float scale, float bias)
{
    return fmaf((float) sum, scale, bias);
}

#endif
