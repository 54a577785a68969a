/*
 * gemm.cu - INT8 GEMM kernel selection.
 *
 * Every kernel returns the same bits, so the choice only affects time. It is that of the tuning
 * file, or else of a table of device kind and shape, and deterministic for a shape.
 * FT_CUDA_GEMM=simt|mma|cublaslt|wgmma|gemv requests a kernel; where that kernel does not support a
 * GEMM, the file or the table decides and ft_cuda_gemm_explain() reports it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/gemm_kernels.h"
#include "kernels/cuda/gemm/int8/gemm_variant.h"

#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

/* Kernels for a device kind and up to so many rows and columns, in order of preference. */
typedef struct selection_rule {
    int capability; /* minimum compute capability */
    size_t rows, columns;
    ft_cuda_gemm_kernel preference[4];
} selection_rule;

/*
 * sm_90: with up to 4 rows the GEMM is bound by reading weights. One persistent thread block per
 * SM, which prefetches across launches, is best for matrices up to about 50 MB; for larger ones
 * mma.sync with many thread blocks keeps more loads in flight. H200, gemv.cu against mma.sync in
 * us: 1 x 4096 x 4096 5.1 and 6.8, 1 x 4096 x 11008 13.2 and 13.2, 4 x 4096 x 11008 12.4 and 13.8,
 * 1 x 6144 x 4096 8.1 and 8.5, 1 x 12288 x 4096 15.1 and 13.4, 1 x 22016 x 4096 24.8 and 23.4 (the
 * bandwidth roofline is 20.4). Linears keep no COL4_4R2_8C in device memory (upload.c), so mma.sync
 * only takes what other operations read. With more rows wgmma is faster: 16 x 4096 x 4096 6.4 us
 * against 8.4, 16 x 4096 x 11008 12.8 against 19.8; 8 x 4096 x 4096 6.6 us, gemv.cu 7.8.
 *
 * sm_75: mma.sync has no cp.async there, so cuBLASLt comes first for many rows although its int32
 * accumulators go through memory. Not measured.
 *
 * Elsewhere mma.sync: its epilogue is fused, and a round trip of the accumulators through memory
 * costs more than the GEMM itself.
 */
static const selection_rule selection_rules[] = {
    { 100, SIZE_MAX, SIZE_MAX, { FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_SIMT } },
    { 90, 4, 8192, { FT_CUDA_GEMM_GEMV, FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_WGMMA, FT_CUDA_GEMM_SIMT } },
    { 90,
      4,
      SIZE_MAX,
      { FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_GEMV, FT_CUDA_GEMM_WGMMA, FT_CUDA_GEMM_SIMT } },
    { 90, SIZE_MAX, SIZE_MAX, { FT_CUDA_GEMM_WGMMA, FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_SIMT } },
    { 80, SIZE_MAX, SIZE_MAX, { FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_SIMT } },
    { 75, 256, SIZE_MAX, { FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_SIMT } },
    { 75, SIZE_MAX, SIZE_MAX, { FT_CUDA_GEMM_CUBLASLT, FT_CUDA_GEMM_MMA, FT_CUDA_GEMM_SIMT } },
    { 0, SIZE_MAX, SIZE_MAX, { FT_CUDA_GEMM_SIMT } },
};

/* The emulation of cuBLASLt's layouts (sm_90) runs only on request. */
static bool is_eligible(ft_cuda_gemm_kernel kernel, const ft_cuda_device_props *props,
                        const ft_cuda_gemm_args *p)
{
    return ft_cuda_gemm_supports(kernel, props, p) &&
           (kernel != FT_CUDA_GEMM_CUBLASLT || props->has_imma);
}

static ft_cuda_gemm_kernel select_from_table(const ft_cuda_device_props *props,
                                             const ft_cuda_gemm_args *p)
{
    const selection_rule *selection = selection_rules;
    while (props->capability < selection->capability || p->m > selection->rows ||
           p->n > selection->columns)
        selection++;
    for (ft_cuda_gemm_kernel kernel : selection->preference) {
        if (is_eligible(kernel, props, p))
            return kernel;
    }
    /* only prepacked weights exist */
    return FT_CUDA_GEMM_WGMMA;
}

static const char *requested_name(void)
{
    const char *name = getenv("FT_CUDA_GEMM");
    return name != NULL && *name != '\0' ? name : NULL;
}

/* ------------------------------------------------------------------------------------------ */

extern "C" bool ft_cuda_gemm_requested(const ft_cuda_device_props *props,
                                       const ft_cuda_gemm_args *p, ft_cuda_gemm_kernel *kernel)
{
    const char *name = requested_name();
    int requested = name == NULL ? FT_CUDA_GEMM_KERNELS : ft_cuda_gemm_kernel_named(name);
    if (requested == FT_CUDA_GEMM_KERNELS ||
        !ft_cuda_gemm_supports((ft_cuda_gemm_kernel) requested, props, p))
        return false;
    *kernel = (ft_cuda_gemm_kernel) requested;
    return true;
}

extern "C" ft_cuda_gemm_kernel ft_cuda_gemm_select(const ft_cuda_device_props *props,
                                                   const ft_cuda_gemm_args *p)
{
    ft_cuda_gemm_kernel requested;
    ft_cuda_gemm_variant tuned;
    if (ft_cuda_gemm_requested(props, p, &requested))
        return requested;
    return ft_cuda_gemm_variant_tuned(props, p, &tuned) ? tuned.kernel : select_from_table(props, p);
}

extern "C" void ft_cuda_gemm_explain(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p,
                                     char *text, size_t size)
{
    const char *requested = requested_name();
    ft_cuda_gemm_kernel kernel = ft_cuda_gemm_select(props, p);
    const char *name = ft_cuda_gemm_name(kernel);
    ft_cuda_gemm_variant tuned;
    if (requested == NULL && ft_cuda_gemm_variant_tuned(props, p, &tuned)) {
        char variant[FT_GEMM_KERNEL_NAME];
        ft_cuda_gemm_variant_name(&tuned, variant, sizeof variant);
        snprintf(text, size, "%s: tuned", variant);
    } else if (requested == NULL)
        snprintf(text, size, "%s", name);
    else if (ft_cuda_gemm_kernel_named(requested) == FT_CUDA_GEMM_KERNELS)
        snprintf(text, size, "%s: FT_CUDA_GEMM=%s is not a kernel", name, requested);
    else if (ft_cuda_gemm_kernel_named(requested) != kernel)
        snprintf(text, size, "%s: FT_CUDA_GEMM=%s does not support it", name, requested);
    else
        snprintf(text, size, "%s: requested by FT_CUDA_GEMM", name);
}

extern "C" int ft_cuda_gemm_launch(ft_cuda_gemm_kernel kernel, const ft_cuda_device_props *props,
                                   void *stream, const ft_cuda_gemm_args *p)
{
    ft_cuda_gemm_variant tuned;
    if (ft_cuda_gemm_args_valid(p) && ft_cuda_gemm_variant_tuned(props, p, &tuned) &&
        tuned.kernel == kernel)
        return ft_cuda_gemm_variant_launch(&tuned, props, stream, p);
    return ft_cuda_gemm_launch_kernel(kernel, props, stream, p);
}

extern "C" size_t ft_cuda_gemm_scratch(const ft_cuda_device_props *props, size_t m, size_t n,
                                       size_t k)
{
    const char *name = requested_name();
    bool requested = name != NULL && ft_cuda_gemm_kernel_named(name) == FT_CUDA_GEMM_CUBLASLT;
    bool eligible = props->has_imma && props->capability < 80;
    return requested || eligible ? ft_cuda_gemm_cublaslt_scratch(props, m, n, k) : 0;
}
