/*
 * epilogue.cuh - from exact sums to floats or codes, in the registers of a product.
 *
 * The operations and their order are those of kernels/cpu/gemm/int8/i8_epilogue.h, so the bits are too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_EPILOGUE_CUH
#define FT_KERNELS_CUDA_EPILOGUE_CUH

#include "kernels/activation.h"
#include "kernels/quant.h"

#include <stdint.h>

/*
 * Which activations have a kernel of their own: none and the gelu of int8 plans.  All others share
 * one that switches for each element, so that a build holds three copies of a kernel and not seven.
 * ROWS, of kernels that tell it from NONE, is no activation and a scale for each row of x.
 */
typedef enum ft_epilogue {
    FT_EPILOGUE_NONE,
    FT_EPILOGUE_GELU,
    FT_EPILOGUE_ANY,
    FT_EPILOGUE_ROWS
} ft_epilogue;

static inline ft_epilogue ft_epilogue_of(ft_activation activation)
{
    return activation == FT_ACT_NONE         ? FT_EPILOGUE_NONE
           : activation == FT_ACT_GELU_CODES ? FT_EPILOGUE_GELU
                                             : FT_EPILOGUE_ANY;
}

/* act(sum * scale + bias) */
template <ft_epilogue epilogue>
__device__ __forceinline__ float ft_finish(int32_t sum, float scale, float bias,
                                           ft_activation activation)
{
    float value = ft_dequantize(sum, scale, bias);
    if (epilogue == FT_EPILOGUE_GELU)
        return ft_gelu_codes(value);
    if (epilogue == FT_EPILOGUE_ANY)
        return ft_activate(activation, value);
    return value;
}

/*
 * The code of a value in the low byte: adding 1.5 * 2^23 rounds half to even as rintf() does, and
 * leaves the whole number in the low bits of the mantissa.
 */
__device__ __forceinline__ uint32_t ft_code_bits(float value, float inverse)
{
    float code = value * inverse;
    code = fmaxf(fminf(code, 127.0f), -127.0f);
    return __float_as_uint(code + 12582912.0f);
}

/* Four codes as a word, the first in the lowest byte. */
__device__ __forceinline__ uint32_t ft_pack_codes(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

#endif
