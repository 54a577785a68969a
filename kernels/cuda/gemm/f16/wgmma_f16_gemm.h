/*
 * wgmma_f16_gemm.h - batch-invariant f16 and bf16 GEMM on sm_90a and its tile shapes.
 *
 * Split-K: the number of k splits is a function of n and k alone. The tensor cores accumulate each
 * split from its first k to its last, 16 at a time, and the partial sums are added in order. A
 * result therefore has the same bits with every tile shape; tests compare all of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_GEMM_H
#define FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_GEMM_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tile is 64 x warpgroups weight rows by `rows` rows of x. */
typedef struct ft_cuda_f16_tile {
    int warpgroups, rows;
    bool cluster_split_k; /* one split per thread block of a cluster; else one block accumulates all
                           * splits */
    int blocks_per_sm;    /* thread blocks per SM: 1, or 2 where registers suffice */
} ft_cuda_f16_tile;

/* Whether the kernels support this GEMM; independent of m. */
bool ft_cuda_f16_wgmma_supports(const ft_cuda_device_props *props,
                                const ft_cuda_float_gemm_args *p);

int ft_cuda_f16_wgmma_splits(size_t n, size_t k);

/* The fastest of these tile shapes for this GEMM. */
ft_cuda_f16_tile ft_cuda_f16_wgmma_select(const ft_cuda_device_props *props,
                                          const ft_cuda_float_gemm_args *p, int count);

/*
 * `count` GEMMs that differ only in w, bias and y, in one launch with this tile shape and 1, 2 or 4
 * splits of at least 64 k. Returns cudaErrorNotSupported where there is no such tile shape or the
 * GEMMs differ otherwise.
 */
int ft_cuda_f16_wgmma_launch_tile(const ft_cuda_f16_tile *tile_config, int splits,
                                  const ft_cuda_device_props *props, void *stream,
                                  const ft_cuda_float_gemm_args *p, int count);

/* Whether `count` GEMMs differ only in w, bias and y. */
bool ft_cuda_f16_wgmma_same_shape(const ft_cuda_float_gemm_args *p, int count);

/* ---- Many rows ----------------------------------------------------------------------------- */

/*
 * Tiles of wgmma_f16_large_m.cu, which do not split k and return the same bits as the tiles above
 * with one split. y has the dtype of x; the activation is none or GELU.
 */
enum { FT_CUDA_F16_LARGE_M_TILES = 5 };
bool ft_cuda_f16_large_m_supports(const ft_cuda_device_props *props,
                                  const ft_cuda_float_gemm_args *p, int count);
const char *ft_cuda_f16_large_m_name(int tile);
int ft_cuda_f16_large_m_launch_tile(int tile, const ft_cuda_device_props *props, void *stream,
                                    const ft_cuda_float_gemm_args *p, int count);

/*
 * Tiles of wgmma_f16_split_k.cu, for the same GEMMs: a cluster of 2 or 4 thread blocks splits k,
 * and the bits are those of as many splits of the tiles above.
 */
enum { FT_CUDA_F16_SPLIT_K_TILES = 2 };
const char *ft_cuda_f16_split_k_name(int tile);
int ft_cuda_f16_split_k_splits(int tile); /* 0: no such tile */
int ft_cuda_f16_split_k_launch_tile(int tile, const ft_cuda_device_props *props, void *stream,
                                    const ft_cuda_float_gemm_args *p, int count);

/* ---- Selection ----------------------------------------------------------------------------- */

/*
 * The fastest kernel for `count` GEMMs that differ only in w, bias and y; ft_cuda_f16_wgmma() is
 * batch-invariant. cudaErrorNotSupported as above.
 */
int ft_cuda_f16_wgmma(const ft_cuda_device_props *props, void *stream,
                      const ft_cuda_float_gemm_args *p, int count);
int ft_cuda_f16_wgmma_fastest(const ft_cuda_device_props *props, void *stream,
                              const ft_cuda_float_gemm_args *p, int count);

#ifdef __cplusplus
}
#endif
#endif
