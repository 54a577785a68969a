/*
 * groupwise_avxvnni.c - GEMM with group-wise quantized weights, with 256-bit VNNI.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/groupwise/groupwise_ymm.h"

/* An asm, so that the accumulator stays in its register; see i8_avx512.c. */
FT_INLINE void vi_dot(vi *sum, vi w, const int8_t *x, int bits)
{
    (void) bits;
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(*sum) : "x"(w), "x"(quad_at(x)));
}

#include "kernels/cpu/gemm/groupwise/groupwise_impl.h"

FUNCTIONS(1, 1, 4)
FUNCTIONS(2, 1, 4)
FUNCTIONS(3, 1, 2)
FUNCTIONS(4, 1, 2)
FUNCTIONS(1, 3, 2)
FUNCTIONS(2, 3, 2)
FUNCTIONS(3, 3, 1)
FUNCTIONS(4, 3, 1)

static multiply_function *const codes[][2] = {
    NAMES(1, 1),
    NAMES(2, 1),
    NAMES(3, 1),
    NAMES(4, 1),
};
static multiply_function *const reals[][2] = {
    NAMES(1, 3),
    NAMES(2, 3),
    NAMES(3, 3),
    NAMES(4, 3),
};
FT_PANEL_MULTIPLY

const ft_panel_kernels ft_panel_avxvnni = FT_PANEL_TABLE;
