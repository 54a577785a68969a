/*
 * groupwise.c - random group-wise quantized weights, and their dequantized values; the definition
 * of int8 activations in plain C.
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

#include <math.h>
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

int8_group quantize_group(int32_t *q, const float *x, size_t n)
{
    float low = 0.0f, high = 0.0f;
    for (size_t i = 0; i < n; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    float scale = (0.5f * high - 0.5f * low) / 127.5f;
    if (scale < 0x1p-126f) {
        memset(q, 0, n * sizeof *q);
        return (int8_group){ 0 };
    }
    float inverse = 1.0f / scale;
    int32_t zero = (int32_t) rintf(-low * inverse) - 128;
    for (size_t i = 0; i < n; i++) {
        q[i] = (int32_t) rintf(x[i] * inverse) + zero;
        q[i] = q[i] < 127 ? q[i] : 127;
    }
    return (int8_group){ scale, zero };
}

void round_weights_for_gpu(double *value, size_t n, const blocked_how *how, ft_dtype x)
{
    if (how->group % 128 == 0 || how->int8_activations || x == FT_F32)
        return;
    for (size_t i = 0; i < n; i++)
        value[i] = x == FT_F16 ? (double) ft_float_from_f16(ft_f16_from_float((float) value[i]))
                               : (double) ft_float_from_bf16(ft_bf16_from_float((float) value[i]));
}

static void round_group(double *x, size_t n)
{
    float *narrow = must_have(n, sizeof *narrow);
    int32_t *q = must_have(n, sizeof *q);
    for (size_t i = 0; i < n; i++)
        narrow[i] = (float) x[i];
    int8_group by = quantize_group(q, narrow, n);
    for (size_t i = 0; i < n; i++)
        x[i] = (double) by.scale * (q[i] - by.zero);
    free(narrow);
    free(q);
}

void round_to_int8_groups(double *x, size_t n, int32_t group)
{
    size_t step = group == 0 ? n : (size_t) group;
    for (size_t first = 0; first < n; first += step)
        round_group(x + first, ft_min_size(step, n - first));
}
