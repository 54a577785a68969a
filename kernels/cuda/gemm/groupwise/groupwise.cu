/*
 * groupwise.cu - kernel selection for GEMM with group-wise quantized weights.
 *
 * Up to eight rows, if shared memory has room for them, are bound by reading the weights and use a
 * GEMV, or a specialized one for one or two rows. 4-bit weights may be streamed twice: 8 rows of
 * 4096 x 11008 take 18.8 us so on an H200, and 19 to 23 in an MMA tile of 16 rows. Larger m uses
 * MMA tiles, which reuse weights. int8 activations have kernels of their own. A tuning file takes
 * precedence.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/decode_gemv.h"
#include "kernels/cuda/gemm/groupwise/groupwise_gemv.cuh"
#include "kernels/cuda/gemm/groupwise/groupwise_variant.h"

extern "C" const char *ft_cuda_groupwise_kernel_name(ft_cuda_groupwise_kernel kernel)
{
    static const char *const name[FT_CUDA_GROUPWISE_KERNELS] = { "decode_gemv", "gemv", "mma",
                                                                 "wgmma",       "simt", "int8" };
    return name[kernel];
}

/*
 * Whether to use the GEMV, once or, with 4-bit weights that take few instructions to dequantize,
 * twice.
 */
static bool suits_gemv(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p)
{
    size_t rows = ft_cuda_groupwise_gemv_max_m(props, p);
    bool twice = p->bits == 4 && p->linear[0].zero == NULL && !groupwise_has_step_scales(p);
    return p->m <= rows || (twice && p->m <= GEMV_MAX_M && p->m <= 2 * rows);
}

static bool decode_gemv_supports(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p)
{
    return ft_cuda_groupwise_decode_gemv_supports(props, p, NULL, NULL);
}

static ft_cuda_groupwise_kernel select_kernel(const ft_cuda_device_props *props,
                                              const ft_cuda_groupwise_args *p)
{
    if (p->int8_activations)
        return FT_CUDA_GROUPWISE_INT8;
    if (p->m <= ft_cuda_groupwise_decode_gemv_max_m() && decode_gemv_supports(props, p))
        return FT_CUDA_GROUPWISE_DECODE_GEMV;
    bool gemv_supported = ft_cuda_groupwise_gemv_supports(props, p),
         mma_supported = ft_cuda_groupwise_mma_supports(props, p);
    if (gemv_supported && (suits_gemv(props, p) || !mma_supported))
        return FT_CUDA_GROUPWISE_GEMV;
    return ft_cuda_groupwise_wgmma_supports(props, p) ? FT_CUDA_GROUPWISE_WGMMA
           : mma_supported                            ? FT_CUDA_GROUPWISE_MMA
                                                      : FT_CUDA_GROUPWISE_SIMT;
}

extern "C" ft_cuda_groupwise_kernel ft_cuda_groupwise_select(const ft_cuda_device_props *props,
                                                             const ft_cuda_groupwise_args *p)
{
    const ft_cuda_groupwise_variant *tuned = ft_cuda_groupwise_variant_tuned(props, p);
    return tuned != NULL ? tuned->kernel : select_kernel(props, p);
}

extern "C" int ft_cuda_groupwise_launch(ft_cuda_groupwise_kernel kernel,
                                        const ft_cuda_device_props *props, void *stream,
                                        const ft_cuda_groupwise_args *p)
{
    if (!ft_cuda_groupwise_supports(kernel, props, p))
        return (int) cudaErrorNotSupported;
    ft_cuda_groupwise_variant variant = ft_cuda_groupwise_variant_of(kernel, props, p);
    return ft_cuda_groupwise_variant_launch(&variant, props, stream, p);
}

extern "C" bool ft_cuda_blocks_supports(const ft_cuda_device_props *props,
                                        const ft_cuda_groupwise_args *p)
{
    return ft_cuda_groupwise_supports(ft_cuda_groupwise_select(props, p), props, p);
}

extern "C" int ft_cuda_groupwise_gemm(const ft_cuda_device_props *props, void *stream,
                                      const ft_cuda_groupwise_args *p)
{
    const ft_cuda_groupwise_variant *tuned = ft_cuda_groupwise_variant_tuned(props, p);
    return tuned != NULL ? ft_cuda_groupwise_variant_launch(tuned, props, stream, p)
                         : ft_cuda_groupwise_launch(select_kernel(props, p), props, stream, p);
}

extern "C" size_t ft_cuda_groupwise_scratch(const ft_cuda_device_props *props, size_t m, size_t n,
                                            size_t k, ft_dtype x_dtype, bool int8_activations)
{
    if (int8_activations)
        return ft_cuda_groupwise_int8_scratch(m, k);
    size_t gemv_supported = ft_cuda_groupwise_gemv_scratch(props);
    size_t mma_supported = ft_cuda_groupwise_mma_scratch(props, m, n, k, x_dtype);
    return gemv_supported > mma_supported ? gemv_supported : mma_supported;
}
