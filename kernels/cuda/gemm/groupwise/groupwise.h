/*
 * groupwise.h - internal interface of linear: GEMM with group-wise quantized weights
 * (kernels/groupwise.h).
 *
 * Up to FT_CUDA_MAX_FUSED linears of one x run as one GEMM: each keeps its own weights and output,
 * and panels are numbered across all of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_H
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ft_cuda_groupwise_linear {
    size_t rows;
    const char *w; /* FT_PANEL32, 16-byte aligned like all pointers below */
    const uint16_t *scale;
    const uint8_t *zero; /* zero points; NULL: symmetric, all 8 or 128 */
    const float *bias;   /* [rows], or NULL */
    void *y;             /* [m, rows] */
} ft_cuda_groupwise_linear;

/* y = act(x . w^T + bias) */
typedef struct ft_cuda_groupwise_args {
    size_t m, k;
    void *x; /* [m, k] */
    ft_dtype x_dtype, y_dtype;
    int bits;      /* 4 or 8 */
    int32_t group; /* group size as in ft_groupwise */
    bool int8_activations;
    bool back_to_back; /* GEMV: follows a GEMV of the same kind, as in benchmarks */
    ft_activation activation;
    int n_linears; /* 1 .. FT_CUDA_MAX_FUSED */
    ft_cuda_groupwise_linear linear[FT_CUDA_MAX_FUSED];
    void *scratch; /* ft_cuda_groupwise_scratch() bytes, 256-byte aligned, or NULL */
    size_t scratch_bytes;
    uint32_t *counters; /* FT_CUDA_GROUPWISE_COUNTERS zeros, reset to zero by the kernel; or NULL */
} ft_cuda_groupwise_args;

/* Group-wise GEMM kernels, in the order of ft_cuda_groupwise_kernel_name(). */
typedef enum ft_cuda_groupwise_kernel {
    FT_CUDA_GROUPWISE_DECODE_GEMV, /* decode_gemv.cu: one or two rows, 4 bits, whole k tiles */
    FT_CUDA_GROUPWISE_GEMV,        /* groupwise_gemv.cu: up to 8 rows, streams the weights */
    FT_CUDA_GROUPWISE_MMA,         /* groupwise_mma.cu: any number of rows, from sm_80 on */
    FT_CUDA_GROUPWISE_WGMMA, /* groupwise_wgmma.cu: the same on sm_90a, whole k tiles of f16 or bf16
                              */
    FT_CUDA_GROUPWISE_SIMT,  /* groupwise_simt.cu: any device; its own accumulation order */
    FT_CUDA_GROUPWISE_INT8,  /* groupwise_int8.cu: int8 activations (W4A8, W8A8) */
    FT_CUDA_GROUPWISE_KERNELS
} ft_cuda_groupwise_kernel;

/*
 * Largest number of thread blocks that exchange partial sums, with 8 counters each. All devices
 * have fewer SMs.
 */
enum {
    FT_CUDA_GROUPWISE_MAX_BLOCKS = 512,
    FT_CUDA_GROUPWISE_COUNTERS = 8 * FT_CUDA_GROUPWISE_MAX_BLOCKS
};

/*
 * Launch the GEMM with the kernel selected for it. Rows of y depend on their rows of x alone, and
 * on one device all kernels return the same bits (groupwise.cuh).
 */
int ft_cuda_groupwise_gemm(const ft_cuda_device_props *props, void *stream,
                           const ft_cuda_groupwise_args *p);

/* Whether there is a kernel for the product. */
bool ft_cuda_blocks_supports(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p);

/* One way; cudaErrorNotSupported, and nothing is launched, where it does not take the product. */
int ft_cuda_groupwise_launch(ft_cuda_groupwise_kernel kernel, const ft_cuda_device_props *props,
                             void *stream, const ft_cuda_groupwise_args *p);
ft_cuda_groupwise_kernel ft_cuda_groupwise_select(const ft_cuda_device_props *props,
                                                  const ft_cuda_groupwise_args *p);
const char *ft_cuda_groupwise_kernel_name(ft_cuda_groupwise_kernel kernel);

/* Scratch bytes for up to m rows of linears of one x with n weight rows in total. */
size_t ft_cuda_groupwise_scratch(const ft_cuda_device_props *props, size_t m, size_t n, size_t k,
                                 ft_dtype x_dtype, bool int8_activations);

#ifdef __cplusplus
}
#endif
#endif
