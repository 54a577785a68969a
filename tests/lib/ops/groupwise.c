/*
 * groupwise.c - random group-wise quantized weights, and their dequantized values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/ops/groupwise.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/lib/ops/oneop.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static void *zeros_of(size_t bytes)
{
    void *memory = ft_calloc_aligned(bytes);
    if (memory == NULL)
        bail_out("out of memory");
    memset(memory, 0, bytes);
    return memory;
}

ft_weight random_blocked(uint64_t seed, size_t rows, size_t cols, const blocked_how *how,
                         double **value)
{
    rng r = { seed };
    int bits = ft_groupwise_bits(how->dtype);
    ft_groupwise groupwise = { .group = how->group, .int8_activations = how->int8_activations };
    size_t count = ft_groupwise_scale_count(&groupwise, rows, cols);
    uint16_t *scale = zeros_of(count * sizeof *scale);
    uint8_t *zero = how->asymmetric ? zeros_of(count) : NULL;
    uint32_t *panels = zeros_of(ft_panel_bytes(rows, cols, bits));
    groupwise.scale = scale;
    groupwise.zero = zero;
    *value = must_have(rows * cols, sizeof **value);
    for (size_t row = 0; row < rows; row++)
        for (size_t col = 0; col < cols; col++) {
            size_t at = ft_groupwise_scale_index(&groupwise, row, col, rows);
            bool first = col % (size_t) (how->group > 0 ? how->group : (int32_t) cols) == 0;
            if (first)
                scale[at] = ft_f16_from_float((float) rng_uniform(&r, 0.001, 0.1));
            if (first && zero != NULL)
                zero[at] = (uint8_t) rng_below(&r, 1u << bits);
            uint32_t code = rng_below(&r, 1u << bits);
            panels[ft_panel_word(row, col, cols, bits)] |= code << ft_panel_shift(col, bits);
            (*value)[row * cols + col] =
                (double) ft_float_from_f16(scale[at]) *
                ((int32_t) code - ft_groupwise_zero_point(&groupwise, at, bits));
        }
    return (ft_weight){ .name = "w",
                        .rows = rows,
                        .cols = cols,
                        .dtype = how->dtype,
                        .layout = FT_PANEL32,
                        .groupwise = groupwise,
                        .data = panels };
}

void free_blocked(ft_weight *weight)
{
    free((void *) (uintptr_t) weight->data);
    free((void *) (uintptr_t) weight->groupwise.scale);
    free((void *) (uintptr_t) weight->groupwise.zero);
    *weight = (ft_weight){ 0 };
}
