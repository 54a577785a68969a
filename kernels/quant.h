/*
 * quant.h - the one definition of quantization, for every backend and every tool.
 *
 * Symmetric int8: codes -127..127, real value = scale * code, scale = amax / 127, round half to
 * even.  Host code is built without contraction and device code uses the same operations, so the
 * codes agree on every machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_QUANT_H
#define FT_KERNELS_QUANT_H

#include "kernels/layout.h"

#include <math.h>

/* The scale of a tensor or channel; 0 for a channel that holds only zeros. */
FT_HOST_DEVICE float ft_scale_from_amax(float amax)
{
    return amax / 127.0f;
}

/* What a value is multiplied by before rounding; 0 for a zero scale, so all codes are 0. */
FT_HOST_DEVICE float ft_inverse_scale(float scale)
{
    return scale > 0.0f ? 1.0f / scale : 0.0f;
}

/* One code as a whole number in float: value / scale, rounded half to even, clamped. */
FT_HOST_DEVICE float ft_quantize_to_float(float value, float inverse_scale)
{
    float q = value * inverse_scale;
    q = q < 127.0f ? q : 127.0f; /* also where code is NaN */
    q = q > -127.0f ? q : -127.0f;
    return rintf(q) + 0.0f; /* codes have no -0 */
}

FT_HOST_DEVICE int8_t ft_quantize(float value, float inverse_scale)
{
    return (int8_t) ft_quantize_to_float(value, inverse_scale);
}

/* An exact int32 sum becomes a real value: product and bias are rounded once. */
FT_HOST_DEVICE float ft_dequantize(int32_t sum, float scale, float bias)
{
    return fmaf((float) sum, scale, bias);
}

#endif
