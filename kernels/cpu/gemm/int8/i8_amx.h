/*
 * i8_amx.h - the tile of an int8 GEMM by AMX, for panels that AVX-512 packs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_I8_AMX_H
#define FT_KERNELS_CPU_GEMM_INT8_I8_AMX_H

#include "kernels/cpu/gemm/int8/i8.h"

/* gemm_block() of ft_i8_kernels. */
void ft_i8_amx_gemm_block(const ft_i8_tile *tile, const void *panel, size_t panel_rows);

#endif
