/*
 * groupwise_neon_tables.h - the kernels of groupwise_impl.h with NEON: the tiles whose
 * accumulators, vectors of x and weights fit 32 registers.
 *
 * The including file defines vi_dot().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cpu/gemm/groupwise/groupwise_impl.h"

FUNCTIONS(1, 1, 8)
FUNCTIONS(2, 1, 8)
FUNCTIONS(3, 1, 8)
FUNCTIONS(4, 1, 4)
FUNCTIONS(5, 1, 4)
FUNCTIONS(6, 1, 2)
FUNCTIONS(7, 1, 2)
FUNCTIONS(8, 1, 2)
FUNCTIONS(1, 2, 8)
FUNCTIONS(2, 2, 4)
FUNCTIONS(3, 2, 2)
FUNCTIONS(4, 2, 2)

static gemm_fn *const int8_kernels[][2] = {
    TABLE_FOUR_ROWS(1), TABLE_ROW(5, 1), TABLE_ROW(6, 1), TABLE_ROW(7, 1), TABLE_ROW(8, 1),
};
static gemm_fn *const float_kernels[][2] = { TABLE_FOUR_ROWS(2) };
FT_GROUPWISE_GEMM_TILE
