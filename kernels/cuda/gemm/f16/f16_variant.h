/*
 * f16_variant.h - the f16 and bf16 GEMM kernels with each of their tiles, and those that a tuning
 * file has chosen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_F16_VARIANT_H
#define FT_KERNELS_CUDA_GEMM_F16_F16_VARIANT_H

#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.h"
#include "kernels/cuda/gemm_family.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ft_cuda_f16_kernel {
    FT_CUDA_F16_SMALL_M, /* wgmma_f16_gemm.cu */
    FT_CUDA_F16_LARGE_M, /* wgmma_f16_large_m.cu */
    FT_CUDA_F16_SPLIT_K, /* wgmma_f16_split_k.cu */
    FT_CUDA_F16_GEMV,    /* gemv_f16.cu */
    FT_CUDA_F16_MMA      /* mma_f16.cu */
} ft_cuda_f16_kernel;

/* Where k is split, the number of splits decides the bits of a result; the rest does not. */
typedef struct ft_cuda_f16_variant {
    ft_cuda_f16_kernel kernel;
    int index;             /* of the tile, except for SMALL_M */
    ft_cuda_f16_tile tile; /* of SMALL_M */
    int splits;
} ft_cuda_f16_variant;

/*
 * `count` GEMMs that differ only in w, bias and y, and whether their bits may not depend on m;
 * then a single one may also run on devices without wgmma.
 */
typedef struct ft_cuda_f16_gemms {
    const ft_cuda_float_gemm_args *p;
    int count;
    bool batch_invariant;
} ft_cuda_f16_gemms;

/* The variant that the cost models select; false: none supports the GEMMs (wgmma_f16_fastest.cu).
 */
bool ft_cuda_f16_select(const ft_cuda_device_props *props, const ft_cuda_f16_gemms *g,
                        ft_cuda_f16_variant *out);

/* All variants with so many splits, from index 0 on; false: there is none any more. */
bool ft_cuda_f16_variant_at(int index, int splits, ft_cuda_f16_variant *out);
void ft_cuda_f16_variant_name(const ft_cuda_f16_variant *variant, char *text, size_t size);
bool ft_cuda_f16_variant_same(const ft_cuda_f16_variant *a, const ft_cuda_f16_variant *b);

/* Whether a variant may replace the selected one. */
bool ft_cuda_f16_variant_fits(const ft_cuda_f16_variant *variant,
                              const ft_cuda_f16_variant *selected,
                              const ft_cuda_device_props *props, const ft_cuda_f16_gemms *g);

/* cudaErrorNotSupported, and nothing is launched, where the tile has no room for the splits. */
int ft_cuda_f16_variant_launch(const ft_cuda_f16_variant *variant,
                               const ft_cuda_device_props *props, void *stream,
                               const ft_cuda_f16_gemms *g);

/* ... with the variant of the tuning file, if it has one that may replace the selected one. */
int ft_cuda_f16_launch_tuned(const ft_cuda_f16_variant *selected, const ft_cuda_device_props *props,
                             void *stream, const ft_cuda_f16_gemms *g);

#ifdef __cplusplus
}
#endif
#endif
