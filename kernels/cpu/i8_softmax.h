/*
 * i8_softmax.h - rows of integer scores become codes of their softmax.
 *
 * Included once by the file of each instruction set.  The order of the additions does not depend on
 * the width of its vectors: there are always 16 partial sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_I8_SOFTMAX_H
#define FT_KERNELS_CPU_I8_SOFTMAX_H

#include "kernels/cpu/i8.h"
#include "kernels/cpu/simd_math.h"

enum { SOFTMAX_VECTORS = VF_PARTS / LANES };

/* `count` is a multiple of VF_PARTS. */
FT_INLINE float largest(const int32_t *scores, size_t count)
{
    vf best[SOFTMAX_VECTORS];
    FT_UNROLL
    for (int v = 0; v < SOFTMAX_VECTORS; v++)
        best[v] = vf_load_sums(scores + v * LANES);
    for (size_t i = VF_PARTS; i < count; i += VF_PARTS) {
        FT_UNROLL
        for (int v = 0; v < SOFTMAX_VECTORS; v++)
            best[v] = vf_max(best[v], vf_load_sums(scores + i + (size_t) v * LANES));
    }
    return vf_largest(best);
}

/* exps[i] = 2^((scores[i] - most) * scale), zeros up to `wide`; returns their sum. */
FT_INLINE float exps_of_scores(float *exps, const int32_t *scores, size_t cols, size_t wide,
                               float scale, float most)
{
    vf sum[SOFTMAX_VECTORS];
    FT_UNROLL
    for (int v = 0; v < SOFTMAX_VECTORS; v++)
        sum[v] = vf_set(0.0f);
    size_t whole = cols / VF_PARTS * VF_PARTS;
    for (size_t i = 0; i < cols; i += VF_PARTS) {
        FT_UNROLL
        for (int v = 0; v < SOFTMAX_VECTORS; v++) {
            size_t at = i + (size_t) v * LANES;
            vf e = vf_exp2_codes((vf_load_sums(scores + at) - vf_set(most)) * vf_set(scale));
            vf_store(exps + at, e);
            if (i < whole)
                sum[v] = sum[v] + e;
        }
    }
    memset(exps + cols, 0, (wide - cols) * sizeof *exps);
    if (whole < cols) {
        FT_UNROLL
        for (int v = 0; v < SOFTMAX_VECTORS; v++)
            sum[v] = sum[v] + vf_load(exps + whole + (size_t) v * LANES);
    }
    return vf_sum(sum);
}

/* exps * factor is not negative, so codes need an upper bound only. */
FT_INLINE void codes_of_exps(int8_t *codes, const float *exps, size_t wide, float factor)
{
    for (size_t i = 0; i < wide; i += 4 * LANES) {
        vf code[4];
        FT_UNROLL
        for (size_t v = 0; v < 4; v++)
            code[v] = vf_min(vf_load(exps + i + v * LANES) * vf_set(factor), vf_set(127.0f));
        vf_store_codes(codes + i, code);
    }
}

/* Each step for all rows before the next one: a short row alone is a chain of waits. */
static void softmax(int8_t *codes, size_t codes_stride, int32_t *scores, float *exps, size_t stride,
                    size_t rows, size_t cols, float scale, float inverse)
{
    float most[FT_I8_TILE], factor[FT_I8_TILE], scale2 = scale * FT_LOG2_E;
    size_t padded = ft_round_up(cols, VF_PARTS), wide = ft_round_up(cols, FT_I8_PANEL);
    for (size_t row = 0; row < rows; row++) {
        int32_t *of_row = scores + row * stride;
        for (size_t i = cols; i < padded; i++)
            of_row[i] = of_row[0]; /* changes no maximum */
        most[row] = largest(of_row, padded);
    }
    for (size_t row = 0; row < rows; row++)
        factor[row] = inverse / exps_of_scores(exps + row * stride, scores + row * stride, cols,
                                               wide, scale2, most[row]);
    for (size_t row = 0; row < rows; row++)
        codes_of_exps(codes + row * codes_stride, exps + row * stride, wide, factor[row]);
}

#endif
