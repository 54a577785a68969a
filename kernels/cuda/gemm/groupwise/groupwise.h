/*
 * groupwise.h - inside linear: products with weights in blocks (kernels/groupwise.h).
 *
 * The matrices of up to FT_CUDA_PARTS linears of one x are one product: each keeps its own
 * parameters and result, and panels are counted through all of them.
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
    const char *w; /* FT_PANEL32, 16-byte aligned as all that follow */
    const uint16_t *scale;
    const uint8_t *zero; /* NULL: all are 8 or 128 */
    const float *bias;   /* [rows], or NULL */
    void *y;             /* [m, rows] */
} ft_cuda_blocks_part;

/* y = act(x . w^T + bias) */
typedef struct ft_cuda_blocks {
    size_t m, k;
    void *x; /* [m, k] */
    ft_dtype x_dtype, y_dtype;
    int bits;      /* 4 or 8 */
    int32_t group; /* as ft_blocks has it */
    bool by_codes;
    bool in_a_row; /* of few rows: behind a product like it, as benchmarks have them (groupwise_gemv.cu)
                    */
    ft_activation activation;
    int parts; /* 1 .. FT_CUDA_PARTS */
    ft_cuda_blocks_part part[FT_CUDA_PARTS];
    void *scratch; /* ft_cuda_blocks_scratch() bytes, 256-byte aligned, or NULL */
    size_t scratch_bytes;
    uint32_t
        *counters; /* FT_CUDA_BLOCKS_COUNTERS zeros, and zeros again when it is done; or NULL */
} ft_cuda_blocks;

/* The ways to compute one, in the order of ft_cuda_blocks_name(). */
typedef enum ft_cuda_blocks_way {
    FT_CUDA_BLOCKS_STEP,  /* decode_gemv.cu: a row or two, codes of four bits in whole runs */
    FT_CUDA_BLOCKS_FEW,   /* groupwise_gemv.cu: up to 8 rows, weights stream through */
    FT_CUDA_BLOCKS_TILES, /* groupwise_mma.cu: any number of rows, from sm_80 on */
    FT_CUDA_BLOCKS_WGMMA, /* groupwise_wgmma.cu: the same on sm_90a, whole runs of f16 or bf16 */
    FT_CUDA_BLOCKS_PLAIN, /* groupwise_simt.cu: any device; in an order of its own */
    FT_CUDA_BLOCKS_CODES, /* groupwise_int8.cu: x becomes codes */
    FT_CUDA_BLOCKS_WAYS
} ft_cuda_blocks_way;

/*
 * Multiprocessors that hand sums to their neighbours: 8 counters for each.  All devices have
 * fewer.
 */
enum { FT_CUDA_BLOCKS_NEIGHBOURS = 512, FT_CUDA_BLOCKS_COUNTERS = 8 * FT_CUDA_BLOCKS_NEIGHBOURS };

/*
 * Launch the product, by the way that suits it.  Rows of y depend on their rows of x alone, and
 * between the ways of a device no bit does (groupwise.cuh).
 */
int ft_cuda_blocks_run(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p);

/* One way; cudaErrorNotSupported, and nothing is launched, where it does not take the product. */
int ft_cuda_blocks_with(ft_cuda_blocks_way way, const ft_cuda_chip *chip, void *stream,
                        const ft_cuda_blocks *p);
ft_cuda_blocks_way ft_cuda_blocks_choose(const ft_cuda_chip *chip, const ft_cuda_blocks *p);
const char *ft_cuda_blocks_name(ft_cuda_blocks_way way);

/* Scratch for up to m rows of linears with one x, of n rows of weights in all. */
size_t ft_cuda_blocks_scratch(const ft_cuda_chip *chip, size_t m, size_t n, size_t k,
                              ft_dtype x_dtype, bool by_codes);

#ifdef __cplusplus
}
#endif
#endif
