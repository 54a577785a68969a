/*
 * epilogue.cuh - GEMM epilogue on registers: int32 accumulators to float or int8.
 *
 * The operations and their order are those of kernels/cpu/gemm/int8/i8_epilogue.h, so the results
 * have the same bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_EPILOGUE_CUH
#define FT_KERNELS_CUDA_EPILOGUE_CUH

#include "kernels/activation.h"
#include "kernels/quant.h"

#include <stdint.h>

/*
 * Activations with a specialized kernel: none, and the GELU approximation of INT8 plans. All others
 * share a kernel that switches per element, so a build contains three instances of a kernel instead
 * of seven. Kernels that have instances for one scale per row of x add the last two.
 */
typedef enum ft_epilogue {
    FT_EPILOGUE_NONE,
    FT_EPILOGUE_GELU,
    FT_EPILOGUE_ANY,
    FT_EPILOGUE_ROW_SCALES,
    FT_EPILOGUE_ROW_SCALES_GELU
} ft_epilogue;

/* Whether rows of x have scales; and whether the activation is the GELU approximation. */
__host__ __device__ constexpr bool ft_epilogue_has_row_scales(ft_epilogue epilogue)
{
    return epilogue == FT_EPILOGUE_ROW_SCALES || epilogue == FT_EPILOGUE_ROW_SCALES_GELU;
}

__host__ __device__ constexpr bool ft_epilogue_has_gelu(ft_epilogue epilogue)
{
    return epilogue == FT_EPILOGUE_GELU || epilogue == FT_EPILOGUE_ROW_SCALES_GELU;
}

static inline ft_epilogue ft_epilogue_of(ft_activation activation)
{
    return activation == FT_ACT_NONE          ? FT_EPILOGUE_NONE
           : activation == FT_ACT_GELU_APPROX ? FT_EPILOGUE_GELU
                                              : FT_EPILOGUE_ANY;
}

/* act(sum * scale + bias) */
template <ft_epilogue epilogue>
__device__ __forceinline__ float ft_apply_epilogue(int32_t sum, float scale, float bias,
                                                   ft_activation activation)
{
    float value = ft_dequantize(sum, scale, bias);
    if (ft_epilogue_has_gelu(epilogue))
        return ft_gelu_approx(value);
    if (epilogue == FT_EPILOGUE_ANY)
        return ft_activate(activation, value);
    return value;
}

/*
 * The int8 value in the low byte: adding 1.5 * 2^23 rounds half to even as rintf() does and leaves
 * the integer in the low bits of the mantissa.
 */
__device__ __forceinline__ uint32_t ft_quantize_bits(float value, float inv_scale)
{
    float quantized = value * inv_scale;
    quantized = fmaxf(fminf(quantized, FT_QUANT_MAX), -FT_QUANT_MAX);
    return __float_as_uint(quantized + 12582912.0f);
}

/* Pack four int8 values into a word, the first in the lowest byte. */
__device__ __forceinline__ uint32_t ft_pack_i8x4(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

#endif
