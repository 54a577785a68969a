/*
 * sgemm.c - c -= a . b in float, by the weighted sums of the float GEMM.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/linalg.h"

#include "kernels/cpu/gemm/f32/f32.h"
#include "runtime/mem.h"

enum { BLOCK_K = 128 };

/* Rows of one register tile, for a part of k. */
static void subtract_tile(const ft_float_kernels *kernels, const ft_sgemm *g, size_t row,
                          size_t rows, size_t first, size_t k)
{
    float minus_a[FT_FLOAT_MAX_ROWS * BLOCK_K];
    for (size_t i = 0; i < rows; i++)
        for (size_t l = 0; l < k; l++)
            minus_a[i * BLOCK_K + l] = -g->a[(row + i) * g->a_stride + first + l];
    kernels->weighted_sum(&(ft_float_weighted_sum){ .p = minus_a,
                                                    .p_stride = BLOCK_K,
                                                    .v = g->b + first * g->b_stride,
                                                    .v_stride = g->b_stride,
                                                    .v_dtype = FT_F32,
                                                    .rows = rows,
                                                    .keys = k,
                                                    .cols = g->n,
                                                    .y = g->c + row * g->c_stride,
                                                    .y_stride = g->c_stride });
}

void ft_linalg_sgemm_subtract(const ft_linalg *linalg, const ft_sgemm *g)
{
    const ft_float_kernels *kernels = ft_float_kernels_for((ft_isa) linalg->isa);
    for (size_t row = 0; row < g->m; row += kernels->rows)
        for (size_t first = 0; first < g->k; first += BLOCK_K)
            subtract_tile(kernels, g, row, ft_min_size(kernels->rows, g->m - row), first,
                          ft_min_size(BLOCK_K, g->k - first));
}
