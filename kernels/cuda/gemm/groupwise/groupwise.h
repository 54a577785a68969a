/*
 * groupwise.h - internal interface of linear: GEMM with group-wise quantized weights
 * (kernels/groupwise.h).
 *
 * Up to FT_CUDA_PARTS linears of one x run as one GEMM: each keeps its own weights and output, and
 * panels are numbered across all of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_H
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ft_cuda_blocks_part {
    size_t rows;
    const char *w; /* FT_PANEL32, 16-byte aligned like all pointers below */
    const uint16_t *scale;
    const uint8_t *zero; /* zero points; NULL: symmetric, all 8 or 128 */
    const float *bias;   /* [rows], or NULL */
    void *y;             /* [m, rows] */
} ft_cuda_blocks_part;

/* y = act(x . w^T + bias) */
typedef struct ft_cuda_blocks {
    size_t m, k;
    void *x; /* [m, k] */
    ft_dtype x_dtype, y_dtype;
    int bits;      /* 4 or 8 */
    int32_t group; /* group size as in ft_blocks */
    bool by_codes;
    bool in_a_row; /* GEMV: follows a GEMV of the same kind, as in benchmarks */
    ft_activation activation;
    int parts; /* 1 .. FT_CUDA_PARTS */
    ft_cuda_blocks_part part[FT_CUDA_PARTS];
    void *scratch; /* ft_cuda_blocks_scratch() bytes, 256-byte aligned, or NULL */
    size_t scratch_bytes;
    uint32_t *counters; /* FT_CUDA_BLOCKS_COUNTERS zeros, reset to zero by the kernel; or NULL */
} ft_cuda_blocks;

/* Group-wise GEMM kernels, in the order of ft_cuda_blocks_name(). */
typedef enum ft_cuda_blocks_way {
    FT_CUDA_BLOCKS_STEP,  /* decode_gemv.cu: one or two rows, 4 bits, whole k tiles */
    FT_CUDA_BLOCKS_FEW,   /* groupwise_gemv.cu: up to 8 rows, streams the weights */
    FT_CUDA_BLOCKS_TILES, /* groupwise_mma.cu: any number of rows, from sm_80 on */
    FT_CUDA_BLOCKS_WGMMA, /* groupwise_wgmma.cu: the same on sm_90a, whole k tiles of f16 or bf16 */
    FT_CUDA_BLOCKS_PLAIN, /* groupwise_simt.cu: any device; its own accumulation order */
    FT_CUDA_BLOCKS_CODES, /* groupwise_int8.cu: int8 activations (W4A8, W8A8) */
    FT_CUDA_BLOCKS_WAYS
} ft_cuda_blocks_way;

/*
 * Largest number of thread blocks that exchange partial sums, with 8 counters each. All devices
 * have fewer SMs.
 */
enum { FT_CUDA_BLOCKS_NEIGHBOURS = 512, FT_CUDA_BLOCKS_COUNTERS = 8 * FT_CUDA_BLOCKS_NEIGHBOURS };

/*
 * Launch the GEMM with the kernel selected for it. Rows of y depend on their rows of x alone, and
 * on one device all kernels return the same bits (groupwise.cuh).
 */
int ft_cuda_blocks_run(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p);

/*
 * Launch a given kernel; launches nothing and returns cudaErrorNotSupported where it does not
 * support the GEMM.
 */
int ft_cuda_blocks_with(ft_cuda_blocks_way way, const ft_cuda_chip *chip, void *stream,
                        const ft_cuda_blocks *p);
ft_cuda_blocks_way ft_cuda_blocks_choose(const ft_cuda_chip *chip, const ft_cuda_blocks *p);
const char *ft_cuda_blocks_name(ft_cuda_blocks_way way);

/* Scratch bytes for up to m rows of linears of one x with n weight rows in total. */
size_t ft_cuda_blocks_scratch(const ft_cuda_chip *chip, size_t m, size_t n, size_t k,
                              ft_dtype x_dtype, bool by_codes);

#ifdef __cplusplus
}
#endif
#endif
