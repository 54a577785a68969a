/*
 * fused_kernels.h - launchers of fused operations (kernels/fused_ops.h).
 *
 * They launch nothing and return cudaErrorNotSupported where no kernel fuses the whole chain, or
 * where the separate kernels are faster. Intermediate values of a chain are not written to memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_FUSED_KERNELS_H
#define FT_KERNELS_CUDA_FUSED_KERNELS_H

#include "kernels/cuda/cuda.h"
#include "kernels/fused_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A fusion group of a forward pass: its operations with their arguments. */
typedef struct ft_cuda_group {
    ft_fusion kind;

    /* FT_FUSION_LINEAR */
    const ft_cuda_args *norm, *quantize; /* NULL: none; at most one */
    const ft_cuda_args *linear[FT_CUDA_MAX_FUSED];
    int linears;
    const ft_cuda_args *gate; /* NULL: none */
    const ft_cuda_args *down; /* the linear of the quantized gate; NULL: none */
    bool contiguous;          /* as in ft_fusion_group */
    size_t result_stride;

    /* FT_FUSION_ATTENTION */
    const ft_cuda_args *store, *attend;
} ft_cuda_group;

typedef struct ft_cuda_fused_kernel {
    const char *name;
    ft_fusion kind;
    bool norm, quantize, gate, down; /* computes these of a group in addition to its linears */
    bool (*supports)(const ft_cuda_group *group);

    /* Returns cudaErrorNotSupported and launches nothing where it does not support the group. */
    int (*launch)(const ft_cuda_group *group);
} ft_cuda_fused_kernel;

/*
 * Select a kernel for a group: up to FT_CUDA_MAX_FUSED linears of one input, with the norm or
 * QUANTIZE that produces it, the gate that multiplies two outputs, and its linear. *part receives
 * the operations of the group that the kernel computes. The norm's second output (the residual sum)
 * is written. NULL: no kernel supports the group.
 */
const ft_cuda_fused_kernel *ft_cuda_fused_kernel_for(const ft_cuda_group *group,
                                                     ft_cuda_group *part);

/* ---- Linears ------------------------------------------------------------------------------ */

/* Group-wise weights, one or two rows: GEMV with the norm, the gate, or both. */
bool ft_cuda_group_decode_supports(const ft_cuda_group *group);
int ft_cuda_group_decode(const ft_cuda_group *group);

/*
 * Int8, one row: GEMV with the norm or QUANTIZE; and that with the gate, and the GEMV of the gate.
 */
bool ft_cuda_group_int8_decode_supports(const ft_cuda_group *group);
int ft_cuda_group_int8_decode(const ft_cuda_group *group);
bool ft_cuda_group_int8_ffn_supports(const ft_cuda_group *group);
int ft_cuda_group_int8_ffn(const ft_cuda_group *group);

/* Group-wise weights: linears as one GEMM. */
bool ft_cuda_group_groupwise_supports(const ft_cuda_group *group);
int ft_cuda_group_groupwise(const ft_cuda_group *group);

/* Int8: linears as one GEMM, where their weights are adjacent in memory. */
bool ft_cuda_group_int8_supports(const ft_cuda_group *group);
int ft_cuda_group_int8(const ft_cuda_group *group);

/* f16 or bf16, one row: GEMVs with the norm, and the gate where there is one. */
bool ft_cuda_group_f16_decode_supports(const ft_cuda_group *group);
int ft_cuda_group_f16_decode(const ft_cuda_group *group);

/* f16 or bf16 GEMMs of one shape with wgmma, in one launch. */
bool ft_cuda_group_f16_supports(const ft_cuda_group *group);
int ft_cuda_group_f16(const ft_cuda_group *group);

/* Float GEMMs of one shape as one strided batch in cuBLAS. */
bool ft_cuda_group_cublas_supports(const ft_cuda_group *group);
int ft_cuda_group_cublas(const ft_cuda_group *group);

/*
 * Describe the kernel of a group's linears as ft_cuda_gemm_explain() does. Returns the number of
 * linears that run as one GEMM, else 1, and then the text describes the first; 0 and an empty text
 * for float linears.
 */
int ft_cuda_linear_explain(const ft_cuda_group *group, char *text, size_t size);

/* ---- Attention ---------------------------------------------------------------------------- */

/* Decode step of few sequences: RoPE, KV cache write and attention. */
bool ft_cuda_store_attend_supports(const ft_cuda_group *group);
int ft_cuda_store_attend(const ft_cuda_group *group);

#ifdef __cplusplus
}
#endif
#endif
